//! Which communicators belong to sessions: those that were made of groups.

use super::world::is_running;
use crate::foreign_below::Foreign;
use crate::lock::lock;
use std::sync::{Mutex, MutexGuard};

/// Communicators that were made of groups, as programs with sessions do.
static OF_GROUPS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn of_groups() -> MutexGuard<'static, Vec<usize>> {
    lock(&OF_GROUPS)
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
pub fn is_of_session<F: Foreign>(comm: F::Below) -> bool {
    !is_running::<F>() || of_groups().contains(&F::request_number(comm))
}
