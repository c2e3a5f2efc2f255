//! Encoding of a name, or of the end of a long name, in words that are stored one by one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Number of words of an encoded name; each word has eight bytes of the name.
pub(super) const NAME_WORDS: usize = 6;

/// The beginning of an encoded name of which only the end is encoded.
const CUT: &[u8] = b"...";

/// Encodes a name, padded with zeros; of a longer name, [`CUT`] and its end are encoded.
pub(super) fn name_words(name: &str) -> [u64; NAME_WORDS] {
    const MOST: usize = NAME_WORDS * 8;
    let bytes = crate::text::to_bytes(name);
    let (mark, end) = match bytes.len() > MOST {
        true => (CUT, &bytes[bytes.len() - (MOST - CUT.len())..]),
        false => (&[][..], &bytes[..]),
    };
    let mut shown = mark.iter().chain(end).copied();
    std::array::from_fn(|_| u64::from_le_bytes(std::array::from_fn(|_| shown.next().unwrap_or(0))))
}

/// Decodes a name that [`name_words`] has encoded.
pub(super) fn read_name(words: &[AtomicU64; NAME_WORDS]) -> String {
    let words = words.iter().map(|word| word.load(Relaxed));
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let end = bytes.iter().rposition(|byte| *byte != 0);
    String::from_utf8_lossy(&bytes[..end.map_or(0, |at| at + 1)]).into_owned()
}

/// Stores the words of an encoded name, one by one.
#[inline]
pub(super) fn store_name(to: &[AtomicU64; NAME_WORDS], words: &[u64; NAME_WORDS]) {
    for (word, value) in to.iter().zip(words) {
        word.store(*value, Relaxed);
    }
}
