//! The match of a message with its receive: the number of bytes that fit, the status, and the error.

use super::super::core::Core;
use super::super::matching::Key;
use super::super::recv_body::RecvBody;
use super::super::types;
use crate::observer::Observer;
use crate::pml::error::PmlError;
use crate::request::{Body, Req};

/// Sets the receive's status for a matched message of `bytes` bytes. Returns the number of bytes that fit into the buffer,
/// and the error of a truncation or a type mismatch.
pub fn meet(core: &Core, req: &Req, key: Key, bytes: u64) -> Option<(u64, Option<PmlError>)> {
    let body = req.body.borrow();
    let Body::Recv(recv) = &*body else {
        return None;
    };
    let capacity = recv.capacity();
    let unlike = (core.observer()).and_then(|observer| met(core, observer, req, recv, key, bytes));
    let too_long = (bytes > capacity)
        .then(|| PmlError::truncated(recv.receiver(), key.source(), key.tag(), bytes, capacity));
    let wanted = bytes.min(capacity);
    req.set_status(key.status(wanted));
    Some((wanted, too_long.or(unlike)))
}

/// Copies a complete eager message into the buffer of its receive, and completes the receive.
#[inline]
pub fn accept_eager(core: &Core, req: &Req, key: Key, data: &[u8]) {
    let mut body = req.body.borrow_mut();
    let Body::Recv(recv) = &mut *body else {
        return core.protocol_error();
    };
    let bytes = data.len() as u64;
    let (capacity, light) = recv.fill(data);
    let unlike = (core.observer()).and_then(|observer| met(core, observer, req, recv, key, bytes));
    req.set_status(key.status(bytes.min(capacity)));
    if bytes <= capacity && unlike.is_none() {
        return match light {
            true => core.requests().complete_light(req),
            false => core.requests().complete_ok(req),
        };
    }
    let too_long =
        || PmlError::truncated(recv.receiver(), key.source(), key.tag(), bytes, capacity);
    let error = unlike.unwrap_or_else(too_long);
    drop(body);
    core.requests().complete(req, Err(error.into()));
}

/// Reports a matched message to the observer. Returns the error of a type mismatch, if type signatures are compared.
#[cold]
fn met(
    core: &Core,
    observer: &dyn Observer,
    req: &Req,
    recv: &RecvBody,
    key: Key,
    bytes: u64,
) -> Option<PmlError> {
    observer.meets(req.id(), recv.from().0.context(), key, bytes);
    types::mismatch(core.types()?, recv, key, bytes)
}
