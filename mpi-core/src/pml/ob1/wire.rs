//! What ob1 says over a BTL: the active messages and their fields.
//!
//! Every request number on the wire is index and generation ([`ReqId`]); nothing that arrives is used as an address in this process.
//! The addresses that travel are only ever handed to the system's cross-process copy, which checks them:
//! the sender's in a rendezvous, the receiver's in a call for help; each is one in the memory of the process that names it.

use super::super::Context;
use super::matching::Key;
use crate::btl::{Am, Header, OVERTAKES};
use crate::request::ReqId;

/// A whole message. Header: [context, source and tag]; payload: the data.
pub const EAGER: Am = 1;
/// A message that asks first. Header as EAGER; payload: [`Rendezvous`].
pub const RENDEZVOUS: Am = 2;
/// Receiver to sender: send the data in fragments. Header: [sender's request, receiver's request]; payload: how many bytes are wanted, u64.
pub const CLEAR: Am = 3;
/// A piece of the data. Header: [receiver's request, offset]; payload: the piece.
/// It says itself where it belongs, so it need not keep any order.
pub const FRAGMENT: Am = 4 | OVERTAKES;
/// Receiver to sender: the data has been fetched, or none was wanted. Header: [sender's request, 0].
pub const FINISHED: Am = 5;
/// Receiver to sender: copy a part of it. Header: [sender's request, receiver's request]; payload: [`Help`].
pub const HELP: Am = 6;
/// Sender to receiver: its part is done. Header: [receiver's request, bytes of it]; no bytes if it failed; payload: sender's request, u64.
pub const HELPED: Am = 7;

/// A message's match header in two words.
#[inline]
pub fn match_header(context: Context, source: i32, tag: i32) -> Header {
    [
        context.0,
        u64::from(source as u32) << 32 | u64::from(tag as u32),
    ]
}

/// The context and key of a match header.
#[inline]
pub fn read_match(header: Header) -> (Context, Key) {
    (
        Context(header[0]),
        Key::new((header[1] >> 32) as i32, header[1] as i32),
    )
}

/// What a sender tells about a message that waits for its receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendezvous {
    /// Bytes of packed data.
    pub bytes: u64,
    pub sender: ReqId,
    /// Where the data lie in the sender's address space if they lie together, else 0.
    pub address: u64,
}

impl Rendezvous {
    pub const BYTES: usize = 24;

    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&self.bytes.to_le_bytes());
        out[8..16].copy_from_slice(&self.sender.0.to_le_bytes());
        out[16..].copy_from_slice(&self.address.to_le_bytes());
        out
    }

    pub fn decode(payload: &[u8]) -> Option<Rendezvous> {
        Some(Rendezvous {
            bytes: word(payload, 0)?,
            sender: ReqId(word(payload, 8)?),
            address: word(payload, 16)?,
        })
    }
}

/// What a receiver tells a sender that may have a part in the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Help {
    /// The number of the transport's offer.
    pub number: u32,
    /// Where the data belong in the receiver's address space.
    pub address: u64,
    /// How many bytes the receiver takes of them.
    pub wanted: u64,
}

impl Help {
    pub const BYTES: usize = 24;

    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&u64::from(self.number).to_le_bytes());
        out[8..16].copy_from_slice(&self.address.to_le_bytes());
        out[16..].copy_from_slice(&self.wanted.to_le_bytes());
        out
    }

    pub fn decode(payload: &[u8]) -> Option<Help> {
        Some(Help {
            number: u32::try_from(word(payload, 0)?).ok()?,
            address: word(payload, 8)?,
            wanted: word(payload, 16)?,
        })
    }
}

/// The little-endian word at `at`, if it is there.
pub fn word(payload: &[u8], at: usize) -> Option<u64> {
    let bytes = payload.get(at..at + 8)?;
    bytes.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_rendezvous_survives_the_wire(bytes: u64, sender: u64, address: u64) {
            let r = Rendezvous { bytes, sender: ReqId(sender), address };
            prop_assert_eq!(Rendezvous::decode(&r.encode()), Some(r));
        }

        #[test]
        fn a_call_for_help_survives_the_wire_and_a_short_one_is_refused(number: u32, address: u64, wanted: u64, len in 0..Help::BYTES) {
            let help = Help { number, address, wanted };
            prop_assert_eq!(Help::decode(&help.encode()), Some(help));
            prop_assert_eq!(Help::decode(&help.encode()[..len]), None);
        }

        #[test]
        fn a_short_rendezvous_is_refused(len in 0..Rendezvous::BYTES) {
            prop_assert_eq!(Rendezvous::decode(&vec![7; len]), None);
        }

        #[test]
        fn a_match_header_survives_the_wire(context: u64, source: i32, tag: i32) {
            prop_assert_eq!(read_match(match_header(Context(context), source, tag)), (Context(context), Key::new(source, tag)));
        }
    }
}
