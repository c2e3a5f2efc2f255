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
use crate::family::OnOpenMpi as F;
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
    in_place: 1,
    unweighted: 2,
    all_handles: usize::MAX,
    displacement_current: -54_278_278,
    status_ignore: 0,
};

/// The address of the backend's dynamic handle 0.
const FIRST_MADE: usize = 0x7000_0000;

/// Returns a dynamic handle: the program's value, and the backend's value.
fn made(number: usize) -> (Handle, Below) {
    let address = FIRST_MADE + 16 * number;
    (address, address)
}

/// Returns the Fortran integer of the dynamic handle `number`.
/// Each type has its own range, above the integers of predefined handles.
fn made_as_integer(kind: Kind, number: usize) -> c_int {
    0x1000 + (1000 * kind as usize + number) as c_int
}

/// Returns a dynamic file handle: the program's value, and the backend's value.
fn made_file(number: usize) -> (usize, usize) {
    made(number)
}

/// A dynamic keyval: the program's value, and the backend's value.
const MADE_KEYVAL: (c_int, c_int) = (0x10000 + 30, 30);

/// Returns the backend's predefined callbacks that do not copy and do not delete.
fn no_functions(kind: Kind) -> (usize, usize) {
    let name = match kind {
        Kind::Comm => "COMM",
        Kind::Datatype => "TYPE",
        _ => "WIN",
    };
    let address = |what| address_of_nothing(&format!("OMPI_C_MPI_{name}_NULL_{what}_FN"));
    (address("COPY"), address("DELETE"))
}

/// The symbols of the callbacks that do not copy and do not delete. The test never calls them.
const NOTHING: [&str; 6] = [
    "OMPI_C_MPI_COMM_NULL_COPY_FN",
    "OMPI_C_MPI_COMM_NULL_DELETE_FN",
    "OMPI_C_MPI_TYPE_NULL_COPY_FN",
    "OMPI_C_MPI_TYPE_NULL_DELETE_FN",
    "OMPI_C_MPI_WIN_NULL_COPY_FN",
    "OMPI_C_MPI_WIN_NULL_DELETE_FN",
];

fn address_of_nothing(name: &str) -> usize {
    let known = NOTHING.iter().position(|known| *known == name);
    known.map_or(0, |known| scratch(known).expose_provenance())
}

/// The mock backend's conversions between handles of a type and Fortran integers.
unsafe extern "C-unwind" fn to_fortran<const KIND: usize>(handle: usize) -> c_int {
    (1000 * KIND + (handle - FIRST_MADE) / 16) as c_int
}

unsafe extern "C-unwind" fn of_fortran<const KIND: usize>(number: c_int) -> usize {
    FIRST_MADE + 16 * (number as usize - 1000 * KIND)
}

macro_rules! fortran {
    ($($kind:ident: $to:literal $of:literal,)*) => {
        /// Returns the mock's function `MPI_X_c2f` or `MPI_X_f2c`, or null for another name.
        fn fortran(name: &str) -> *mut c_void {
            match name {
                $(
                    $to => to_fortran::<{ Kind::$kind as usize }> as *mut c_void,
                    $of => of_fortran::<{ Kind::$kind as usize }> as *mut c_void,
                )*
                _ => null_mut(),
            }
        }
    };
}

fortran! {
    Comm: "MPI_Comm_c2f" "MPI_Comm_f2c",
    Group: "MPI_Group_c2f" "MPI_Group_f2c",
    Win: "MPI_Win_c2f" "MPI_Win_f2c",
    File: "MPI_File_c2f" "MPI_File_f2c",
    Session: "MPI_Session_c2f" "MPI_Session_f2c",
    Message: "MPI_Message_c2f" "MPI_Message_f2c",
    Info: "MPI_Info_c2f" "MPI_Info_f2c",
    Errhandler: "MPI_Errhandler_c2f" "MPI_Errhandler_f2c",
    Request: "MPI_Request_c2f" "MPI_Request_f2c",
    Op: "MPI_Op_c2f" "MPI_Op_f2c",
    Datatype: "MPI_Type_c2f" "MPI_Type_f2c",
}

/// Memory for the predefined objects of the mock backend.
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
        Ok(name) if name.starts_with("OMPI_C_") => {
            std::ptr::with_exposed_provenance_mut(address_of_nothing(name))
        }
        Ok(name) => fortran(name),
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
