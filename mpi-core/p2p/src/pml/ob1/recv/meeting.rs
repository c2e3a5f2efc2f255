//! A message has met its receive: what the receive takes of it.

use super::super::core::Core;
use super::super::matching::Key;
use crate::pml::error::PmlError;
use crate::request::{Body, Req};

/// What a receive wants of a message of `bytes` bytes that it has met, and the error if that is not all.
pub fn meet(core: &Core, req: &Req, key: Key, bytes: u64) -> Option<(u64, Option<PmlError>)> {
    let body = req.body.borrow();
    let Body::Recv(recv) = &*body else {
        return None;
    };
    let capacity = recv.capacity();
    if let Some(observer) = core.observer() {
        observer.meets(req.id(), recv.from().0.context(), key, bytes);
    }
    let too_long = (bytes > capacity)
        .then(|| PmlError::truncated(recv.receiver(), key.source(), key.tag(), bytes, capacity));
    let wanted = bytes.min(capacity);
    req.set_status(key.status(wanted));
    Some((wanted, too_long))
}

/// Gives a message that has come whole to its receive, which ends with it.
#[inline]
pub fn accept_eager(core: &Core, req: &Req, key: Key, data: &[u8]) {
    let mut body = req.body.borrow_mut();
    let Body::Recv(recv) = &mut *body else {
        return core.protocol_error();
    };
    let bytes = data.len() as u64;
    let (capacity, light) = recv.fill(data);
    if let Some(observer) = core.observer() {
        observer.meets(req.id(), recv.from().0.context(), key, bytes);
    }
    req.set_status(key.status(bytes.min(capacity)));
    if bytes <= capacity {
        return match light {
            true => core.requests().complete_light(req),
            false => core.requests().complete_ok(req),
        };
    }
    let error = PmlError::truncated(recv.receiver(), key.source(), key.tag(), bytes, capacity);
    drop(body);
    core.requests().complete(req, Err(error.into()));
}
