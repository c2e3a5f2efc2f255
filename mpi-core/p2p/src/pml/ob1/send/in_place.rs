//! The sender's side of delivery in place: the transport sends the data from the program's memory.
//!
//! The receiver's side, [`in_place`](super::super::recv), describes the protocol.
//! The send completes after the transfer has ended, because the transport may read the memory until then.

#![allow(unsafe_code)]

use super::super::core::Core;
use super::super::peer::Peer;
use super::super::send_body::SendBody;
use super::super::stream::Stream;
use super::super::transfers::in_place;
use super::device_twin;
use crate::btl::{Region, SendError};
use crate::request::{Body, Req};
use std::rc::Rc;

/// Returns true if the transport can deliver the data of a send in place.
/// Data of a device are copied to host memory while they are sent, so they are sent in fragments.
pub fn is_possible(peer: &Peer, send: &SendBody, wanted: u64) -> bool {
    let shortest = in_place(peer).map(|all| all.shortest().max(1) as u64);
    let is_long = shortest.is_some_and(|shortest| wanted >= shortest);
    is_long && send.buf().contiguous().is_some() && device_twin(send.buf()).is_none()
}

/// Passes the data of a send to the transport.
pub fn start(core: &Core, peer: &Rc<Peer>, req: &Req) -> Result<(), SendError> {
    let mut body = req.body.borrow_mut();
    let Body::Send(send) = &mut *body else {
        return Ok(());
    };
    let proc = send.proc();
    let all = in_place(peer).ok_or(SendError::PeerGone)?;
    let Some((stream, buf)) = send.stream_mut() else {
        return Ok(());
    };
    let (number, wanted) = (stream.receive(), stream.wanted());
    let data = (buf.contiguous())
        .and_then(|data| data.get(..wanted as usize))
        .ok_or(SendError::PeerGone)?;
    let data = Region {
        address: data.as_ptr().expose_provenance() as u64,
        len: wanted,
    };
    // SAFETY: the program leaves the buffer of a send in place until the send completes, which happens only after the end of the transfer;
    // `abandon` ends the transfer first.
    let id = unsafe { all.fill(peer.endpoint(), number.0, data) }?;
    stream.set_transfer(id);
    drop(body);
    core.transfers().list(req, (proc, peer), id);
    Ok(())
}

/// Returns true if the transport may read the data of a send.
pub fn is_active(req: &Req) -> bool {
    match &*req.body.borrow() {
        Body::Send(send) => send.stream().and_then(Stream::transfer).is_some(),
        _ => false,
    }
}

/// Ends the transfer of an abandoned send, so that the transport no longer reads the buffer.
pub fn abandon(core: &Core, req: &Req) {
    let transfer = match &mut *req.body.borrow_mut() {
        Body::Send(send) => {
            let proc = send.proc();
            let stream = send.stream_mut();
            stream.and_then(|(stream, _)| Some((proc, stream.end_transfer()?)))
        }
        _ => None,
    };
    if let Some((proc, id)) = transfer
        && let Ok(peer) = core.links().peer(proc)
    {
        core.transfers().give_up(&peer, id);
    }
}
