//! Values of the named constants in Fortran.

use crate::table::Constant;

/// The kinds of integers that hold addresses, counts and offsets.
pub const KINDS: &[(&str, &str)] = &[
    ("MPI_ADDRESS_KIND", "SELECTED_INT_KIND(18)"),
    ("MPI_COUNT_KIND", "SELECTED_INT_KIND(18)"),
    ("MPI_OFFSET_KIND", "SELECTED_INT_KIND(18)"),
    ("MPI_INTEGER_KIND", "KIND(0)"),
];

/// A constant whose definition divides by zero where a default INTEGER has 8 bytes: its name is what the compiler then prints.
pub const NEEDS: &str = "MPI_NEEDS_4_BYTE_INTEGERS";
pub const NEEDS_VALUE: &str = "1/(64-BIT_SIZE(0))";

/// What an interface supports.
pub const SUPPORT: &[&str] = &["MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"];

/// The value in Fortran: the lengths of strings have no terminating zero byte there.
pub fn value(constant: &Constant) -> i64 {
    if constant.name.starts_with("MPI_MAX_") {
        constant.value - 1
    } else {
        constant.value
    }
}
