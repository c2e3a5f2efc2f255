//! The operator and the basic type that were combined last on a window, with what was computed for them.

use crate::Error;
use crate::datatype::Named;
use crate::direct::apply::Combine;
use crate::direct::word::Word;
use crate::op::Predefined;
use std::cell::Cell;

/// The last pair; a program combines with the same pair again and again.
#[derive(Default)]
pub(crate) struct LastCombine {
    combine: Cell<Option<Combine>>,
    word: Cell<Option<Word>>,
}

impl LastCombine {
    /// Returns the pair's function if it is the last one.
    #[inline]
    pub fn get(&self, op: Predefined, named: Named) -> Option<Combine> {
        let combine = self.combine.get();
        combine.filter(|combine| combine.op() == op && combine.named() == named)
    }

    /// Returns the pair's function, which becomes the last one.
    pub fn find(&self, op: Predefined, named: Named) -> Result<Combine, Error> {
        if let Some(combine) = self.get(op, named) {
            return Ok(combine);
        }
        let combine = Combine::new(op, named)?;
        self.combine.set(Some(combine));
        self.word.set(Word::new(op, named));
        Ok(combine)
    }

    /// Returns the atomic instruction of the last pair, if the processor has one; the caller compares the pair.
    #[inline(always)]
    pub fn word(&self) -> Option<Word> {
        self.word.get()
    }
}
