//! A cache of one entry: the functions for the last operator and basic type used on a window.

use crate::Error;
use crate::datatype::Named;
use crate::direct::apply::Combine;
use crate::direct::word::Word;
use crate::op::Predefined;
use std::cell::Cell;

/// The functions for the last pair of operator and basic type; most programs repeat one pair.
#[derive(Default)]
pub(crate) struct LastCombine {
    combine: Cell<Option<Combine>>,
    word: Cell<Option<Word>>,
}

impl LastCombine {
    /// Returns the cached function if it is for this operator and type.
    #[inline]
    pub fn get(&self, op: Predefined, named: Named) -> Option<Combine> {
        let combine = self.combine.get();
        combine.filter(|combine| combine.op() == op && combine.named() == named)
    }

    /// Returns the function for this operator and type, and caches it.
    pub fn find(&self, op: Predefined, named: Named) -> Result<Combine, Error> {
        if let Some(combine) = self.get(op, named) {
            return Ok(combine);
        }
        let combine = Combine::new(op, named)?;
        self.combine.set(Some(combine));
        self.word.set(Word::new(op, named));
        Ok(combine)
    }

    /// Returns the cached atomic update of one word, if the processor has an instruction for it.
    /// The caller must check by [`Word::is`] that it is for the right operator and type.
    #[inline(always)]
    pub fn word(&self) -> Option<Word> {
        self.word.get()
    }
}
