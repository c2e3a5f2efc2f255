//! Interruption and abortion of operations whose peers are alive, for fault tolerance.
//!
//! An operation that has not failed itself can end early in one of two ways.
//! * A receive from any source is *interrupted* when a process fails that might have sent its message:
//!   the waiting call returns the error, and the receive stays posted ([`crate::request::Table::interrupt`]).
//! * An operation on a revoked communicator is *aborted* (`give_up`): an unmatched receive completes immediately with an error;
//!   an unmatched send is cancelled as by `MPI_Cancel`, and completes when the library no longer accesses its buffer.
//!
//! A matched operation completes normally, since its peer also completes it.

use super::core::Core;
use super::matching::{Key, Matching};
use super::peer_failure::withdraw;
use super::send::cancel::cancel;
use crate::Error;
use crate::pml::envelope::{Context, Plane};
use crate::request::{Body, Req};
use mpi_types::status::ANY_SOURCE;

/// Completes with `error` the communicator's unmatched `MPI_ANY_SOURCE` receives of user messages,
/// because no process that could send such a message is left.
pub fn end_any_source(core: &Core, context: Context, error: &Error) {
    for req in core.requests().under_way() {
        if waits_for_any_source(&req, context) && withdraw(&req) {
            core.requests().complete(&req, Err(error.clone()));
        }
    }
}

/// Interrupts the communicator's unmatched `MPI_ANY_SOURCE` receives of user messages.
pub fn interrupt_any_source(core: &Core, context: Context, error: &Error) {
    for req in core.requests().under_way() {
        if waits_for_any_source(&req, context) {
            core.requests().interrupt(&req, error.clone());
        }
    }
}

/// Resumes the communicator's `MPI_ANY_SOURCE` receives, after the program has acknowledged
/// the failures that interrupted them.
pub fn resume_any_source(core: &Core, context: Context) {
    for req in core.requests().under_way() {
        if waits_for_any_source(&req, context) {
            core.requests().resume(&req);
        }
    }
}

fn waits_for_any_source(req: &Req, context: Context) -> bool {
    let waits = |matching: &Matching, key: Key| {
        key.source() == ANY_SOURCE && matching.context() == context.plane(Plane::User)
    };
    match &*req.body.borrow() {
        Body::Recv(recv) => match recv.from() {
            (matching, key, None) => waits(matching, key),
            _ => false,
        },
        _ => false,
    }
}

/// Aborts the program's active operations on the communicator with the ID `number`.
/// Each completes with `error`.
pub fn give_up_all(core: &Core, number: u64, error: &Error) {
    for req in core.requests().under_way() {
        let context = match &*req.body.borrow() {
            Body::Recv(recv) => recv.from().0.context(),
            Body::Send(send) => send.envelope().context,
            _ => continue,
        };
        let of_library = [Plane::Collective, Plane::Hidden].map(|plane| context.plane(plane));
        // Messages of collective algorithms and components are aborted by the operations that use them.
        if context.number() == number && !of_library.contains(&context) {
            give_up(core, &req, error);
        }
    }
    core.requests().nudge();
}

/// Aborts one active operation. It completes when the library no longer accesses its buffer.
pub fn give_up(core: &Core, req: &Req, error: &Error) {
    if withdraw(req) {
        core.requests().complete(req, Err(error.clone()));
    } else if matches!(&*req.body.borrow(), Body::Send(_)) {
        core.requests().doom(req, error.clone());
    } else {
        return;
    }
    if !req.has_ended() {
        cancel(core, req);
    }
}
