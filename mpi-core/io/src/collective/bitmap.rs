//! The bitmap of touched bytes of a part, and its stretches of ones.

use std::ops::Range;

/// Bits in a word of the bitmap.
pub(crate) const BITS: usize = 64;

/// Calls `each` with the maximal stretches of ones, until it fails.
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

/// Number, bytes and span of the stretches of a part, without a list of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub count: usize,
    pub bytes: usize,
    /// From the start of the first stretch to the end of the last.
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

    /// Returns the stretch if there is exactly one.
    pub fn only(&self) -> Option<Range<usize>> {
        (self.count == 1).then(|| self.span.clone())
    }
}
