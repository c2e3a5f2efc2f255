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
use crate::family::OnOpenMpi as F;
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
    in_place: 1,
    unweighted: 2,
    all_handles: usize::MAX,
    displacement_current: -54_278_278,
};

/// Objects of the library.
static OBJECTS: [u64; 4096] = [0; 4096];

fn address_of(symbol: &str) -> usize {
    let known = crate::family::symbols().position(|name| name == symbol);
    (&raw const OBJECTS[known.unwrap_or(500) * 8]).expose_provenance()
}

macro_rules! address {
    ($symbol:ident) => {
        address_of(stringify!($symbol))
    };
}

fn learn() {
    use compat::foreign_below::Foreign as _;
    F::learn(&|name| match name.to_str() {
        Ok(name) if crate::family::symbols().any(|known| known == name) => {
            std::ptr::with_exposed_provenance_mut(address_of(name))
        }
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
