//! Fuzz targets: entry points that pass arbitrary bytes to the decoders of messages from other processes.
//!
//! A target panics if the decoder panics,
//! or if the decoder accepts bytes that its encoder would not produce.
//! cargo-fuzz calls each target from `fuzz/fuzz_targets/`; the test below calls all targets with random bytes.

use crate::pml::ob1::described::Described;
use crate::pml::ob1::wire::{Assist, Rendezvous};

/// The name of a fuzz target, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

/// The fuzz targets of this package.
pub const ENTRIES: &[Entry] = &[
    ("rendezvous", rendezvous),
    ("call_for_help", call_for_help),
    ("described_types", described_types),
];

/// Fuzzes the announcement of a long message (RNDV).
/// A payload that the decoder accepts must be unchanged after decoding and encoding.
pub fn rendezvous(payload: &[u8]) {
    if let Some(read) = Rendezvous::decode_with_key(payload) {
        let key = read.key.as_deref().unwrap_or_default();
        assert_eq!(Rendezvous::with_key(read.bytes, read.sender, key), payload);
    }
    if let Some(read) = Rendezvous::decode(payload) {
        assert_eq!(read.encoded(Rendezvous::decode).as_ref(), Some(&read));
    }
}

/// Fuzzes the receiver's request (ASSIST) that asks the sender to copy a part of a message.
pub fn call_for_help(payload: &[u8]) {
    if let Some(read) = Assist::decode(payload) {
        assert_eq!(read.encoded(Assist::decode).as_ref(), Some(&read));
    }
}

/// Fuzzes the description of a message's datatype (TYPES).
pub fn described_types(payload: &[u8]) {
    if let Some(read) = Described::decode(payload) {
        assert_eq!(Described::decode(&read.encode()).as_ref(), Some(&read));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..1100)) {
            ENTRIES.iter().for_each(|(_, entry)| entry(&bytes));
        }
    }
}
