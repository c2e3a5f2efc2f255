//! Frames: the wire format of an established connection. Each frame consists of a fixed header and a payload.
//!
//! ```text
//! 0       4    5     6      8         16        24
//! | len   | am | kind| zero | header0 | header1 | payload ...
//! ```
//!
//! Numbers are little-endian.
//! A [`Kind::Message`] contains an active message.
//! A [`Kind::Goodbye`] is the last frame of a process that closes the connection in order. If a stream ends without it, the process has died.
//!
//! [`Frame::decode`] accepts any input without a panic; for a malformed header it returns an error that describes the defect.

use super::super::{Am, Header};
use std::fmt;

/// Length of a frame's header in bytes.
pub const HEADER: usize = 24;

/// A decoded frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: Kind,
    pub am: Am,
    pub header: Header,
    /// The length of the payload in bytes.
    pub len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Message = 1,
    Goodbye = 2,
}

/// The reason why a header is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    Kind(u8),
    /// The reserved bytes, which must be zero, have this value.
    Reserved(u16),
    TooLong {
        len: usize,
        max: usize,
    },
    /// A disconnect message has a payload, which it must not have.
    LongGoodbye {
        len: usize,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Kind(kind) => write!(f, "a frame of the unknown kind {kind} came"),
            FrameError::Reserved(bits) => {
                write!(f, "a frame with the unknown flags {bits:#06x} came")
            }
            FrameError::TooLong { len, max } => write!(
                f,
                "a frame of {len} bytes came, but the longest one has {max}"
            ),
            FrameError::LongGoodbye { len } => {
                write!(f, "a disconnect message of {len} bytes arrived")
            }
        }
    }
}

impl Frame {
    /// Returns the frame of an active message with a payload of `len` bytes.
    #[inline]
    pub fn message(am: Am, header: Header, len: usize) -> Frame {
        Frame {
            kind: Kind::Message,
            am,
            header,
            len,
        }
    }

    #[inline]
    pub fn encode(self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        let first = self.len as u64 & 0xffff_ffff
            | u64::from(self.am) << 32
            | u64::from(self.kind as u8) << 40;
        out[..8].copy_from_slice(&first.to_le_bytes());
        out[8..16].copy_from_slice(&self.header[0].to_le_bytes());
        out[16..].copy_from_slice(&self.header[1].to_le_bytes());
        out
    }

    /// Decodes a header. A payload longer than `max` bytes is an error, so the receiver allocates no memory for it.
    #[inline]
    pub fn decode(bytes: &[u8; HEADER], max: usize) -> Result<Frame, FrameError> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let first = word(0);
        let len = first as u32 as usize;
        let kind = match (first >> 40) as u8 {
            1 => Kind::Message,
            2 => Kind::Goodbye,
            kind => return Err(FrameError::Kind(kind)),
        };
        if first >> 48 != 0 {
            return Err(FrameError::Reserved((first >> 48) as u16));
        }
        if len > max {
            return Err(FrameError::TooLong { len, max });
        }
        if kind == Kind::Goodbye && len > 0 {
            return Err(FrameError::LongGoodbye { len });
        }
        Ok(Frame {
            kind,
            am: (first >> 32) as u8,
            header: [word(8), word(16)],
            len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: usize = 1 << 20;

    proptest! {
        #[test]
        fn a_frame_survives_the_wire(am: u8, header: [u64; 2], len in 0..=MAX) {
            let frame = Frame { kind: Kind::Message, am, header, len };
            prop_assert_eq!(Frame::decode(&frame.encode(), MAX), Ok(frame));
        }

        /// Random bytes rarely pass the first check, so valid frames are damaged instead.
        #[test]
        fn a_damaged_frame_is_a_frame_or_an_error(len in 0..=2 * MAX, at in 0..HEADER, bit in 0u32..8) {
            let mut bytes = Frame { kind: Kind::Message, am: 1, header: [2, 3], len }.encode();
            bytes[at] ^= 1u8 << bit;
            match Frame::decode(&bytes, MAX) {
                Ok(frame) => prop_assert_eq!(frame.encode(), bytes),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn a_goodbye_carries_nothing() {
        let goodbye = Frame {
            kind: Kind::Goodbye,
            am: 0,
            header: [0; 2],
            len: 0,
        };
        assert_eq!(Frame::decode(&goodbye.encode(), 0), Ok(goodbye));
        let long = Frame { len: 1, ..goodbye };
        let error = Frame::decode(&long.encode(), MAX);
        assert_eq!(error, Err(FrameError::LongGoodbye { len: 1 }));
    }
}
