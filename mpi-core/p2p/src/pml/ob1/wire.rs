//! The wire format of ob1: the active messages of [`crate::btl::Family::Ob1`] (0 to 15).
//!
//! Every request ID on the wire consists of an index and a generation ([`ReqId`]); no received value is used
//! as an address in this process.
//! Received addresses are only passed to the system's copy between processes, which checks them.
//! A rendezvous contains addresses of the sender's memory, an ASSIST addresses of the receiver's memory.

use super::matching::Key;
use crate::btl::{Am, Header, OVERTAKES, Region};
use crate::pml::envelope::Context;
use crate::request::id::ReqId;

/// A complete message. Header: [context, source and tag]; payload: the data.
pub const EAGER: Am = 1;
/// A rendezvous announcement. Header as EAGER; payload: [`Rendezvous`].
pub const RNDV: Am = 2;
/// A rendezvous announcement with the key of registered memory. Header as EAGER; payload: number of bytes, u64; sender's request, u64; key.
pub const RNDV_KEY: Am = 15;
/// Receiver to sender: send the data in fragments. Header: [sender's request, receiver's request]; payload: the requested number of bytes, u64,
/// with the flag [`IN_PLACE`] if the data may be delivered in place.
pub const CTS: Am = 3;
/// The flag in the payload of [`CTS`]: the receiver has posted its buffer under the ID of its request
/// ([`InPlace::post`](crate::btl::InPlace::post)).
pub const IN_PLACE: u64 = 1 << 63;
/// A fragment of the data. Header: [receiver's request, offset]; payload: the fragment.
/// The header contains the offset, so fragments may arrive in any order.
pub const FRAG: Am = 4 | OVERTAKES;
/// Receiver to sender: the receiver has read the data, or needs none. Header: [sender's request, 0].
pub const FIN: Am = 5;
/// Receiver to sender: copy a part of the message. Header: [sender's request, receiver's request]; payload: [`Assist`].
pub const ASSIST: Am = 6;
/// Sender to receiver: the sender's part of the copy is complete. Header: [receiver's request, bytes copied (0 after a failure)]; payload: sender's request, u64.
pub const ASSIST_DONE: Am = 7;
/// Receiver to sender: flow control of unexpected messages. Header: [1, 0], use rendezvous for
/// every message; [0, 0], the eager protocol is permitted again.
pub const THROTTLE: Am = 8;
/// A complete message like [`EAGER`], but longer than the eager limit.
pub const EAGER_LONG: Am = 12;
/// The announcement of a message whose data follow as [`EAGER_FRAG`]s. Header as EAGER; payload: [`Rendezvous`] without regions.
pub const EAGER_START: Am = 9;
/// The next fragment of a message announced by [`EAGER_START`]. Header: [sender's request, offset]; payload: the fragment.
pub const EAGER_FRAG: Am = 10;
/// Receiver to sender: the protocol for messages of a size class. Header: [size class, 1 for the eager
/// pipeline, 0 for rendezvous].
pub const EAGER_MODE: Am = 11;

/// Sender to receiver: cancel an announced message. Header as EAGER; payload: sender's request, u64.
pub const CANCEL: Am = 13;
/// Receiver to sender: the cancelled message has been discarded. Header: [sender's request, 0].
pub const CANCELLED: Am = 14;
/// Sender to receiver: the type signature of the next message with the same header. Header as EAGER; payload: [`Described`](super::described::Described).
pub const TYPES: Am = 0;

/// The maximum length of a message of the eager pipeline in bytes, even if EAGER_MODE requests the pipeline:
/// the receiver allocates the whole buffer at the first fragment of an unexpected message.
pub const LONGEST_FOLLOWED: u64 = 1 << 20;

/// Returns the match header of a message: the context; and source and tag in one integer.
#[inline]
pub fn match_header(context: Context, source: i32, tag: i32) -> Header {
    [
        context.0,
        u64::from(source as u32) << 32 | u64::from(tag as u32),
    ]
}

/// Returns the context and the key in a match header.
#[inline]
pub fn read_match(header: Header) -> (Context, Key) {
    (
        Context(header[0]),
        Key::new((header[1] >> 32) as i32, header[1] as i32),
    )
}

/// The maximum number of regions in one announcement; more regions would cost more time than packing the data.
pub const MOST_REGIONS: usize = 64;

/// The regions of a message's data in the sending process's address space, in packed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// No regions: the data are in too many segments, or must not be read directly.
    Scattered,
    CooperativeCopy([Region; 1]),
    Runs(Box<[Region]>),
}

impl Place {
    /// Creates a place from regions; `Scattered` if there are none, or more than [`MOST_REGIONS`].
    pub fn new(regions: impl ExactSizeIterator<Item = Region>) -> Place {
        let mut regions = regions;
        match regions.len() {
            0 => Place::Scattered,
            1 => regions
                .next()
                .map_or(Place::Scattered, |region| Place::CooperativeCopy([region])),
            2..=MOST_REGIONS => Place::Runs(regions.collect()),
            _ => Place::Scattered,
        }
    }

    /// Returns the regions in packed order; empty for `Scattered`.
    pub fn regions(&self) -> &[Region] {
        match self {
            Place::Scattered => &[],
            Place::CooperativeCopy(region) => region,
            Place::Runs(regions) => regions,
        }
    }

    /// Decodes the regions that [`message`] wrote after two 64-bit integers.
    fn decode(payload: &[u8]) -> Option<Place> {
        let (regions, rest) = payload.as_chunks::<REGION>();
        if !rest.is_empty() || regions.len() > MOST_REGIONS {
            return None;
        }
        let region = |bytes: &[u8; REGION]| {
            let [address, len] = [0, 8].map(|at| word(bytes, at).unwrap_or_default());
            Region { address, len }
        };
        Some(Place::new(regions.iter().map(region)))
    }

    /// Returns the total length of all regions in bytes; `None` on overflow.
    fn bytes(&self) -> Option<u64> {
        let mut lens = self.regions().iter().map(|region| region.len);
        lens.try_fold(0_u64, u64::checked_add)
    }
}

const REGION: usize = 16;

/// Calls `show` with the encoding: two 64-bit integers and the regions of a place.
fn message<R>(words: [u64; 2], place: &Place, show: impl FnOnce(&[u8]) -> R) -> R {
    let regions = place.regions();
    let write = |out: &mut [u8]| {
        let all = regions
            .iter()
            .flat_map(|region| [region.address, region.len]);
        let places = out.as_chunks_mut::<8>().0;
        for (to, word) in places.iter_mut().zip(words.into_iter().chain(all)) {
            *to = word.to_le_bytes();
        }
    };
    let len = 16 + REGION * regions.len();
    // Most messages have at most one region. For these, clearing the long array would take longer than the rest of the function.
    if regions.len() <= 1 {
        let mut out = [0; 16 + REGION];
        write(&mut out);
        show(&out[..len])
    } else {
        let mut out = [0; 16 + REGION * MOST_REGIONS];
        write(&mut out);
        show(&out[..len])
    }
}

/// A sender's announcement of a message that waits for its receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendezvous {
    /// The length of the message's packed data in bytes.
    pub bytes: u64,
    pub sender: ReqId,
    /// The addresses of the data (`bytes` bytes or more) if the receiver may read them directly.
    pub place: Place,
    /// The transport's key of the data, if they are registered for remote reads.
    pub key: Option<Box<[u8]>>,
}

impl Rendezvous {
    /// Returns the length of an encoded rendezvous in bytes.
    pub fn bytes_with(place: &Place) -> usize {
        16 + REGION * place.regions().len()
    }

    /// Calls `show` with the encoding, which is valid during the call only.
    pub fn encoded<R>(&self, show: impl FnOnce(&[u8]) -> R) -> R {
        message([self.bytes, self.sender.0], &self.place, show)
    }

    /// Decodes a received rendezvous. Returns `None` if it is malformed, or its regions are shorter than the message.
    pub fn decode(payload: &[u8]) -> Option<Rendezvous> {
        let (bytes, place) = (word(payload, 0)?, Place::decode(payload.get(16..)?)?);
        let whole = place == Place::Scattered || place.bytes()? >= bytes;
        whole.then_some(Rendezvous {
            bytes,
            sender: ReqId(word(payload, 8)?),
            place,
            key: None,
        })
    }

    /// Returns the encoding of a rendezvous with a key ([`RNDV_KEY`]).
    pub fn with_key(bytes: u64, sender: ReqId, key: &[u8]) -> Vec<u8> {
        let words = [bytes.to_le_bytes(), sender.0.to_le_bytes()];
        [words.as_flattened(), key].concat()
    }

    /// Decodes a received rendezvous with a key ([`RNDV_KEY`]).
    pub fn decode_with_key(payload: &[u8]) -> Option<Rendezvous> {
        Some(Rendezvous {
            bytes: word(payload, 0)?,
            sender: ReqId(word(payload, 8)?),
            place: Place::Scattered,
            key: Some(payload.get(16..)?.into()),
        })
    }
}

/// A receiver's request to the sender to copy a part of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assist {
    /// The transport's ID of the cooperative copy.
    pub number: u32,
    /// The number of the message's bytes that fit into the receive buffer.
    pub wanted: u64,
    /// The addresses of the receive buffer.
    pub place: Place,
}

impl Assist {
    /// Calls `show` with the encoding, which is valid during the call only.
    pub fn encoded<R>(&self, show: impl FnOnce(&[u8]) -> R) -> R {
        message([self.number.into(), self.wanted], &self.place, show)
    }

    /// Decodes a received ASSIST. Returns `None` if it is malformed, or its regions are shorter than `wanted`.
    pub fn decode(payload: &[u8]) -> Option<Assist> {
        let (number, wanted) = (word(payload, 0)?, word(payload, 8)?);
        let place = Place::decode(payload.get(16..)?)?;
        (place.bytes()? >= wanted).then_some(Assist {
            number: u32::try_from(number).ok()?,
            wanted,
            place,
        })
    }
}

/// Returns the little-endian 64-bit integer at byte `at`; `None` if it exceeds the payload.
pub fn word(payload: &[u8], at: usize) -> Option<u64> {
    let bytes = payload.get(at..at + 8)?;
    bytes.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates places with up to a few more regions than [`MOST_REGIONS`]; no region is empty.
    fn places() -> impl Strategy<Value = Place> {
        let region =
            (any::<u64>(), 1u64..1 << 50).prop_map(|(address, len)| Region { address, len });
        proptest::collection::vec(region, 0..MOST_REGIONS + 3)
            .prop_map(|regions| Place::new(regions.into_iter()))
    }

    proptest! {
        #[test]
        fn a_rendezvous_survives_the_wire(place in places(), bytes: u64, sender: u64) {
            let bytes = match place.bytes() {
                Some(0) | None => bytes,
                Some(all) => bytes % (all + 1),
            };
            let r = Rendezvous { bytes, sender: ReqId(sender), place, key: None };
            prop_assert_eq!(r.encoded(Rendezvous::decode), Some(r));
        }

        #[test]
        fn a_call_for_help_survives_the_wire_and_a_short_one_is_refused(place in places(), number: u32, wanted: u64, cut in 1usize..16) {
            let help = Assist { number, wanted: wanted % (place.bytes().unwrap() + 1), place };
            prop_assert_eq!(help.encoded(Assist::decode), Some(help.clone()));
            prop_assert_eq!(help.encoded(|all| Assist::decode(&all[..all.len() - cut])), None);
        }

        #[test]
        fn a_place_that_is_too_small_is_refused(len in 0u64..100, more in 1u64..100) {
            let place = Place::CooperativeCopy([Region { address: 1, len }]);
            let help = Assist { number: 1, wanted: len + more, place: place.clone() };
            prop_assert_eq!(help.encoded(Assist::decode), None);
            let r = Rendezvous { bytes: len + more, sender: ReqId(1), place, key: None };
            prop_assert_eq!(r.encoded(Rendezvous::decode), None);
        }

        #[test]
        fn a_key_survives_the_wire(bytes: u64, sender: u64, key in proptest::collection::vec(any::<u8>(), 0..90)) {
            let all = Rendezvous::with_key(bytes, ReqId(sender), &key);
            let r = Rendezvous::decode_with_key(&all).unwrap();
            prop_assert_eq!((r.bytes, r.sender, r.key.as_deref()), (bytes, ReqId(sender), Some(&key[..])));
            prop_assert_eq!(Rendezvous::decode_with_key(&all[..15]), None);
        }

        #[test]
        fn a_short_rendezvous_is_refused(len in 0usize..16) {
            prop_assert_eq!(Rendezvous::decode(&vec![7; len]), None);
        }

        #[test]
        fn a_match_header_survives_the_wire(context: u64, source: i32, tag: i32) {
            prop_assert_eq!(read_match(match_header(Context(context), source, tag)), (Context(context), Key::new(source, tag)));
        }
    }
}
