//! Operations whose handles were freed before they ended.

use crate::object::request::{FreedGeneral, Orphan};
use std::cell::RefCell;

/// Operations whose handles were freed before they ended.
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

    /// Operations whose handles were freed before they completed.
    #[inline(always)]
    pub fn orphans(&self) -> &RefCell<Vec<Orphan>> {
        &self.orphans
    }

    /// Generalized requests whose handles were freed before they were complete.
    #[inline(always)]
    pub fn freed_general(&self) -> &RefCell<Vec<FreedGeneral>> {
        &self.freed_general
    }
}
