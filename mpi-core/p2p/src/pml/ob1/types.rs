//! The check of type signatures of messages (`pml_ob1_check_types`).
//!
//! Before each message of the program, its sender sends a description of the message's type ([`wire::TYPES`]): the type signature, and a text for error messages.
//! The description precedes its message and is stored with it until the message is matched, so each message is compared with the receive that it matches.
//! Rule (MPI 5.0, section 3.3.1): the message's signature equals the beginning of the receive's signature.
//! Packed data match every datatype. So do messages that the library packed before sending (buffered sends).

use super::core::{Core, HandlerResult, ProtocolError};
use super::described::{Described, Types, elements, is_packed, signature};
use super::matching::Key;
use super::peer::{Peer, Queued};
use super::recv_body::RecvBody;
use super::wire;
use crate::btl::{Header, Payload, SendError};
use crate::datatype::SendBuf;
use crate::pml::envelope::{Envelope, Mode, Plane};
use crate::pml::error::PmlError;
use std::rc::Rc;

/// Compares the type of a message of `bytes` bytes with the matched receive. Returns the error of a mismatch.
pub(super) fn mismatch(types: &Types, recv: &RecvBody, key: Key, bytes: u64) -> Option<PmlError> {
    let described = types.take(recv.from().0.context(), key)?;
    let (datatype, count) = recv.elements()?;
    let (sent, _) = (described.signature?, signature(datatype)?);
    // A message that is longer than the buffer already has a truncation error, so it gets no second error.
    if bytes > recv.capacity() || datatype.counts().signature(bytes as i64) == Some(sent) {
        return None;
    }
    Some(PmlError::Types {
        receiver: recv.receiver(),
        source: key.source(),
        tag: key.tag(),
        bytes,
        sent: described.text.into(),
        expected: elements(count, datatype).into(),
    })
}

/// Sends the description of a message to its receiver; the message itself must follow.
fn describe(core: &Core, peer: &Rc<Peer>, envelope: &Envelope, buf: &SendBuf) {
    let is_programs = envelope.context == envelope.context.plane(Plane::User);
    if core.types().is_none() || !is_programs {
        return;
    }
    let header = wire::match_header(envelope.context, envelope.source, envelope.tag);
    let payload = Described::of(buf).encode();
    if peer.queue().is_empty() {
        match peer.send(wire::TYPES, header, Payload::Bytes(&payload)) {
            Err(SendError::WouldBlock) => {}
            // The loss of a peer is reported by the send of the message itself.
            Ok(()) | Err(SendError::PeerGone | SendError::TooLong { .. }) => return,
        }
    }
    let payload = payload.into();
    core.links()
        .enqueue(peer, Queued::Description { header, payload });
}

/// Handles TYPES: stores the description of the message that follows.
pub(super) fn on_types(core: &Core, header: Header, payload: &[u8]) -> HandlerResult {
    let Some(described) = Described::decode(payload) else {
        return Err(ProtocolError("a malformed description of a message"));
    };
    // If this job does not compare types, descriptions from a connected job that compares them are dropped.
    if let Some(types) = core.types() {
        let (context, key) = wire::read_match(header);
        types.put(context, key, described);
    }
    Ok(())
}

/// Sends the description of a message of the program, if types are compared. Returns the mode for sending the message.
#[cold]
#[inline(never)]
pub(super) fn announce(
    core: &Core,
    peer: &Rc<Peer>,
    envelope: &Envelope,
    buf: &SendBuf,
    mode: Mode,
) -> Mode {
    describe(core, peer, envelope, buf);
    let is_programs = envelope.context == envelope.context.plane(Plane::User);
    // A buffered send is already packed and must not wait for a receive, so it is not made synchronous.
    match core.config().check_buffering && is_programs && !is_packed(buf.datatype()) {
        true => Mode::Synchronous,
        false => mode,
    }
}
