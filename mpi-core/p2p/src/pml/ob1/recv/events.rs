//! Observer events at the receiver: begin and end of a rendezvous.

use super::super::core::Core;
use super::super::matching::Key;
use crate::request::{Body, Req};

/// Reports to the observer that the transfer of an announced message begins or ends.
pub fn show(core: &Core, req: &Req, key: Key, bytes: u64, begins: bool) {
    if let Some(observer) = core.observer()
        && let Body::Recv(recv) = &*req.body.borrow()
    {
        observer.receives_rendezvous(recv.context(), key, bytes, begins);
    }
}
