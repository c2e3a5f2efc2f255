//! Fuzz targets: entry points that pass arbitrary bytes to the decoders of data from other processes and hosts.
//!
//! A target panics if the decoder panics, or if the decoder accepts bytes that its encoder would not produce.
//! cargo-fuzz calls each target from `fuzz/fuzz_targets/`; the test below calls all targets with random bytes.

use crate::btl::fabric::{card::Card as FabricCard, frame::Frame as FabricFrame};
use crate::btl::fabric::{named_address, transfers};
use crate::btl::tcp::address_record::AddressRecord;
use crate::btl::tcp::frame::{Frame, HEADER};
use crate::btl::tcp::hello::Hello;
use crate::btl::tcp::incoming::{End, Incoming};
use crate::btl::{Am, Header, ProcId, Sink};
use crate::rte::cards;
use crate::rte::wire::{Lines, Message, unhex};
use crate::universe::Card;
use mpi_base::fdpass::Key;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use std::os::fd::AsFd as _;

/// The name of a fuzz target, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

/// The fuzz targets of this package.
pub const ENTRIES: &[Entry] = &[
    ("tcp_frame", tcp_frame),
    ("tcp_hello", tcp_hello),
    ("tcp_address_record", tcp_address_record),
    ("tcp_stream", tcp_stream),
    ("pmi_line", pmi_line),
    ("node_card", node_card),
    ("universe_card", universe_card),
    ("fabric_card", fabric_card),
    ("fabric_header", fabric_header),
    ("fabric_offers", fabric_offers),
];

/// The maximum payload in bytes that a fuzzed peer may announce.
const LONGEST: usize = 64 << 10;

/// Fuzzes the header of a TCP frame. The decoder must accept only encodings that the encoder produces.
pub fn tcp_frame(bytes: &[u8]) {
    let Some(header) = bytes.first_chunk::<HEADER>() else {
        return;
    };
    match Frame::decode(header, LONGEST) {
        Ok(frame) => assert_eq!(frame.encode(), *header),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Fuzzes the hello of a TCP connection. The decoder must reject all bytes, because they were generated without the key.
pub fn tcp_hello(bytes: &[u8]) {
    let key = Key::from_bytes([1; 32]);
    assert_eq!(Hello::decode(bytes, &key), None);
}

/// Fuzzes the address record that a process publishes. The decoder must accept only encodings that the encoder produces.
pub fn tcp_address_record(bytes: &[u8]) {
    if let Some(record) = AddressRecord::decode(bytes) {
        assert_eq!(record.encode(), bytes);
    }
}

/// Fuzzes the card that a fabric transport publishes. The decoder must accept only encodings that the encoder produces.
pub fn fabric_card(bytes: &[u8]) {
    if let Some(card) = FabricCard::decode(bytes) {
        assert_eq!(card.encode(), bytes);
    }
    if let Some((name, address)) = named_address::split(bytes) {
        assert_eq!(name.len() + address.len() + 1, bytes.len());
    }
}

/// Fuzzes the frame header of a fabric message. The decoder must accept only encodings that the encoder produces.
pub fn fabric_header(bytes: &[u8]) {
    if let Some(frame) = FabricFrame::decode(bytes) {
        assert_eq!(frame.encode(), bytes);
    }
}

/// Fuzzes the offers of data for posted places: their numbers, lengths and order.
/// An offer must find at most one place, which must be posted for its sender and have its length.
pub fn fabric_offers(bytes: &[u8]) {
    transfers::fuzz(bytes);
}

/// A sink that checks the length of messages and drops them.
struct Nothing;

impl Sink for Nothing {
    fn deliver(&self, _: ProcId, _: Am, _: Header, payload: &[u8]) {
        assert!(payload.len() <= LONGEST);
    }
}

/// Fuzzes a stream of TCP frames, sent in several pieces. The first byte of the input determines the length of the pieces.
/// The receiver must end, with or without an error.
pub fn tcp_stream(bytes: &[u8]) {
    let Some((first, stream)) = bytes.split_first() else {
        return;
    };
    let kind = SocketType::STREAM;
    let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::NONBLOCK, None);
    let Ok((ours, theirs)) = pair else {
        // The process has no free file descriptor, which is not caused by the input.
        return;
    };
    let mut pieces = stream.chunks(1 + 8 * usize::from(*first));
    let (mut reader, mut writer, mut end) = (Incoming::new(LONGEST), Some(theirs), None);
    while end.is_none() {
        match (pieces.next(), &writer) {
            (Some(piece), Some(open)) => {
                assert_eq!(send(open, piece, SendFlags::NOSIGNAL), Ok(piece.len()));
            }
            _ => drop(writer.take()),
        }
        end = reader.progress(ours.as_fd(), 1, &Nothing).end;
    }
    let is_known = matches!(end, Some(End::Closed | End::Goodbye | End::Garbled(_)));
    assert!(is_known, "{end:?}");
}

/// Fuzzes lines of PMI-1, the launcher's protocol. Each line and each value must be parsed or rejected.
pub fn pmi_line(bytes: &[u8]) {
    let mut lines = Lines::default();
    lines.push(bytes);
    while let Ok(Some(line)) = lines.next_line() {
        if let Ok(message) = Message::parse(&line) {
            let value = message.bytes("value").and_then(unhex);
            let _ = (
                message.cmd(),
                message.succeeded(),
                message.number("rc"),
                value,
            );
        }
    }
}

/// Fuzzes the card that a rank publishes for the other ranks of its node.
pub fn node_card(bytes: &[u8]) {
    cards::fuzz(bytes);
}

/// Fuzzes the card that a process publishes for processes of other jobs. The decoder must accept only encodings that the encoder produces.
pub fn universe_card(bytes: &[u8]) {
    if let Some(card) = Card::decode(bytes) {
        assert_eq!(card.encode(), bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            ENTRIES.iter().for_each(|(_, entry)| entry(&bytes));
        }
    }
}
