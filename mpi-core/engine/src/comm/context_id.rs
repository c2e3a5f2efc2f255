//! Allocation of context ids, the numbers that identify communicators in message headers.
//!
//! If all members are in one job, the leader draws a number from its own counter and sends it in the message that creates the communicator.
//! A leader whose counter is exhausted sends `NONE_LEFT`, so that no member waits,
//! and all members fail with the same error.
//! If the members are in several jobs, in which ranks have the same numbers, the context id is random.

use super::CommError;
use crate::btl::ProcId;
use crate::engine::Engine;
use crate::pml::Context;
use mpi_base::fdpass::Key;
use std::cell::Cell;

/// Sent by a leader that has no context id left; greater than any context id.
const NONE_LEFT: u64 = u64::MAX;

/// Serial numbers of the predefined communicators.
pub(super) const WORLD: u32 = 0;
pub(super) const MYSELF: u32 = 1;
pub(super) const BOOTSTRAP: u32 = 2;
const FIRST: u32 = 3;

/// The serial number of the next communicator whose context id this process chooses.
struct Next(Cell<u32>);

impl Default for Next {
    fn default() -> Next {
        Next(Cell::new(FIRST))
    }
}

impl Engine {
    /// Returns the allocator of this process's context ids.
    pub fn context_ids(&self) -> ContextIds<'_> {
        ContextIds { engine: self }
    }
}

/// The allocator of the context ids of communicators that a process leads.
#[derive(Clone, Copy)]
pub struct ContextIds<'a> {
    engine: &'a Engine,
}

impl<'a> ContextIds<'a> {
    fn serial(self) -> &'a Cell<u32> {
        let Next(serial) = self.engine.extension_of_type();
        serial
    }

    /// Allocates consecutive context ids for communicators that this process leads.
    /// Returns the first of them, or `NONE_LEFT`, in the form in which it is sent to the members.
    /// `mixed` is true if some members are of other jobs.
    pub(crate) fn next(self, how_many: u32, mixed: bool) -> u64 {
        if mixed {
            return random_number(how_many);
        }
        let first = self.serial().get();
        let next = first.saturating_add(how_many);
        if next > Context::LAST_SERIAL + 1 {
            return NONE_LEFT;
        }
        self.serial().set(next);
        Context::new(self.engine.me(), first).number()
    }

    /// Takes back an id of [`ContextIds::next`] that no communicator uses.
    /// Without effect if other ids have been allocated since.
    pub(super) fn give_back(self, word: u64) {
        let last = self.serial().get().wrapping_sub(1);
        if word == Context::new(self.engine.me(), last).number() {
            self.serial().set(last);
        }
    }

    /// Exhausts the counter, as the creation of very many communicators would.
    #[cfg(feature = "testing")]
    pub fn exhaust(self) {
        self.serial().set(Context::LAST_SERIAL + 1);
    }
}

/// Returns the first of `how_many` consecutive random numbers.
///
/// With a million communicators alive in one process, the probability that two have the same number is below 10^-6.
fn random_number(how_many: u32) -> u64 {
    let Ok(random) = Key::random() else {
        return NONE_LEFT;
    };
    let mut word = [0; 8];
    word.copy_from_slice(&random.bytes()[..8]);
    let most = Context::FIRST_RANDOM - u64::from(how_many);
    Context::FIRST_RANDOM + u64::from_le_bytes(word) % most
}

/// Returns the context id that `leader` sent, or an error if it had none left.
pub(super) fn told(leader: ProcId, word: u64) -> Result<u64, CommError> {
    match word {
        NONE_LEFT => Err(CommError::NoNumber { leader }),
        number => Ok(number),
    }
}
