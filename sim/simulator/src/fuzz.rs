//! Fuzz target for the parser of arrival files.
//!
//! Each function in [`ENTRIES`] accepts any bytes, and panics if the parser panics.
//! cargo-fuzz calls it from `fuzz/fuzz_targets/`; the test below calls it with random bytes.

use crate::virtual_time::Table;

/// The name of a fuzz target in `fuzz/fuzz_targets/`, and the function that the target calls.
pub type Entry = (&'static str, fn(&[u8]));

/// The fuzz targets of this crate.
pub const ENTRIES: &[Entry] = &[("arrivals", arrivals)];

/// Parses the bytes as a file of the nodes' computing times.
pub fn arrivals(bytes: &[u8]) {
    let _ = Table::parse("file", &String::from_utf8_lossy(bytes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            ENTRIES.iter().for_each(|(_, entry)| entry(&bytes));
        }
    }
}
