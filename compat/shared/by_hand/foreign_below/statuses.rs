//! Tests of functions that do not call the backend: status fields, address arithmetic, version.

use super::*;

macro_rules! field {
    ($get:ident, $set:ident, $field:ident) => {{
        // A program's status contains constants of the program's own ABI. These functions store and return them without a conversion.
        for value in [word("rank"), word("tag"), failure()].map(|pair| pair.0) {
            let before = StandardStatus {
                source: 71,
                tag: 72,
                error: 73,
                ..StandardStatus::with(0x1_0000_0007, true)
            };
            let (mut status, mut found) = (before, -7);
            assert_eq!(call!($set(&raw mut status, value)), 0, "{}", stringify!($set));
            assert_eq!(call!($get(&raw const status, &raw mut found)), 0, "{}", stringify!($get));
            assert_eq!(found, value, "{}", stringify!($get));
            let expected = StandardStatus { $field: value, ..before };
            assert_eq!(status, expected, "{}: nothing else", stringify!($set));
        }
    }};
}

pub fn check() {
    field!(MPI_Status_get_source, MPI_Status_set_source, source);
    field!(MPI_Status_get_tag, MPI_Status_set_tag, tag);
    field!(MPI_Status_get_error, MPI_Status_set_error, error);
    assert_eq!(call!(MPI_Aint_add(isize::MAX - 3, 3)), isize::MAX);
    assert_eq!(call!(MPI_Aint_diff(isize::MIN, -5)), isize::MIN + 5);
    let (mut version, mut subversion) = (-7, -7);
    assert_eq!(
        call!(MPI_Get_version(&raw mut version, &raw mut subversion)),
        0
    );
    assert_eq!((version, subversion), (5, 0), "the version of the standard");
}
