//! What ob1 says over a BTL: the active messages of its family ([`crate::btl::Family::Ob1`], numbers 0 to 15) and their fields.
//!
//! Every request number on the wire is index and generation ([`ReqId`]); nothing that arrives is used as an address in this process.
//! The addresses that travel are only ever handed to the system's cross-process copy, which checks them:
//! the sender's in a rendezvous, the receiver's in a call for help; each is one in the memory of the process that names it.

use super::matching::Key;
use crate::btl::{Am, Header, OVERTAKES, Region};
use crate::pml::envelope::Context;
use crate::request::id::ReqId;

/// A whole message. Header: [context, source and tag]; payload: the data.
pub const EAGER: Am = 1;
/// A message that asks first. Header as EAGER; payload: [`Rendezvous`].
pub const RNDV: Am = 2;
/// Receiver to sender: send the data in fragments. Header: [sender's request, receiver's request]; payload: how many bytes are wanted, u64.
pub const CTS: Am = 3;
/// A piece of the data. Header: [receiver's request, offset]; payload: the piece.
/// It says itself where it belongs, so it need not keep any order.
pub const FRAG: Am = 4 | OVERTAKES;
/// Receiver to sender: the data has been fetched, or none was wanted. Header: [sender's request, 0].
pub const FIN: Am = 5;
/// Receiver to sender: copy a part of it. Header: [sender's request, receiver's request]; payload: [`Assist`].
pub const ASSIST: Am = 6;
/// Sender to receiver: its part is done. Header: [receiver's request, bytes of it]; no bytes if it failed; payload: sender's request, u64.
pub const ASSIST_DONE: Am = 7;
/// Receiver to sender: it holds too much that no receive has asked for. Header: [1, 0], ask first with every message; [0, 0], as usual again.
pub const THROTTLE: Am = 8;
/// As [`EAGER`], but longer than messages are that go unasked to any receiver.
pub const EAGER_LONG: Am = 12;
/// A message whose data follow as [`EAGER_FRAG`]s. Header as EAGER; payload: [`Rendezvous`] without a place.
pub const EAGER_START: Am = 9;
/// A piece of such a message, behind the one before. Header: [sender's request, offset]; payload: the piece.
pub const EAGER_FRAG: Am = 10;
/// Receiver to sender: how it wants messages of an order of size. Header: [order, 1 if their data are to follow, 0 if they are to ask].
pub const EAGER_MODE: Am = 11;

/// Sender to receiver: takes a message back that was announced. Header as EAGER; payload: sender's request, u64.
pub const CANCEL: Am = 13;
/// Receiver to sender: the message is dropped that was to be taken back. Header: [sender's request, 0].
pub const CANCELLED: Am = 14;

/// The longest message whose data may follow their announcement, whatever a process is told; its whole memory is provided for when it is announced.
pub const LONGEST_FOLLOWED: u64 = 1 << 20;

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

/// The most regions of a message that travel; more would cost more than packing saves.
pub const MOST_REGIONS: usize = 64;

/// Where a message's data lie in the address space of the process that says so, in packed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Scattered too widely to say.
    Scattered,
    CooperativeCopy([Region; 1]),
    Runs(Box<[Region]>),
}

impl Place {
    /// The place of regions; of too many, or of none, it is not told.
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

    /// In packed order; none if it is not told.
    pub fn regions(&self) -> &[Region] {
        match self {
            Place::Scattered => &[],
            Place::CooperativeCopy(region) => region,
            Place::Runs(regions) => regions,
        }
    }

    /// Reads what [`message`] wrote behind its two words.
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

    /// The bytes of all regions; `None` if no process has so many.
    fn bytes(&self) -> Option<u64> {
        let mut lens = self.regions().iter().map(|region| region.len);
        lens.try_fold(0_u64, u64::checked_add)
    }
}

const REGION: usize = 16;

/// Shows two words and a place as they travel.
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
    // The usual message is short, and clearing the long one would take longer than all the rest.
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

/// What a sender tells about a message that waits for its receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendezvous {
    /// Bytes of packed data.
    pub bytes: u64,
    pub sender: ReqId,
    /// Where they lie, if the receiver may read them there; not less of them than there are.
    pub place: Place,
}

impl Rendezvous {
    /// The length of a rendezvous on the wire.
    pub fn bytes_with(place: &Place) -> usize {
        16 + REGION * place.regions().len()
    }

    /// Shows the bytes that travel to `show`; they are gone afterwards.
    pub fn encoded<R>(&self, show: impl FnOnce(&[u8]) -> R) -> R {
        message([self.bytes, self.sender.0], &self.place, show)
    }

    /// What a peer has sent; `None` if it is too short, or names a place for less than the message.
    pub fn decode(payload: &[u8]) -> Option<Rendezvous> {
        let (bytes, place) = (word(payload, 0)?, Place::decode(payload.get(16..)?)?);
        let whole = place == Place::Scattered || place.bytes()? >= bytes;
        whole.then_some(Rendezvous {
            bytes,
            sender: ReqId(word(payload, 8)?),
            place,
        })
    }
}

/// What a receiver tells a sender that may have a part in the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assist {
    /// The number of the transport's offer.
    pub number: u32,
    /// How many bytes the receiver takes of them.
    pub wanted: u64,
    /// Where they belong.
    pub place: Place,
}

impl Assist {
    /// As [`Rendezvous::encoded`].
    pub fn encoded<R>(&self, show: impl FnOnce(&[u8]) -> R) -> R {
        message([self.number.into(), self.wanted], &self.place, show)
    }

    /// What a peer has sent; `None` if it is too short, or names a place for less than is wanted.
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

/// The little-endian word at `at`, if it is there.
pub fn word(payload: &[u8], at: usize) -> Option<u64> {
    let bytes = payload.get(at..at + 8)?;
    bytes.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Up to a few more regions than travel, none of them empty.
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
            let r = Rendezvous { bytes, sender: ReqId(sender), place };
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
            let r = Rendezvous { bytes: len + more, sender: ReqId(1), place };
            prop_assert_eq!(r.encoded(Rendezvous::decode), None);
        }

        #[test]
        fn a_short_rendezvous_is_refused(len in 0usize..16) {
            prop_assert_eq!(Rendezvous::decode(&vec![7; len]), None);
        }

        #[test]
        fn whatever_comes_is_read_or_refused(payload in proptest::collection::vec(any::<u8>(), 0..1100)) {
            let _ = (Rendezvous::decode(&payload), Assist::decode(&payload));
        }

        #[test]
        fn a_match_header_survives_the_wire(context: u64, source: i32, tag: i32) {
            prop_assert_eq!(read_match(match_header(Context(context), source, tag)), (Context(context), Key::new(source, tag)));
        }
    }
}
