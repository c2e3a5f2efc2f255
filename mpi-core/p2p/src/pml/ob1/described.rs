//! The sender's description of a message's datatype ([`wire::TYPES`](super::wire::TYPES)),
//! and the received descriptions whose messages have not arrived.

use super::matching::Key;
use super::wire;
use crate::datatype::{Datatype, Named, SendBuf, Signature};
use crate::pml::envelope::Context;
use std::cell::RefCell;
use std::collections::HashMap;

/// The maximum length in bytes of a description's text.
const MOST_TEXT: usize = 120;

/// The datatype and count of a message, as passed to the send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// `None` if the message matches every datatype (packed data).
    pub(super) signature: Option<Signature>,
    /// The count and datatype for error texts, such as "4 elements of MPI_INT".
    pub(super) text: String,
}

impl Described {
    pub(super) fn of(buf: &SendBuf) -> Described {
        let (datatype, count) = (buf.datatype(), buf.count());
        Described {
            signature: signature(datatype).map(|one| one.times(count)),
            text: elements(count, datatype),
        }
    }

    /// Returns the encoding: a flag (1 if a signature is present), the signature's two words, and the text.
    pub fn encode(&self) -> Vec<u8> {
        let [elements, hash] = self.signature.unwrap_or_default().words();
        let words = [u64::from(self.signature.is_some()), elements, hash];
        let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        out.extend_from_slice(self.text.as_bytes());
        out
    }

    /// Decodes a received description; returns `None` if it is malformed.
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

/// Returns the signature of one element, or `None` for packed data.
pub(super) fn signature(datatype: &Datatype) -> Option<Signature> {
    (!is_packed(datatype)).then(|| datatype.signature())
}

/// Returns true for packed data (`MPI_PACKED`).
pub(super) fn is_packed(datatype: &Datatype) -> bool {
    datatype.basic_element() == Some(Named::PACKED)
}

/// Returns the count and the datatype as text, such as "4 elements of MPI_INT".
pub(super) fn elements(count: i64, datatype: &Datatype) -> String {
    let noun = if count == 1 { "element" } else { "elements" };
    let mut text = format!("{count} {noun} of {datatype}");
    // Names of datatypes consist of ASCII characters, so every byte index is valid for `truncate`.
    text.truncate(MOST_TEXT);
    text
}

/// The received descriptions of messages that have not been matched or buffered yet,
/// in order of arrival for each key.
#[derive(Default)]
pub(super) struct Types(RefCell<HashMap<(Context, Key), Vec<Described>>>);

impl Types {
    /// Removes and returns the latest description of a key.
    pub(super) fn take(&self, context: Context, key: Key) -> Option<Described> {
        let mut all = self.0.borrow_mut();
        let of_key = all.get_mut(&(context, key))?;
        let latest = of_key.pop();
        if of_key.is_empty() {
            all.remove(&(context, key));
        }
        latest
    }

    /// Adds the description of the next message with this key.
    pub(super) fn put(&self, context: Context, key: Key, described: Described) {
        let mut all = self.0.borrow_mut();
        all.entry((context, key)).or_default().push(described);
    }
}
