//! Window hints (sections 12.2.1 to 12.2.7): the supported keys, and the values in use.
//!
//! An unknown key or an invalid value is ignored silently.
//! Hints about the memory layout take effect when a window is created.
//! The other hints are assertions of the program, which the library stores and does not use.

use crate::abi::*;
use crate::api::args::Out;
use crate::error::Outcome;
use crate::info::{self, Hints};
use crate::object::hints::ALLOC_KINDS;
use crate::object::window::WinObject;
use crate::state;
use mpi_core::osc::{Flavor, Hints as InForce};

const NO_LOCKS: &str = "no_locks";
const NONCONTIGUOUS: &str = "alloc_shared_noncontig";
const ALIGNMENT: &str = "mpi_minimum_memory_alignment";
const ORDERING: &str = "accumulate_ordering";
const OPERATIONS: &str = "accumulate_ops";
const GRANULARITY: &str = "mpi_accumulate_granularity";
const KINDS: &str = "mpi_assert_memory_alloc_kinds";

/// Boolean hints; the default is false.
const FLAGS: [&str; 4] = [NO_LOCKS, NONCONTIGUOUS, "same_size", "same_disp_unit"];

/// Returns the hints that take effect when a window is created.
pub fn of_new(given: &Hints) -> InForce {
    let usual = InForce::default();
    let alignment = given.get(ALIGNMENT).and_then(alignment);
    InForce {
        no_locks: given.get(NO_LOCKS) == Some("true"),
        noncontiguous: given.get(NONCONTIGUOUS) == Some("true"),
        alignment: alignment.map_or(usual.alignment, |n| n.max(usual.alignment)),
        ..usual
    }
}

fn alignment(text: &str) -> Option<usize> {
    let asked = text.trim().parse::<usize>().ok();
    asked.filter(|n| n.is_power_of_two())
}

/// Returns true if a value is valid for its key.
fn is_valid(key: &str, value: &str) -> bool {
    match key {
        key if FLAGS.contains(&key) => matches!(value, "true" | "false"),
        "alloc_shm" => matches!(value, "true" | "false"),
        ALIGNMENT => alignment(value).is_some(),
        ORDERING => {
            let mut all = value.split(',').map(str::trim);
            value == "none" || all.all(|order| ["rar", "raw", "war", "waw"].contains(&order))
        }
        OPERATIONS => matches!(value, "same_op" | "same_op_no_op"),
        GRANULARITY => value.trim().parse::<u64>().is_ok(),
        KINDS | ALLOC_KINDS => !value.is_empty(),
        "which_accumulate_ops" => !value.is_empty(),
        _ => false,
    }
}

/// Returns true for hints that take effect only at the creation of a window.
fn is_for_making(key: &str) -> bool {
    matches!(key, ALIGNMENT | "alloc_shm")
}

/// Stores the valid hints in the window.
pub fn take(object: &WinObject, given: &Hints) {
    let mut hints = object.attached.hints.borrow_mut();
    for (key, value) in given.iter().filter(|(key, value)| is_valid(key, value)) {
        hints.set(key.to_string(), value.to_string());
    }
    if let Some(value) = hints.get(NO_LOCKS) {
        object.win.set_no_locks(value == "true");
    }
}

/// Returns all hints in use, including defaults.
fn in_force(object: &WinObject) -> Hints {
    let mut all = object.attached.hints.borrow().clone();
    let usual = InForce::default().alignment.to_string();
    let defaults = [
        (ORDERING, "rar,raw,war,waw"),
        (OPERATIONS, "same_op_no_op"),
        (GRANULARITY, "0"),
        (ALIGNMENT, usual.as_str()),
    ];
    let flags = FLAGS.iter().map(|key| (*key, "false"));
    for (key, value) in flags.chain(defaults) {
        let applies = match key {
            NONCONTIGUOUS => object.win.flavor() == Flavor::Shared,
            ALIGNMENT => matches!(object.win.flavor(), Flavor::Shared | Flavor::Allocate),
            _ => true,
        };
        if applies && all.get(key).is_none() {
            all.set(key.into(), value.into());
        }
    }
    all.set_alloc_kinds();
    all
}

pub fn MPI_Win_set_info(win: MPI_Win, info: MPI_Info) -> Outcome {
    let object = state::win(win)?;
    let given = info::read(info, Hints::clone)?;
    let mut later = Hints::new();
    for (key, value) in given.iter().filter(|(key, _)| !is_for_making(key)) {
        later.set(key.to_string(), value.to_string());
    }
    take(&object, &later);
    Ok(())
}

pub fn MPI_Win_get_info(win: MPI_Win, info_used: Out<MPI_Info>) -> Outcome {
    let hints = in_force(&*state::win(win)?);
    info_used.set(info::create(hints)?, "info_used")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_none_are_ignored_and_change_nothing() {
        let mut given = Hints::new();
        given.set(ALIGNMENT.into(), "48".into());
        given.set(NO_LOCKS.into(), "perhaps".into());
        assert_eq!(of_new(&given), InForce::default());
        assert!(!is_valid(ALIGNMENT, "48") && !is_valid(NO_LOCKS, "perhaps"));
        assert!(!is_valid("colour", "green") && !is_valid(ORDERING, "rar,wax"));
        given.set(ALIGNMENT.into(), "4096".into());
        assert_eq!(of_new(&given).alignment, 4096);
        assert!(is_valid(ORDERING, "none") && is_valid(ORDERING, "rar,waw"));
    }
}
