//! The end of a name, in words that may be stored and loaded one by one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Eight bytes each of the end of a name.
pub(super) const NAME_WORDS: usize = 6;

/// The words of a name: its end, if it is too long, filled up with zeros.
pub(super) fn name_words(name: &str) -> [u64; NAME_WORDS] {
    let bytes = crate::text::to_bytes(name);
    let end = &bytes[bytes.len().saturating_sub(NAME_WORDS * 8)..];
    std::array::from_fn(|word| {
        let byte = |at: usize| end.get(word * 8 + at).copied().unwrap_or(0);
        u64::from_le_bytes(std::array::from_fn(byte))
    })
}

/// What [`name_words`] made words of.
pub(super) fn read_name(words: &[AtomicU64; NAME_WORDS]) -> String {
    let words = words.iter().map(|word| word.load(Relaxed));
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let end = bytes.iter().rposition(|byte| *byte != 0);
    String::from_utf8_lossy(&bytes[..end.map_or(0, |at| at + 1)]).into_owned()
}

/// Stores such words.
#[inline]
pub(super) fn store_name(to: &[AtomicU64; NAME_WORDS], words: &[u64; NAME_WORDS]) {
    for (word, value) in to.iter().zip(words) {
        word.store(*value, Relaxed);
    }
}
