//! Tests of the handwritten functions, shared by all libraries.
//!
//! The expected values are constants from the tables (`word`, `known`, `predefined`, `null`).
//! The expected dynamic handles are those that the backend has created (`made`).
//! The expected values do not use the conversions under test.
//! A mock records its arguments and writes constants of the backend.
//! Code for one direction is in `direction`.

mod attributes;
mod blocks;
mod datatypes;
pub mod duplicates;
mod error_handlers;
mod events;
mod generalized;
mod keyvals;
mod operators;
mod representations;
mod requests;
mod spawn;
mod tools;

use super::*;

/// Array lengths: the first fits on the stack, the second is allocated.
const LENGTHS: [usize; 2] = [3, 20];

/// Runs all tests.
pub fn check() {
    requests::check();
    datatypes::check();
    blocks::check();
    operators::check();
    error_handlers::check();
    keyvals::check();
    generalized::check();
    representations::check();
    events::check();
    attributes::check();
    spawn::check();
    tools::check();
    duplicates::check();
    direction::check();
}

/// Returns a constant that exists in both ABIs.
pub fn constant(name: &str) -> (c_int, c_int) {
    known(name).unwrap_or_else(|| panic!("{name} is not there on both sides"))
}

/// Returns an error code that differs between the two ABIs, for failing calls and callbacks.
pub fn failure() -> (c_int, c_int) {
    word("error")
}

/// Returns another error code that differs between the two ABIs.
pub fn other_failure() -> (c_int, c_int) {
    constant("MPI_ERR_IN_STATUS")
}

/// Returns handles of a type: null, predefined, dynamic, and so on in turn.
pub fn handles(kind: Kind, length: usize) -> Vec<(Handle, Below)> {
    let one = |i: usize| match i % 3 {
        0 => null(kind),
        1 => predefined(kind),
        _ => made(i),
    };
    (0..length).map(one).collect()
}

/// Returns the program's handle of each pair.
pub fn of_program(handles: &[(Handle, Below)]) -> Vec<Handle> {
    handles.iter().map(|pair| pair.0).collect()
}

/// Runs a call that a foreign backend makes to a callback it has received.
pub fn as_library<R>(call: impl FnOnce() -> R) -> R {
    if !direction::FOREIGN {
        return call();
    }
    let _inside = compat::reentrancy::Inside::enter();
    call()
}

/// Records, in a callback of the program, whether its MPI calls would count as the backend's.
pub fn note_where() {
    note!(compat::reentrancy::is_set());
}

/// Returns a status as filled by the backend.
pub fn filled(i: usize) -> BelowStatus {
    F::status_below(&StandardStatus {
        source: word("rank").1,
        tag: word("tag").1,
        error: failure().1,
        ..StandardStatus::with(0x1_0000_0007 + i as i64, false)
    })
}

/// Returns an empty status of the program.
pub fn blank() -> Status {
    F::status_out(&StandardStatus::default())
}

/// Checks a status of the program that the backend has filled.
pub fn assert_filled(name: &str, status: &Status, i: usize) {
    let status = F::status_in(status);
    assert_eq!(status.source, word("rank").0, "{name}: source");
    assert_eq!(status.tag, word("tag").0, "{name}: tag");
    assert_eq!(status.error, failure().0, "{name}: error");
    assert_eq!(status.bytes(), 0x1_0000_0007 + i as i64, "{name}: count");
}
