//! Fuzz targets of the decoders for bytes from other processes and from files.
//!
//! A fuzz target accepts any bytes.
//! It panics if the decoder panics, or if the decoder returns an invalid value.
//! cargo-fuzz calls each target from `fuzz/fuzz_targets/`; the test below calls all of them with random bytes.

use crate::comm::introduce;
use crate::dynamic::port_name::PortName;
use crate::fault::wire;
use crate::record::word;

/// The name of a fuzz target, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

/// The fuzz targets of this package.
pub const ENTRIES: &[Entry] = &[
    ("agreement", agreement),
    ("recording", recording),
    ("port_name", port_name),
    ("introduction", introduction),
];

/// Converts bytes to words; drops up to 7 bytes at the end that do not fill a word.
fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.as_chunks().0.iter();
    words.map(|word| u64::from_le_bytes(*word)).collect()
}

/// Decodes a message of an agreement: the first byte is the number of members, the next eight are the header's second word.
pub fn agreement(bytes: &[u8]) {
    let Some((members, bytes)) = bytes.split_first() else {
        return;
    };
    if let Some((word, payload)) = bytes.split_first_chunk() {
        let header = [0, u64::from_le_bytes(*word)];
        let _ = wire::read(header, payload, usize::from(*members));
    }
}

/// Decodes the decisions in a recording.
pub fn recording(bytes: &[u8]) {
    let _ = word::decode(&words(bytes), 2);
}

/// Parses the name of a port, which a program passes as text. A valid name must be equal after printing and parsing again.
pub fn port_name(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(port) = PortName::parse(&text) {
        assert_eq!(PortName::parse(&port.to_string()), Ok(port));
    }
}

/// Decodes bytes that members of two jobs send each other as words.
pub fn introduction(bytes: &[u8]) {
    let _ = introduce::from_words(&mut &words(bytes)[..]);
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
