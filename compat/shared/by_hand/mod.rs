//! Tests of the handwritten functions, shared by all libraries.
//!
//! Expected constants are read from the tables (`word`, `known`, `predefined`, `null`).
//! Expected dynamic handles are those that the mock backend has created (`made`).
//! So the expected values do not depend on the conversions under test.
//! The mock backend records its arguments, and stores constants of the backend's ABI as results.
//! The module `direction` has tests and helpers for one direction of the translation.

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

/// Lengths of test arrays: the library converts 3 elements on the stack, 20 on the heap.
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

/// Returns the program's and the backend's value of a constant that both ABIs have.
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

/// Returns `length` handles of a type: null, predefined, dynamic, null and so on.
pub fn handles(kind: Kind, length: usize) -> Vec<(Handle, Below)> {
    let one = |i: usize| match i % 3 {
        0 => null(kind),
        1 => predefined(kind),
        _ => made(i),
    };
    (0..length).map(one).collect()
}

/// Returns the program's handle (the first element) of each pair.
pub fn of_program(handles: &[(Handle, Below)]) -> Vec<Handle> {
    handles.iter().map(|pair| pair.0).collect()
}

/// Runs a callback as the backend would. For MPICH and Open MPI, sets the reentrancy flag.
pub fn as_library<R>(call: impl FnOnce() -> R) -> R {
    if !direction::FOREIGN {
        return call();
    }
    let _inside = compat::reentrancy::Inside::enter();
    call()
}

/// Called in callbacks of the program.
/// Records whether MPI calls would be treated as calls by the backend, unconverted.
pub fn note_where() {
    note!(compat::reentrancy::is_set());
}

/// Returns the i-th status that the mock backend stores.
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

/// Checks that a status of the program equals the i-th status of [`filled`].
pub fn assert_filled(name: &str, status: &Status, i: usize) {
    let status = F::status_in(status);
    assert_eq!(status.source, word("rank").0, "{name}: source");
    assert_eq!(status.tag, word("tag").0, "{name}: tag");
    assert_eq!(status.error, failure().0, "{name}: error");
    assert_eq!(status.bytes(), 0x1_0000_0007 + i as i64, "{name}: count");
}
