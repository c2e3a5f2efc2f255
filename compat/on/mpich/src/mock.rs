//! Each function that is written from the tables, against a mock of the library below that is written from them, too.
#![allow(
    unsafe_code,
    non_snake_case,
    unused_mut,
    unused_unsafe,
    unused_variables
)]
#![allow(clippy::all, clippy::undocumented_unsafe_blocks)]
// SAFETY of every unsafe block in the generated text: arguments are constants, or addresses of locals that the mock knows of.

use crate::entries::{Handle, Status};
use crate::family::OnMpich as F;
use compat::{Family, StandardStatus};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

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
};

/// Variables of the library that hold constants.
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

#[test]
fn every_argument_arrives_in_the_form_of_the_library_below_and_every_result_comes_back() {
    learn();
    let checked = check_all();
    assert!(checked > 500, "{checked} functions are checked");
}
