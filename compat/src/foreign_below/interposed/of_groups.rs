//! Registry of communicators that were created from groups and so belong to sessions.

use super::world::is_running;
use crate::foreign_below::Foreign;
use crate::lock::lock;
use std::sync::{Mutex, MutexGuard};

/// The numbers of these communicators.
static OF_GROUPS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn of_groups() -> MutexGuard<'static, Vec<usize>> {
    lock(&OF_GROUPS)
}

/// Registers a communicator that was created from a group.
pub fn made_of_groups<F: Foreign>(comm: F::Below) {
    let number = F::request_number(comm);
    let mut known = of_groups();
    if !known.contains(&number) {
        known.push(number);
    }
}

/// Removes a freed communicator.
pub fn left(number: usize) {
    of_groups().retain(|known| *known != number);
}

/// Returns true if a communicator belongs to a session: it was created from a group, or the program does not use the World Model.
pub fn is_of_session<F: Foreign>(comm: F::Below) -> bool {
    !is_running::<F>() || of_groups().contains(&F::request_number(comm))
}
