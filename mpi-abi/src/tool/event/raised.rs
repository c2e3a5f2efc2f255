//! Events raised by the engine's message observer, and by communicator creation and release.

use super::delivery::deliver_after_call;
use super::queue::{self, Instance, has_begun};
use super::table::Which;
use crate::object::comm::CommObject;
use crate::state;
use crate::tool::observer;
use mpi_base::clock::now_ns;
use mpi_base::proc::ProcId;
use mpi_core::Engine;
use mpi_core::observer::Observer;
use mpi_core::pml::{Context, Envelope, Key, Plane};
use mpi_core::request::ReqId;
use std::rc::Rc;

/// Enables events, and their delivery at the end of every call.
pub(super) fn begin() {
    queue::set_begun();
    state::call_after_calls(deliver_after_call);
    if let Ok(engine) = state::engine() {
        attach(&engine);
    }
}

/// Reports an engine's message events from now on, if a tool has registered a callback.
pub fn attach(engine: &Engine) {
    if has_begun()
        && let Some(observer) = observer(engine)
    {
        observer.show(Rc::new(Messages));
    }
}

/// Raises an event of a communicator or of the process.
#[cold]
fn raise(which: Which, comm: Option<u64>, elements: [i64; 4]) {
    let instance = Instance {
        event: which as usize,
        time_ns: now_ns(),
        elements,
    };
    queue::queue().raise(comm, instance);
}

/// The message observer that raises message events.
struct Messages;

impl Observer for Messages {
    fn sends(&self, _: &Envelope, _: u64) {}

    fn meets(&self, _: ReqId, context: Context, message: Key, bytes: u64) {
        raise_of_message(Which::MessageMatched, context, message, bytes);
    }

    fn keeps(&self, context: Context, message: Key, bytes: u64) {
        raise_of_message(Which::MessageUnexpected, context, message, bytes);
    }

    fn rendezvous(&self, to: &Envelope, bytes: u64, begins: bool) {
        if !is_of_the_program(to.context) {
            return;
        }
        let which = match begins {
            true => Which::RendezvousBegins,
            false => Which::RendezvousEnds,
        };
        let elements = [to.dest.into(), to.tag.into(), wide(bytes), 0];
        raise(which, Some(to.context.number()), elements);
    }

    fn receives_rendezvous(&self, context: Context, message: Key, bytes: u64, begins: bool) {
        let which = match begins {
            true => Which::RendezvousReceiveBegins,
            false => Which::RendezvousReceiveEnds,
        };
        raise_of_message(which, context, message, bytes);
    }

    fn loses(&self, peer: ProcId) {
        raise(Which::RankLost, None, [peer.into(), 0, 0, 0]);
    }

    fn loses_link(&self, peer: ProcId) {
        raise(Which::LinkLost, None, [peer.into(), 0, 0, 0]);
    }
}

/// Raises an event of an arriving message, unless the message is part of a collective.
fn raise_of_message(which: Which, context: Context, message: Key, bytes: u64) {
    if is_of_the_program(context) {
        let (source, tag) = (message.source().into(), message.tag().into());
        raise(which, Some(context.number()), [source, tag, wide(bytes), 0]);
    }
}

/// Returns true for a point-to-point message of the program, not part of a collective.
fn is_of_the_program(context: Context) -> bool {
    [Plane::User, Plane::Partition]
        .into_iter()
        .any(|plane| context.plane(plane) == context)
}

/// Converts a number of bytes to `i64`.
fn wide(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Raises the event for a communicator created by the program.
pub fn communicator_made(object: &CommObject) {
    if has_begun() {
        let [number, rank, size] = place(object);
        let handle = object.handle().0 as i64;
        raise(Which::CommunicatorMade, None, [number, rank, size, handle]);
    }
}

/// Raises the event for a communicator freed by the program.
pub fn communicator_freed(object: &CommObject) {
    if has_begun() {
        let [number, rank, size] = place(object);
        raise(Which::CommunicatorFreed, None, [number, rank, size, 0]);
    }
}

fn place(object: &CommObject) -> [i64; 3] {
    let comm = &object.comm;
    [
        comm.context().number() as i64,
        comm.rank().into(),
        comm.size().into(),
    ]
}
