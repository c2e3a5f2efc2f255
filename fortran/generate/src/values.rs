//! The Fortran values of named constants.

use crate::table::Constant;

/// The integer kinds for addresses, counts and offsets.
pub const KINDS: &[(&str, &str)] = &[
    ("MPI_ADDRESS_KIND", "SELECTED_INT_KIND(18)"),
    ("MPI_COUNT_KIND", "SELECTED_INT_KIND(18)"),
    ("MPI_OFFSET_KIND", "SELECTED_INT_KIND(18)"),
    ("MPI_INTEGER_KIND", "KIND(0)"),
];

/// The constant whose value divides by zero if a default INTEGER has 8 bytes.
/// Compilers then print its name in the error message.
pub const NEEDS: &str = "MPI_NEEDS_4_BYTE_INTEGERS";
/// With 4 bytes the quotient is 1, exactly: gfortran -Wall warns of a quotient that is truncated.
pub const NEEDS_VALUE: &str = "32/(64-BIT_SIZE(0))";

/// The constants that state whether an interface supports a feature.
pub const SUPPORT: &[&str] = &["MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"];

/// Returns the Fortran value; string lengths are without the terminating zero byte of C.
pub fn value(constant: &Constant) -> i64 {
    if constant.name.starts_with("MPI_MAX_") {
        constant.value - 1
    } else {
        constant.value
    }
}
