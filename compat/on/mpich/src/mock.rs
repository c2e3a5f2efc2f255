//! Tests of every function of the library against a mock backend.
//!
//! The build generates the checks of generated functions.
//! The checks of handwritten functions are in `compat/shared/by_hand`.
#![allow(
    unsafe_code,
    non_snake_case,
    unused_mut,
    unsafe_op_in_unsafe_fn,
    unused_unsafe,
    unused_variables
)]
#![allow(clippy::all)]

use crate::entries::{Handle, Status};
use crate::family::OnMpich as F;
use compat::{Family, Kind, StandardStatus};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

#[macro_use]
#[path = "../../../shared/mock.rs"]
mod common;
use common::*;

type Below = <F as Family>::Below;
type BelowStatus = <F as Family>::BelowStatus;

static PROGRAM: Constants = STANDARD;
static BELOW: Constants = Constants {
    in_place: usize::MAX,
    unweighted: 0x7000,
    all_handles: 0x7100,
    displacement_current: -54_278_278,
    status_ignore: 1,
};

/// Returns a dynamic handle: the program's value, and the backend's value.
fn made(number: usize) -> (Handle, Below) {
    (0x9800_0000 + number, 0x9800_0000 + number as Below)
}

/// Returns the Fortran integer of the dynamic handle `number`.
fn made_as_integer(_kind: Kind, number: usize) -> c_int {
    made(number).1 as c_int
}

/// Returns a dynamic file handle: the program's value, and the backend's value.
fn made_file(number: usize) -> (usize, usize) {
    (0x7000_5000 + number, 0x7000_5000 + number)
}

/// A dynamic keyval: the program's value, and the backend's value.
const MADE_KEYVAL: (c_int, c_int) = (0x2440_0007, 0x2440_0007);

/// Returns the backend's predefined callbacks that do not copy and do not delete.
fn no_functions(_kind: Kind) -> (usize, usize) {
    (0, 0)
}

/// The values of the mock backend's variables `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY`.
static VARIABLES: [usize; 2] = [0x7000, 0x7100];

fn learn() {
    use compat::foreign_below::Foreign as _;
    F::learn(&|name| match name.to_bytes() {
        b"MPI_UNWEIGHTED" => (&raw const VARIABLES[0]).cast_mut().cast(),
        b"MPI_T_PVAR_ALL_HANDLES" => (&raw const VARIABLES[1]).cast_mut().cast(),
        _ => null_mut(),
    });
}

include!(concat!(env!("OUT_DIR"), "/mock.rs"));

#[path = "../../../shared/by_hand/foreign_below/mod.rs"]
mod direction;

#[path = "../../../shared/by_hand/mod.rs"]
mod by_hand;

mod served {
    include!(concat!(env!("OUT_DIR"), "/served.rs"));
}

#[test]
fn every_argument_arrives_in_the_form_of_the_library_below_and_every_result_comes_back() {
    learn();
    check_generated();
    by_hand::check();
    let lists: [&[&str]; 2] = [&served::GENERATED, &served::BY_HAND];
    assert_checked(lists, &served::LEFT_OUT, 664 + 25);
}
