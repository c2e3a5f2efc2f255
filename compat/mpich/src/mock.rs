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
use crate::family::Mpich as F;
use compat::{Family, StandardStatus};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

#[path = "../../shared/mock.rs"]
mod common;
use common::*;

type Below = <F as Family>::Below;
type BelowStatus = <F as Family>::BelowStatus;

static BELOW: Constants = STANDARD;

struct Program;
static PROGRAM: Program = Program;

impl Program {
    fn in_place(&self) -> usize {
        usize::MAX
    }
    fn unweighted(&self) -> *mut c_int {
        crate::extras::unweighted()
    }
    fn all_handles(&self) -> usize {
        crate::extras::all_handles()
    }
    fn displacement_current(&self) -> i64 {
        -54_278_278
    }
}

include!(concat!(env!("OUT_DIR"), "/mock.rs"));

#[test]
fn every_argument_arrives_in_the_form_of_the_library_below_and_every_result_comes_back() {
    let checked = check_all();
    assert!(checked > 500, "{checked} functions are checked");
}
