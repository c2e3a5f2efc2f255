//! The bitmap of the used bytes in an aggregator's part of the file, and its ranges of set bits.

use std::ops::Range;

/// The number of bits of the bitmap in one word.
pub(crate) const BITS: usize = 64;

/// Calls `each` with the maximal ranges of set bits. Stops at the first error of `each`.
pub(crate) fn stretches<E>(
    words: impl IntoIterator<Item = u64>,
    mut each: impl FnMut(Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    let mut open: Option<usize> = None;
    let mut base = 0;
    for mut bits in words {
        let begin = base;
        base += BITS;
        match (bits, open) {
            (0, None) => continue,
            (u64::MAX, Some(_)) => continue,
            (u64::MAX, None) => {
                open = Some(begin);
                continue;
            }
            _ => {}
        }
        let mut at = 0;
        while at < BITS {
            let same = match open.is_some() {
                true => bits.trailing_ones(),
                false => bits.trailing_zeros(),
            };
            let same = (same as usize).min(BITS - at);
            at += same;
            if at < BITS {
                match open.take() {
                    Some(first) => each(first..begin + at)?,
                    None => open = Some(begin + at),
                }
                bits >>= same;
            }
        }
    }
    match open {
        Some(first) => each(first..base),
        None => Ok(()),
    }
}

/// A summary of the used ranges of a part: their number, total bytes and span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub count: usize,
    pub bytes: usize,
    /// The span: from the start of the first used range to the end of the last one.
    pub span: Range<usize>,
}

impl Summary {
    pub fn add(&mut self, range: &Range<usize>) {
        if self.count == 0 {
            self.span.start = range.start;
        }
        self.count += 1;
        self.bytes += range.len();
        self.span.end = range.end;
    }

    /// Returns the used range if there is exactly one, else `None`.
    pub fn only(&self) -> Option<Range<usize>> {
        (self.count == 1).then(|| self.span.clone())
    }
}
