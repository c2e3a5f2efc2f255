//! Registry of communicators created from groups, which belong to sessions.

use super::world::is_running;
use crate::foreign_below::Foreign;
use crate::lock::lock;
use std::sync::{Mutex, MutexGuard};

/// The communicators created from groups, by their [`Foreign::request_number`].
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

/// Removes a freed communicator from the registry.
pub fn left(number: usize) {
    of_groups().retain(|known| *known != number);
}

/// Returns true if a communicator belongs to a session: if it was created from a group,
/// or if the program has not initialized the World Model or has finalized it.
pub fn is_of_session<F: Foreign>(comm: F::Below) -> bool {
    !is_running::<F>() || of_groups().contains(&F::request_number(comm))
}
