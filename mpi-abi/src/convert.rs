//! Conversion of scalars between a function and its large-count variant, for generated wrappers.
#![allow(unsafe_code)]

use crate::abi::{MPI_ERR_ARG, MPI_ERR_COUNT, MPI_ERR_VALUE_TOO_LARGE, MPI_UNDEFINED};
use crate::error::Failure;
use std::fmt::Display;

/// Converts a scalar argument to another width. A value that does not fit is an error.
#[inline]
pub fn scalar<From, To>(value: From, name: &str) -> Result<To, Failure>
where
    From: Copy + Display + TryInto<To>,
{
    value.try_into().map_err(|_| {
        Failure::new(
            MPI_ERR_COUNT,
            format!("{name} is {value}, more than this function can pass on"),
        )
    })
}

/// Reads the scalar behind an in-out pointer, and converts it.
///
/// # Safety
/// A pointer that is not null is valid for reading.
#[inline]
pub unsafe fn read_scalar<From, To>(from: *mut From, name: &str) -> Result<To, Failure>
where
    From: Copy + Display + TryInto<To>,
{
    if from.is_null() {
        return Err(Failure::new(
            MPI_ERR_ARG,
            format!("{name} is a null pointer"),
        ));
    }
    // SAFETY: the pointer is not null, so it is readable by the `# Safety` contract.
    let value = unsafe { *from };
    value.try_into().map_err(|_| {
        Failure::new(
            MPI_ERR_VALUE_TOO_LARGE,
            format!("{name} is {value}, more than this function can hold"),
        )
    })
}

/// Stores a result in another width.
/// A value that does not fit becomes `MPI_UNDEFINED`, as the standard requires for counts.
///
/// # Safety
/// A pointer that is not null is valid for writing.
#[inline]
pub unsafe fn write_scalar<From, To>(to: *mut To, value: From)
where
    From: TryInto<To>,
    To: TryFrom<i32>,
{
    let stored = value
        .try_into()
        .ok()
        .or_else(|| To::try_from(MPI_UNDEFINED).ok());
    if let (false, Some(stored)) = (to.is_null(), stored) {
        // SAFETY: the pointer is not null, so it is writable by the `# Safety` contract.
        unsafe { *to = stored };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_does_not_fit_is_refused_by_name() {
        assert_eq!(scalar::<i32, i64>(-7, "count").ok(), Some(-7));
        let failure = scalar::<i64, i32>(1 << 40, "count").unwrap_err();
        assert_eq!(failure.code(), MPI_ERR_COUNT);
        assert!(failure.message().contains("count is 1099511627776"));
    }

    #[test]
    fn a_result_that_does_not_fit_becomes_undefined() {
        let mut small = 0i32;
        // SAFETY: the pointer refers to a local variable.
        unsafe { write_scalar(&mut small, 1i64 << 40) };
        assert_eq!(small, MPI_UNDEFINED);
        // SAFETY: the pointer refers to a local variable.
        unsafe { write_scalar(&mut small, 12i64) };
        assert_eq!(small, 12);
    }
}
