//! Events that tools see: the begin and the end of a rendezvous at its receiver.

use super::super::core::Core;
use super::super::matching::Key;
use crate::request::{Body, Req};

/// Notifies the observer that the receive of an announced message begins or ends.
pub fn show(core: &Core, req: &Req, key: Key, bytes: u64, begins: bool) {
    if let Some(observer) = core.observer()
        && let Body::Recv(recv) = &*req.body.borrow()
    {
        observer.receives_rendezvous(recv.context(), key, bytes, begins);
    }
}
