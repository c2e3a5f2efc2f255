//! Fuzz targets of the decoders of rank 0's offers and of rule files.
//!
//! A fuzz target accepts any bytes. It panics if the decoder panics, or if what the decoder returns cannot be right:
//! names longer than the input, or an error without text.
//! cargo-fuzz calls each target from `fuzz/fuzz_targets/`; the test below calls all of them with random bytes.

use crate::select::offer;
use crate::tuned::rules::Rules;

/// The name of a fuzz target, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

/// The fuzz targets of this package.
pub const ENTRIES: &[Entry] = &[("invitation", invitation), ("tuning_rules", tuning_rules)];

/// Decodes rank 0's offers of components to the members of a communicator.
pub fn invitation(bytes: &[u8]) {
    let long = |entry: &offer::Entry<'_>| entry.name.len() + entry.config.len();
    assert!(offer::read(bytes).map(|entry| long(&entry)).sum::<usize>() <= bytes.len());
}

/// Parses a file of rules that choose algorithms.
pub fn tuning_rules(bytes: &[u8]) {
    if let Err(error) = Rules::parse(&String::from_utf8_lossy(bytes)) {
        assert!(!error.to_string().is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            ENTRIES.iter().for_each(|(_, entry)| entry(&bytes));
        }
    }
}
