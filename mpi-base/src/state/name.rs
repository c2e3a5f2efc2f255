//! Encoding of a name, or of the end of a long name, in words that are stored one by one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Number of words of an encoded name; each word has eight bytes of the name.
pub(super) const NAME_WORDS: usize = 6;

/// Encodes a name, padded with zeros; only the end of a longer name is encoded.
pub(super) fn name_words(name: &str) -> [u64; NAME_WORDS] {
    let bytes = crate::text::to_bytes(name);
    let end = &bytes[bytes.len().saturating_sub(NAME_WORDS * 8)..];
    std::array::from_fn(|word| {
        let byte = |at: usize| end.get(word * 8 + at).copied().unwrap_or(0);
        u64::from_le_bytes(std::array::from_fn(byte))
    })
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
