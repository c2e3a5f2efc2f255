//! The numbers by which processes tell apart the communicators that they lead.
//!
//! A leader counts, and tells the others in what it tells them anyway.
//! One whose counter has come to its end tells that in place of a number: nobody waits for it in vain,
//! and all whom it was to lead fail with the same sentence.

use super::CommError;
use crate::btl::ProcId;
use crate::engine::Engine;
use crate::pml::Context;

/// What is told by who has no number left; no number is so high.
const NONE_LEFT: u64 = u64::MAX;

impl Engine {
    /// The first of several numbers in a row for communicators that this process leads, as it is told to their members.
    pub(super) fn next_serials(&self, how_many: u32) -> u64 {
        let first = self.serial().get();
        let next = first.saturating_add(how_many);
        if next > Context::LAST_SERIAL + 1 {
            return NONE_LEFT;
        }
        self.serial().set(next);
        first.into()
    }

    /// As after very many communicators.
    #[cfg(feature = "testing")]
    pub fn exhaust_serials(&self) {
        self.serial().set(Context::LAST_SERIAL + 1);
    }
}

/// The number that `leader` has told, or why there is none.
pub(super) fn told(leader: ProcId, word: u64) -> Result<u32, CommError> {
    u32::try_from(word).map_err(|_| CommError::NoNumber { leader })
}
