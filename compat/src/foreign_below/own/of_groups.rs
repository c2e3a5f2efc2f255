//! Which communicators belong to sessions: those that were made of groups.

use crate::below;
use crate::foreign_below::Foreign;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Communicators that were made of groups, as programs with sessions do.
static OF_GROUPS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn of_groups() -> MutexGuard<'static, Vec<usize>> {
    OF_GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A communicator was made of a group.
pub fn made_of_groups<F: Foreign>(comm: F::Below) {
    let number = F::request_number(comm);
    let mut known = of_groups();
    if !known.contains(&number) {
        known.push(number);
    }
}

/// A communicator of that number has gone.
pub fn left(number: usize) {
    of_groups().retain(|known| *known != number);
}

/// Whether a communicator is one of a session: it was made of a group, or there is no world.
///
/// # Safety
/// Between init and finalize.
pub unsafe fn is_of_session<F: Foreign>(comm: F::Below) -> bool {
    let (mut begun, mut ended) = (0, 0);
    // SAFETY: questions that may be asked at any time.
    unsafe {
        (below::MPI_Initialized::<F>())(&raw mut begun);
        (below::MPI_Finalized::<F>())(&raw mut ended);
    }
    begun == 0 || ended != 0 || of_groups().contains(&F::request_number(comm))
}
