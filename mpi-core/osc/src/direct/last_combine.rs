//! A cache of one entry: the last pair of operator and basic type on a window, with its functions.

use crate::Error;
use crate::datatype::Named;
use crate::direct::apply::Combine;
use crate::direct::word::Word;
use crate::op::Predefined;
use std::cell::Cell;

/// The cache of the last pair. Most programs accumulate with the same pair repeatedly.
#[derive(Default)]
pub(crate) struct LastCombine {
    combine: Cell<Option<Combine>>,
    word: Cell<Option<Word>>,
}

impl LastCombine {
    /// Returns the cached function if it belongs to this pair.
    #[inline]
    pub fn get(&self, op: Predefined, named: Named) -> Option<Combine> {
        let combine = self.combine.get();
        combine.filter(|combine| combine.op() == op && combine.named() == named)
    }

    /// Returns the function for this pair and caches it.
    pub fn find(&self, op: Predefined, named: Named) -> Result<Combine, Error> {
        if let Some(combine) = self.get(op, named) {
            return Ok(combine);
        }
        let combine = Combine::new(op, named)?;
        self.combine.set(Some(combine));
        self.word.set(Word::new(op, named));
        Ok(combine)
    }

    /// Returns the atomic instruction of the cached pair, if the processor has one.
    /// The caller must compare the pair.
    #[inline(always)]
    pub fn word(&self) -> Option<Word> {
        self.word.get()
    }
}
