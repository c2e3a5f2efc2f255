//! Ending waits early: what fault tolerance does to operations whose peers live.
//!
//! Two things happen to an operation that nothing is wrong with itself.
//! * A receive from any source is *interrupted* when a process fails that might have sent its message:
//!   the waiting caller is told, and the receive stays posted ([`crate::request::Table::interrupt`]).
//! * An operation on a communicator that is revoked is *given up*: a receive that no message has met ends at once;
//!   a send that no receive has met is taken back as by `MPI_Cancel`, so its buffer is the program's again before the send ends.
//!   What has met its message goes on to its end, which the peer sees to.

use super::core::Core;
use super::matching::{Key, Matching};
use super::peer_failure::withdraw;
use super::send::cancel::cancel;
use crate::Error;
use crate::pml::envelope::{Context, Plane};
use crate::request::{Body, Req};
use mpi_types::status::ANY_SOURCE;

/// Ends the receives from any source of the user's messages of a communicator that no message has met: no process is left to send one.
pub fn end_any_source(core: &Core, context: Context, error: &Error) {
    for req in core.requests().under_way() {
        if waits_for_any_source(&req, context) && withdraw(&req) {
            core.requests().complete(&req, Err(error.clone()));
        }
    }
}

/// Interrupts the receives from any source of the user's messages of a communicator that no message has met.
pub fn interrupt_any_source(core: &Core, context: Context, error: &Error) {
    for req in core.requests().under_way() {
        if waits_for_any_source(&req, context) {
            core.requests().interrupt(&req, error.clone());
        }
    }
}

/// The failures that interrupted them have been acknowledged.
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

/// Gives up what the program has under way on a communicator, by its number: the outcome of all of it will be this error.
pub fn give_up_all(core: &Core, number: u64, error: &Error) {
    for req in core.requests().under_way() {
        let context = match &*req.body.borrow() {
            Body::Recv(recv) => recv.from().0.context(),
            Body::Send(send) => send.envelope().context,
            _ => continue,
        };
        let of_library = [Plane::Collective, Plane::Hidden].map(|plane| context.plane(plane));
        // What the library has under way there is given up by the operations that it belongs to.
        if context.number() == number && !of_library.contains(&context) {
            give_up(core, &req, error);
        }
    }
    core.requests().nudge();
}

/// Gives up one operation that has not ended; it has an outcome when its buffer is not touched any more.
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
