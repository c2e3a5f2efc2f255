//! The frame header of each message on a fabric.
//!
//! ```text
//! header 2 x u64 | sender u32 | number u16 | active message u8 | version and kind u8 | key u64
//! ```
//!
//! The key is that of the receiver's card.
//! So a process ignores the messages of senders that have not read its card, which do not belong to this job.
//! [`Frame::decode`] accepts any input without a panic.

use crate::btl::{Am, Header, ProcId};

/// Length of a frame header in bytes.
pub const HEADER: usize = 32;
/// Version of the format, in the upper half of byte 23 (version and kind).
const VERSION: u8 = 0x10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub header: Header,
    pub from: ProcId,
    /// The sequence number of the message; unused in messages that may overtake others.
    pub number: u16,
    pub am: Am,
    pub kind: Kind,
    pub key: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Message,
    /// The sender shuts down or replies; this is its last message on the connection.
    Disconnect,
    /// The sender has closed the connection after an error.
    Cut,
    /// Data for a place that the receiver has posted: the header contains the place's number and length.
    Fill,
}

impl Frame {
    #[inline]
    pub fn encode(&self) -> [u8; HEADER] {
        let kind = match self.kind {
            Kind::Message => 0,
            Kind::Disconnect => 1,
            Kind::Cut => 2,
            Kind::Fill => 3,
        };
        let words = [
            self.header[0],
            self.header[1],
            u64::from(self.from)
                | u64::from(self.number) << 32
                | u64::from(self.am) << 48
                | u64::from(VERSION | kind) << 56,
            self.key,
        ];
        let mut bytes = [0; HEADER];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Frame> {
        let bytes: &[u8; HEADER] = bytes.try_into().ok()?;
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
            u64::from_le_bytes(word)
        };
        let third = word(2);
        let kind = match (third >> 56) as u8 {
            VERSION => Kind::Message,
            kind if kind == VERSION | 1 => Kind::Disconnect,
            kind if kind == VERSION | 2 => Kind::Cut,
            kind if kind == VERSION | 3 => Kind::Fill,
            _ => return None,
        };
        Some(Frame {
            header: [word(0), word(1)],
            from: third as u32,
            number: (third >> 32) as u16,
            am: (third >> 48) as u8,
            kind,
            key: word(3),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_one_frame_or_none(bytes in prop::collection::vec(any::<u8>(), 0..40), kind in 0u8..5) {
            let mut bytes = bytes;
            if let Some(byte) = bytes.get_mut(23) {
                *byte = VERSION | kind;
            }
            match Frame::decode(&bytes) {
                Some(frame) => prop_assert_eq!(&frame.encode()[..], &bytes[..]),
                None => prop_assert!(bytes.len() != HEADER || kind > 3),
            }
        }
    }
}
