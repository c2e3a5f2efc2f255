//! The fuzzing entry point for the decoder of messages of collective accesses.
//!
//! An entry point accepts any bytes. It panics if the decoder panics,
//! or if the decoder returns a value that the encoder never writes.
//! cargo-fuzz calls them from `fuzz/fuzz_targets/`; the test below calls them with random bytes.

use crate::collective::extent_codec::Extents;

/// The name of a fuzz target, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

/// The fuzz targets of this crate.
pub const ENTRIES: &[Entry] = &[("file_marks", file_marks)];

/// Decodes the ranges in a message and checks that all are within the part of the file.
pub fn file_marks(message: &[u8]) {
    const PART: usize = 1024;
    let (extents, data) = Extents::read(message, PART);
    assert!(data.len() <= message.len());
    extents.each(|range| {
        assert!(range.start < range.end && range.end <= PART, "{range:?}");
        true
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            ENTRIES.iter().for_each(|(_, entry)| entry(&bytes));
        }
    }
}
