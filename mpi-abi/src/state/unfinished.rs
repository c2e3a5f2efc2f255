//! Active operations whose handles were freed.

use crate::object::request::{FreedGeneral, Orphan};
use std::cell::RefCell;

/// Active operations whose handles were freed.
pub(crate) struct Unfinished {
    orphans: RefCell<Vec<Orphan>>,
    freed_general: RefCell<Vec<FreedGeneral>>,
}

impl Unfinished {
    pub(super) const fn new() -> Unfinished {
        Unfinished {
            orphans: RefCell::new(Vec::new()),
            freed_general: RefCell::new(Vec::new()),
        }
    }

    /// Returns the operations whose handles were freed before completion.
    #[inline(always)]
    pub fn orphans(&self) -> &RefCell<Vec<Orphan>> {
        &self.orphans
    }

    /// Returns the generalized requests whose handles were freed before completion.
    #[inline(always)]
    pub fn freed_general(&self) -> &RefCell<Vec<FreedGeneral>> {
        &self.freed_general
    }
}
