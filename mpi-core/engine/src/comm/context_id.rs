//! The numbers by which processes tell apart the communicators that they lead.
//!
//! Where all members are of its own job, a leader counts, and tells the others in what it tells them anyway.
//! One whose counter has come to its end tells that in place of a number: no member waits for it in vain,
//! and all that it was to lead fail with the same sentence.
//! Where members are of several jobs, whose ranks are equal, the number is drawn at random.

use super::CommError;
use crate::btl::ProcId;
use crate::engine::Engine;
use crate::group::Group;
use crate::pml::Context;
use mpi_base::fdpass::Key;
use std::cell::Cell;

/// What a leader tells that has no number left; no number is so high.
const NONE_LEFT: u64 = u64::MAX;

/// Serial numbers of the communicators that exist from the start.
pub(super) const WORLD: u32 = 0;
pub(super) const MYSELF: u32 = 1;
pub(super) const MEETING: u32 = 2;
const FIRST: u32 = 3;

/// The serial number of the next communicator that a process leads.
struct Next(Cell<u32>);

impl Default for Next {
    fn default() -> Next {
        Next(Cell::new(FIRST))
    }
}

impl Engine {
    fn serial(&self) -> &Cell<u32> {
        let Next(serial) = self.extension_of_type();
        serial
    }

    /// The first of several numbers in a row for communicators that this process leads, as it is told to their members.
    /// `mixed` if some of them are of other jobs.
    pub(crate) fn next_numbers(&self, how_many: u32, mixed: bool) -> u64 {
        if mixed {
            return random_number(how_many);
        }
        let first = self.serial().get();
        let next = first.saturating_add(how_many);
        if next > Context::LAST_SERIAL + 1 {
            return NONE_LEFT;
        }
        self.serial().set(next);
        Context::new(self.me(), first).number()
    }

    /// Whether some members of a group are of other jobs.
    pub fn is_mixed(&self, group: &Group) -> bool {
        group.iter().any(|proc| self.universe().is_foreign(proc))
    }

    /// As after very many communicators.
    #[cfg(feature = "testing")]
    pub fn exhaust_serials(&self) {
        self.serial().set(Context::LAST_SERIAL + 1);
    }
}

/// The first of `how_many` numbers in a row, of those that are drawn at random.
///
/// With a million communicators alive in one process two have the same with a probability below 10^-6.
fn random_number(how_many: u32) -> u64 {
    let Ok(random) = Key::random() else {
        return NONE_LEFT;
    };
    let mut word = [0; 8];
    word.copy_from_slice(&random.bytes()[..8]);
    let most = Context::FIRST_RANDOM - u64::from(how_many);
    Context::FIRST_RANDOM + u64::from_le_bytes(word) % most
}

/// The number that `leader` has told, or why there is none.
pub(super) fn told(leader: ProcId, word: u64) -> Result<u64, CommError> {
    match word {
        NONE_LEFT => Err(CommError::NoNumber { leader }),
        number => Ok(number),
    }
}
