//! Failure of a send whose peer is unreachable.

use super::super::core::Core;
use super::announce::withdraw;
use crate::request::{Body, Req};
use mpi_base::state::About;

/// Completes a send with the error that its peer is unreachable.
pub fn fail_send(core: &Core, req: &Req) {
    let error = match &*req.body.borrow() {
        Body::Send(send) => {
            let About { tag, bytes, .. } = send.about();
            core.losses().gone(send.proc(), tag, bytes)
        }
        // The send was cancelled or abandoned while it was queued.
        _ => return,
    };
    withdraw(req);
    core.requests().complete(req, Err(error.into()));
}
