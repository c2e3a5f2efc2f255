//! The type signatures of messages, compared on request (`pml_ob1_check_types`).
//!
//! Before each message of the program its sender sends a description of it ([`wire::TYPES`]): the signature and the words that name it.
//! The description precedes its message on the way and is kept with it until it is matched, so the two sides are compared for exactly the messages that meet.
//! MPI 5.0, section 3.3.1: the signature of the message equals the beginning of the receive's.
//! Packed data match everything, and so do messages that the library copied before it sent them.

use super::core::{Core, HandlerResult, ProtocolError};
use super::matching::Key;
use super::peer::{Peer, Queued};
use super::recv_body::RecvBody;
use super::wire;
use crate::btl::{Header, Payload, SendError};
use crate::datatype::{Datatype, Named, SendBuf, Signature};
use crate::pml::envelope::{Context, Envelope, Plane};
use crate::pml::error::PmlError;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The longest text of a description on the wire.
const MOST_TEXT: usize = 120;

/// The datatype and count of a message, as its sender gave them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// `None` if the message matches everything.
    signature: Option<Signature>,
    /// "4 elements of MPI_INT".
    text: String,
}

impl Described {
    fn of(buf: &SendBuf) -> Described {
        let (datatype, count) = (buf.datatype(), buf.count());
        Described {
            signature: signature(datatype).map(|one| one.times(count)),
            text: elements(count, datatype),
        }
    }

    /// Returns the encoding: whether there is a signature, its two words, and the text.
    pub fn encode(&self) -> Vec<u8> {
        let [elements, hash] = self.signature.unwrap_or_default().words();
        let words = [u64::from(self.signature.is_some()), elements, hash];
        let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        out.extend_from_slice(self.text.as_bytes());
        out
    }

    /// Decodes a received description; `None` if it is malformed.
    pub fn decode(payload: &[u8]) -> Option<Described> {
        let text = payload.get(24..).filter(|text| text.len() <= MOST_TEXT)?;
        let words = [wire::word(payload, 8)?, wire::word(payload, 16)?];
        Some(Described {
            signature: match wire::word(payload, 0)? {
                0 => None,
                1 => Some(Signature::from_words(words)),
                _ => return None,
            },
            text: std::str::from_utf8(text).ok()?.to_owned(),
        })
    }
}

/// Returns the signature of one element, unless it is packed data.
fn signature(datatype: &Datatype) -> Option<Signature> {
    (!is_packed(datatype)).then(|| datatype.signature())
}

/// Returns true for packed data.
pub(super) fn is_packed(datatype: &Datatype) -> bool {
    datatype.basic_element() == Some(Named::PACKED)
}

/// "4 elements of MPI_INT".
fn elements(count: i64, datatype: &Datatype) -> String {
    let noun = if count == 1 { "element" } else { "elements" };
    let mut text = format!("{count} {noun} of {datatype}");
    // The name of a datatype in the library is ASCII.
    text.truncate(MOST_TEXT);
    text
}

/// The descriptions whose messages have not been matched or stored yet, the latest of each key last.
#[derive(Default)]
pub(super) struct Types(RefCell<HashMap<(Context, Key), Vec<Described>>>);

impl Types {
    /// Returns the latest description of a key.
    pub(super) fn take(&self, context: Context, key: Key) -> Option<Described> {
        let mut all = self.0.borrow_mut();
        let of_key = all.get_mut(&(context, key))?;
        let latest = of_key.pop();
        if of_key.is_empty() {
            all.remove(&(context, key));
        }
        latest
    }

    /// Adds the description of the message that arrives, or is matched, next.
    pub(super) fn put(&self, context: Context, key: Key, described: Described) {
        let mut all = self.0.borrow_mut();
        all.entry((context, key)).or_default().push(described);
    }

    /// Compares a message of `bytes` bytes with the receive that it has matched.
    pub(super) fn mismatch(&self, recv: &RecvBody, key: Key, bytes: u64) -> Option<PmlError> {
        let described = self.take(recv.from().0.context(), key)?;
        let (datatype, count) = recv.elements()?;
        let (sent, _) = (described.signature?, signature(datatype)?);
        // A message that is too long has an error already.
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
}

/// Describes a message to its receiver before it is sent.
pub(super) fn describe(core: &Core, peer: &Rc<Peer>, envelope: &Envelope, buf: &SendBuf) {
    let is_programs = envelope.context == envelope.context.plane(Plane::User);
    if core.types().is_none() || !is_programs {
        return;
    }
    let header = wire::match_header(envelope.context, envelope.source, envelope.tag);
    let payload = Described::of(buf).encode();
    if peer.queue().is_empty() {
        match peer.send(wire::TYPES, header, Payload::Bytes(&payload)) {
            Err(SendError::WouldBlock) => {}
            // The message itself reports a lost peer.
            Ok(()) | Err(SendError::PeerGone | SendError::TooLong { .. }) => return,
        }
    }
    let payload = payload.into();
    core.links()
        .enqueue(peer, Queued::Description { header, payload });
}

/// Handles the description of the message that follows it.
pub(super) fn on_types(core: &Core, header: Header, payload: &[u8]) -> HandlerResult {
    let Some(described) = Described::decode(payload) else {
        return Err(ProtocolError("a malformed description of a message"));
    };
    // A job that compares types may be connected with one that does not.
    if let Some(types) = core.types() {
        let (context, key) = wire::read_match(header);
        types.put(context, key, described);
    }
    Ok(())
}
