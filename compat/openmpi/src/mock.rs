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
use crate::family::OpenMpi as F;
use compat::{Family, Kind, StandardStatus};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

#[macro_use]
#[path = "../../shared/mock.rs"]
mod common;
use common::*;

type Below = <F as Family>::Below;
type BelowStatus = <F as Family>::BelowStatus;

static BELOW: Constants = STANDARD;
static PROGRAM: Constants = Constants {
    in_place: 1,
    unweighted: 2,
    all_handles: usize::MAX,
    displacement_current: -54_278_278,
    status_ignore: 0,
};

/// Returns a dynamic handle: the program's value, and the backend's value.
/// The program's value has the highest bit set.
fn made(number: usize) -> (Handle, Below) {
    let handle = 0x5000 + number;
    (handle | 1 << 63, handle)
}

/// Returns a dynamic file handle: the program's value, and the backend's value.
fn made_file(number: usize) -> (usize, usize) {
    made(number)
}

/// A dynamic keyval: the program's value, and the backend's value.
const MADE_KEYVAL: (c_int, c_int) = (1030, 1030);

/// Returns the backend's predefined callbacks that do not copy and do not delete.
fn no_functions(_kind: Kind) -> (usize, usize) {
    (0, 0)
}

macro_rules! address {
    ($symbol:ident) => {
        (&raw const crate::family::$symbol).expose_provenance()
    };
}

include!(concat!(env!("OUT_DIR"), "/mock.rs"));

#[path = "../../shared/by_hand/standard_below/mod.rs"]
mod direction;

#[path = "../../shared/by_hand/mod.rs"]
mod by_hand;

mod served {
    include!(concat!(env!("OUT_DIR"), "/served.rs"));
}

#[test]
fn every_argument_arrives_in_the_form_of_the_library_below_and_every_result_comes_back() {
    check_generated();
    by_hand::check();
    let lists: [&[&str]; 2] = [&served::GENERATED, &served::BY_HAND];
    assert_checked(lists, &served::LEFT_OUT, 636 + 12);
}
