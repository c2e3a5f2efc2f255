//! The readers of text from files and from the environment, as entry points for fuzzing.
//!
//! An entry takes any bytes. It panics if the decoder does, or if the decoder accepts what its encoder does not write.
//! cargo-fuzz calls each from `fuzz/fuzz_targets/`; the test below calls all of them with random bytes.

use crate::param::{Params, Selection, Source};
use crate::{ranges, text};

/// The name of a fuzz target, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

/// The decoders.
pub const ENTRIES: &[Entry] = &[
    ("parameter_file", parameter_file),
    ("parameter_text", parameter_text),
];

/// A file of parameters: each line sets one, is a comment, or is a complaint.
pub fn parameter_file(bytes: &[u8]) {
    let text = text::from_bytes(bytes);
    let mut params = Params::default();
    params.read_lines("file", &text, Source::UserFile);
    let lines = text.lines().count();
    assert!(params.settings().count() + params.complaints().len() <= lines);
}

/// Text of a parameter: a list of components, and ranges of processors. Bytes that are not UTF-8 are kept.
pub fn parameter_text(bytes: &[u8]) {
    let text = text::from_bytes(bytes);
    assert_eq!(text::to_os(&text).as_encoded_bytes(), bytes);
    let _ = (Selection::parse(&text), ranges::read(&text, 1 << 16));
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
