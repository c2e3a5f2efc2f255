//! Queues, requests and counters of the lanes other than 0, for tools: performance variables,
//! the message queues of debuggers, and the warnings of `MPI_Finalize`.
//!
//! The callers hold lock 0, and wait for the lock of each lane.
//! A thread that writes the debug page during its wait in a lane also holds the lock of that lane;
//! no other thread then holds lock 0, so no other thread waits for a lane's lock while it holds one.

use super::objects::{self, Object};
use super::waiting::about;
use super::{Contents, Twin, count, lane_of_context, within};
use crate::lane_tools::{LaneTools, LeftRequest};
use crate::object::request::RequestState;
use mpi_core::Engine;
use mpi_core::comm::Comm;
use mpi_core::pml::Matching;
use mpi_core::request::Req;
use std::rc::Rc;

/// Visits each lane other than 0.
fn each(mut visit: impl FnMut(&Contents, &Engine)) {
    for lane in 1..count() {
        within(lane, |contents| {
            if let Some(engine) = contents.engine() {
                visit(contents, engine);
            }
        });
    }
}

/// The functions of lanes for tools.
pub const TOOLS: LaneTools = LaneTools {
    each_engine: |visit| each(|_, engine| visit(engine)),
    with_matching,
    left_requests,
};

/// Calls `read` with the matching state of a communicator, unless the communicator belongs to lane 0.
fn with_matching(comm: &Comm, read: &mut dyn FnMut(&Matching)) {
    let lanes = count();
    let lane = lane_of_context(comm.context(), lanes);
    if lanes == 1 || lane == 0 {
        return;
    }
    within(lane, |contents| {
        let twins = contents.twins.borrow();
        let number = comm.context().number();
        let mut twins = twins.iter().flatten();
        if let Some(twin) = twins.find(|twin| twin.matching().context().number() == number) {
            read(twin.matching());
        }
    });
}

/// Returns the requests of all lanes other than 0 whose handles the program holds.
fn left_requests() -> Vec<LeftRequest> {
    let mut left = Vec::new();
    each(|contents, engine| {
        for req in engine.pml().requests().all_named() {
            let twin = req.held().and_then(|held| held.downcast::<Twin>().ok());
            left.extend(twin.map(|twin| of_operation(&req, &twin)));
        }
        for object in contents.objects().borrow().iter() {
            left.push(of_object(object));
        }
    });
    left
}

fn of_operation(req: &Req, twin: &Rc<Twin>) -> LeftRequest {
    LeftRequest {
        comm: twin.handle(),
        state: match req.is_complete() {
            true => RequestState::Complete,
            false => RequestState::Running,
        },
        about: Some(about(req)),
    }
}

fn of_object(object: &Object) -> LeftRequest {
    match object {
        Object::Once(pending, twin) => LeftRequest {
            comm: twin.handle(),
            state: pending.state(),
            about: pending
                .receive
                .as_ref()
                .or(pending.send.as_ref())
                .map(about),
        },
        Object::Persistent(p) => {
            let active = p.active.borrow();
            LeftRequest {
                comm: p.twin.handle(),
                state: active
                    .as_ref()
                    .map_or(RequestState::Inactive, objects::Pending::state),
                about: None,
            }
        }
    }
}
