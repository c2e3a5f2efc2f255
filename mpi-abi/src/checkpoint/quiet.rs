//! The quiescence check: this process has no active operation and no unreceived message.
//!
//! Before the check, the process has exchanged messages with every other rank.
//! So each message sent to this process has arrived.

use crate::abi::MPI_COMM_NULL;
use crate::object::request::RequestState;
use crate::state::state;
use mpi_core::comm::Comm;
use mpi_core::pml::Plane;
use mpi_core::request::Body;
use std::rc::Rc;

/// The maximum number of messages that an error text lists.
const NAMED: usize = 3;

/// Returns an error with the reason why this process is not quiescent.
pub fn check(comm: &Comm) -> Result<(), String> {
    let rank = comm.rank();
    let engine = comm.engine();
    // Number of polls before the check. They process late fragments, and late replies of operations
    // that are already complete for the program.
    const POLLS: usize = 1000;
    let _ = (0..POLLS).take_while(|_| engine.poll_once()).count();
    let found = connected()
        .or_else(unreceived)
        .or_else(|| active(comm))
        .or_else(collective_of_another_thread(comm))
        .or_else(open_window);
    match found {
        Some(what) => Err(format!("rank {rank} {what}")),
        None => Ok(()),
    }
}

/// Describes the other jobs to which this process is connected.
fn connected() -> Option<String> {
    let jobs = state().jobs();
    let is_connected = jobs.parent().get() != MPI_COMM_NULL
        || !jobs.connections().borrow().is_empty()
        || !jobs.spawning().borrow().is_empty();
    is_connected.then(|| {
        "is connected with another job, and a checkpoint is of one job; MPI_Comm_disconnect comes before the point".into()
    })
}

/// Describes the messages that have arrived and were not received.
fn unreceived() -> Option<String> {
    let tables = state().tables();
    let predefined = [
        tables.world().borrow().clone(),
        tables.myself().borrow().clone(),
    ];
    let made = tables.comms().borrow();
    let made = made.iter().map(|(_, object)| Rc::clone(object));
    let mut named = Vec::new();
    let mut count = 0;
    for object in predefined.into_iter().flatten().chain(made) {
        for (key, bytes) in object.comm.p2p().unexpected() {
            count += 1;
            if named.len() < NAMED {
                named.push(format!(
                    "rank {} has sent it a message with tag {} and {bytes} bytes on {}",
                    key.source(),
                    key.tag(),
                    object.label()
                ));
            }
        }
    }
    let more = count - named.len();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    (count > 0).then(|| format!("has not received all messages: {}", named.join(", ")))
}

/// Describes the active operations.
fn active(comm: &Comm) -> Option<String> {
    let requests = comm.engine().pml().requests();
    for req in requests.under_way() {
        let (context, about, what) = match &*req.body.borrow() {
            Body::Send(send) => (send.context(), send.about(), "send to"),
            Body::Recv(recv) => (recv.context(), recv.about(), "receive from"),
            _ => continue,
        };
        if context != context.plane(Plane::User) {
            continue;
        }
        let peer = match about.peer {
            peer if peer >= 0 => format!("rank {peer}"),
            _ => "any rank".into(),
        };
        let tag = match about.tag {
            tag if tag >= 0 => format!("tag {tag}"),
            _ => "any tag".into(),
        };
        return Some(format!("has an active {what} {peer} with {tag}"));
    }
    let is_active = requests.all_named().iter().any(|req| !req.is_complete());
    let table = state().tables().requests().borrow();
    let is_active = is_active
        || table
            .iter()
            .any(|(_, request)| request.look() == RequestState::Running);
    is_active.then(|| "has an active request; it must complete before the point".into())
}

/// Describes a collective operation that another thread executes.
fn collective_of_another_thread(comm: &Comm) -> impl FnOnce() -> Option<String> {
    let is_inside = comm.engine().state().is_inside();
    move || is_inside.then(|| "is inside a collective operation in another thread".into())
}

/// Describes a window with an open epoch.
fn open_window() -> Option<String> {
    let windows = state().tables().wins().borrow();
    windows.iter().find_map(|(_, object)| {
        let open = object.win.what_is_open()?;
        Some(format!(
            "is at a point with {}, where {open}",
            object.win.label()
        ))
    })
}
