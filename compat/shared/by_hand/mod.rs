//! The checks of the functions that are written by hand, for every library alike.
//!
//! What must arrive and what must be found are constants from the tables (`word`, `known`, `predefined`, `null`) and handles
//! that the library below made (`made`); the conversions under test are not asked. A mock notes what arrives and writes
//! constants of the library below; what only one direction has is in `direction`.
// SAFETY of every unsafe function and block here: arguments are constants or addresses of locals that outlive the call, and functions
// are called with the types that they have.

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

/// Lengths of arrays: one that lies on the stack, and one that is allocated.
const LENGTHS: [usize; 2] = [3, 20];

/// Checks each function.
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

/// A constant that both sides have.
pub fn constant(name: &str) -> (c_int, c_int) {
    known(name).unwrap_or_else(|| panic!("{name} is not there on both sides"))
}

/// An error code that differs, for calls and functions that fail.
pub fn failure() -> (c_int, c_int) {
    word("error")
}

/// Another one.
pub fn other_failure() -> (c_int, c_int) {
    constant("MPI_ERR_IN_STATUS")
}

/// Handles of a type: null, predefined, made, and so on.
pub fn handles(kind: Kind, length: usize) -> Vec<(Handle, Below)> {
    let one = |i: usize| match i % 3 {
        0 => null(kind),
        1 => predefined(kind),
        _ => made(i),
    };
    (0..length).map(one).collect()
}

/// The program's.
pub fn of_program(handles: &[(Handle, Below)]) -> Vec<Handle> {
    handles.iter().map(|pair| pair.0).collect()
}

/// Runs the call that a library below makes from inside of it, of a function that it was given.
pub fn as_library<R>(call: impl FnOnce() -> R) -> R {
    if !direction::FOREIGN {
        return call();
    }
    compat::inside::enter();
    let result = call();
    compat::inside::leave();
    result
}

/// Notes in a function of the program whether its own calls would be taken for those of the library below.
pub fn note_where() {
    note!(compat::inside::is_set());
}

/// A status as the library below fills it.
pub fn filled(i: usize) -> BelowStatus {
    F::status_below(&StandardStatus {
        source: word("rank").1,
        tag: word("tag").1,
        error: failure().1,
        ..StandardStatus::with(0x1_0000_0007 + i as i64, false)
    })
}

/// A status of the program that says nothing.
pub fn blank() -> Status {
    F::status_out(&StandardStatus::default())
}

/// What the program finds in a status that the library below has filled.
pub fn assert_filled(name: &str, status: &Status, i: usize) {
    let status = F::status_in(status);
    assert_eq!(status.source, word("rank").0, "{name}: source");
    assert_eq!(status.tag, word("tag").0, "{name}: tag");
    assert_eq!(status.error, failure().0, "{name}: error");
    assert_eq!(status.bytes(), 0x1_0000_0007 + i as i64, "{name}: count");
}
