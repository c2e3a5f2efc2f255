//! Windows that the program has not freed.

use crate::state::{state, this_rank};

/// Says at `MPI_Finalize` which windows the program has not freed, in one line, which rank 0 of each window tells, and each rank that has an epoch open there.
///
/// The standard asks for all of them to be freed; what they hold goes with the process all the same.
pub fn tell() {
    if state().sessions.borrow().iter().next().is_some() {
        // A session that goes on may use them.
        return;
    }
    let wins = state().wins.borrow();
    let mut left: Vec<String> = Vec::new();
    for (_, object) in wins.iter() {
        let win = &object.win;
        match win.what_is_open() {
            Some(open) => left.push(format!("{}, while {open}", win.label())),
            None if win.rank() == 0 => left.push(win.label()),
            None => {}
        }
    }
    /// More than these say nothing new.
    const SHOWN: usize = 4;
    let more = left.len().saturating_sub(SHOWN);
    left.truncate(SHOWN);
    if more > 0 {
        left.push(format!("{more} more"));
    }
    if !left.is_empty() {
        let who = this_rank();
        printable::eprintln!(
            "{who}: MPI_Finalize is called, but MPI_Win_free was not for {}",
            left.join("; ")
        );
    }
}
