//! Warning at `MPI_Finalize` about windows that the program has not freed.

use crate::state::{state, this_rank};

/// Prints one line with the unfreed windows: printed by rank 0 of each window, and by each rank that has an epoch open there.
///
/// The standard requires all of them to be freed; their memory is released when the process ends all the same.
pub fn print() {
    if state().tables().sessions().borrow().iter().next().is_some() {
        // A session that continues may use them.
        return;
    }
    let wins = state().tables().wins().borrow();
    let mut left: Vec<String> = Vec::new();
    for (_, object) in wins.iter() {
        let win = &object.win;
        match win.what_is_open() {
            Some(open) => left.push(format!("{}, while {open}", win.label())),
            None if win.rank() == 0 => left.push(win.label()),
            None => {}
        }
    }
    /// Number of windows that are named; more would add nothing.
    const SHOWN: usize = 4;
    let more = left.len().saturating_sub(SHOWN);
    left.truncate(SHOWN);
    if more > 0 {
        left.push(format!("{more} more"));
    }
    if !left.is_empty() {
        let rank = this_rank();
        printable::eprintln!(
            "{rank}: MPI_Finalize is called, but MPI_Win_free was not for {}",
            left.join("; ")
        );
    }
}
