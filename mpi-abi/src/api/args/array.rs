//! Array arguments.
//!
//! Most arrays have a length argument, which the generated wrapper passes along.
//! An argument with a negative length is an empty array. The MPI function reports the wrong length.

use super::{IntoI64, Out, null};
use crate::device::{self, Access};
use crate::error::{Failure, Outcome};
use crate::state;
use mpi_core::datatype::Named;
use std::ffi::c_int;
use std::marker::PhantomData;

/// An input array with a known length.
#[derive(Clone, Copy)]
pub struct InArray<'a, T> {
    first: *const T,
    len: usize,
    of: PhantomData<&'a [T]>,
}

impl<'a, T> InArray<'a, T> {
    /// # Safety
    /// `first` is null, a constant such as `MPI_UNWEIGHTED`, or valid during the call.
    /// A valid pointer has `len` readable elements.
    #[inline(always)]
    pub unsafe fn new(first: *const T, len: impl IntoI64) -> Self {
        InArray {
            first,
            len: usize::try_from(len.wide()).unwrap_or(0),
            of: PhantomData,
        }
    }

    /// Returns the address, for comparison with constants such as `MPI_UNWEIGHTED`.
    #[inline(always)]
    pub fn address(self) -> *const T {
        self.first
    }

    pub fn len(self) -> usize {
        self.len
    }

    /// Returns the elements. A null pointer is an error unless the length is 0.
    #[inline(always)]
    pub fn get(self, name: &str) -> Result<&'a [T], Failure> {
        match (self.first.is_null(), self.len) {
            (_, 0) => Ok(&[]),
            (true, _) => Err(null(name)),
            // SAFETY: `first` is not null, so `len` elements are readable by the contract of `new`.
            (false, len) => Ok(unsafe { std::slice::from_raw_parts(self.first, len) }),
        }
    }

    /// Returns the subarray of `len` elements that begins at `start`. A null pointer stays null.
    pub fn part(self, start: usize, len: usize) -> Self {
        let is_null = self.first.is_null();
        let first = self.first.wrapping_add(if is_null { 0 } else { start });
        let len = self.len.saturating_sub(start).min(len);
        InArray { first, len, ..self }
    }

    /// Returns the elements, which are counts or displacements, widened to `i64`.
    pub fn widened(self, name: &str) -> Result<Vec<i64>, Failure>
    where
        T: IntoI64,
    {
        Ok(self.get(name)?.iter().map(|v| v.wide()).collect())
    }
}

/// An input array whose length follows from an MPI object, such as the dimensions of a topology.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Uncounted<'a, T>(*const T, PhantomData<&'a [T]>);

impl<'a, T> Uncounted<'a, T> {
    /// # Safety
    /// `first` is null, a constant such as `MPI_UNWEIGHTED`, or readable during the call.
    /// The array has the number of readable elements that the standard defines for this argument.
    #[inline(always)]
    pub unsafe fn new(first: *const T) -> Self {
        Uncounted(first, PhantomData)
    }

    /// Returns the address, for comparison with constants such as `MPI_UNWEIGHTED`.
    pub fn address(self) -> *const T {
        self.0
    }

    /// Returns the array with the length `len`.
    ///
    /// # Safety
    /// By the standard, this argument has `len` elements.
    pub unsafe fn counted(self, len: usize) -> InArray<'a, T> {
        InArray {
            first: self.0,
            len,
            of: PhantomData,
        }
    }
}

/// An output array whose length follows from the call, such as the number of spawned processes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct UncountedOut<'a, T>(*mut T, PhantomData<&'a mut [T]>);

impl<'a, T> UncountedOut<'a, T> {
    /// # Safety
    /// `first` is null, a constant such as `MPI_ERRCODES_IGNORE`, or writable during the call.
    /// The array has the number of writable elements that the standard defines for this argument.
    #[inline(always)]
    pub unsafe fn new(first: *mut T) -> Self {
        UncountedOut(first, PhantomData)
    }

    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Returns the array with the length `len`.
    ///
    /// # Safety
    /// By the standard, this argument has `len` elements.
    pub unsafe fn counted(self, len: usize) -> InOutArray<'a, T> {
        InOutArray {
            first: self.0,
            len,
            of: PhantomData,
        }
    }
}

/// An output array whose capacity the caller passes by pointer.
#[derive(Clone, Copy)]
pub struct SizedOut<'a, T> {
    first: *mut T,
    size: *const c_int,
    of: PhantomData<&'a mut [T]>,
}

impl<T> SizedOut<'_, T> {
    /// # Safety
    /// `size` is null or readable, and `first` is null or writable for `*size` elements.
    /// Both pointers stay valid during the call.
    #[inline(always)]
    pub unsafe fn new(first: *mut T, size: *const c_int) -> Self {
        SizedOut {
            first,
            size,
            of: PhantomData,
        }
    }

    /// Stores at most `*size` values. A null pointer stores nothing.
    pub fn fill(self, values: impl Iterator<Item = T>) {
        if self.first.is_null() || self.size.is_null() {
            return;
        }
        // SAFETY: the pointer is not null, so valid for reading by the contract of `new`.
        let size = usize::try_from(unsafe { *self.size }).unwrap_or(0);
        for (index, value) in values.take(size).enumerate() {
            // SAFETY: `first` is not null, and `index < *size`, its length by the contract.
            unsafe { self.first.add(index).write(value) };
        }
    }
}

/// An array for output, or for both input and output.
pub struct InOutArray<'a, T> {
    first: *mut T,
    len: usize,
    of: PhantomData<&'a mut [T]>,
}

impl<T> Clone for InOutArray<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for InOutArray<'_, T> {}

impl<'a> InArray<'a, u8> {
    /// Returns the bytes of a buffer, which may be in device memory.
    pub fn bytes(self, name: &str) -> Result<&'a [u8], Failure> {
        let plain = self.first.is_null() || !state::is_staging();
        let staged = match plain {
            true => None,
            false => staged(self.first.cast_mut(), self.len, Access::Read)?,
        };
        let first = staged.map_or(self.first, <*mut u8>::cast_const);
        InArray { first, ..self }.get(name)
    }
}

impl<'a> InOutArray<'a, u8> {
    /// Returns the bytes of a buffer, which may be in device memory.
    pub fn bytes(self, name: &str) -> Result<&'a mut [u8], Failure> {
        let plain = self.first.is_null() || !state::is_staging();
        let staged = match plain {
            true => None,
            false => staged(self.first, self.len, Access::Update)?,
        };
        let first = staged.unwrap_or(self.first);
        InOutArray { first, ..self }.get(name)
    }
}

/// Copies a buffer from device memory to host memory, and returns the address of the copy.
#[cold]
fn staged(first: *mut u8, len: usize, access: Access) -> Result<Option<*mut u8>, Failure> {
    let count = i64::try_from(len).unwrap_or(i64::MAX);
    Ok(device::stage(first, count, &Named::BYTE.into(), access)?)
}

impl<'a, T> InOutArray<'a, T> {
    /// # Safety
    /// `first` is null, a constant such as `MPI_STATUSES_IGNORE`, or valid during the call.
    /// A valid pointer has `len` readable and writable elements.
    #[inline(always)]
    pub unsafe fn new(first: *mut T, len: impl IntoI64) -> Self {
        InOutArray {
            first,
            len: usize::try_from(len.wide()).unwrap_or(0),
            of: PhantomData,
        }
    }

    /// Returns the address, for comparison with constants such as `MPI_UNWEIGHTED`.
    #[inline(always)]
    pub fn address(self) -> *mut T {
        self.first
    }

    /// Returns the array of the one element to which an output argument points.
    pub fn of_one(element: Out<'a, T>) -> Self {
        InOutArray {
            first: element.address(),
            len: 1,
            of: PhantomData,
        }
    }

    /// Returns an empty array, for a call whose caller passed no array.
    pub fn none() -> Self {
        InOutArray {
            first: std::ptr::null_mut(),
            len: 0,
            of: PhantomData,
        }
    }

    /// Returns the array as an input array, for a function that only reads it.
    pub fn input(self) -> InArray<'a, T> {
        let InOutArray { first, len, .. } = self;
        InArray {
            first,
            len,
            of: PhantomData,
        }
    }

    /// Returns the array of the first `most` elements.
    pub fn up_to(self, most: usize) -> Self {
        self.part(0, most)
    }

    /// Returns the subarray of `len` elements that begins at `start`. A null pointer stays null.
    pub fn part(self, start: usize, len: usize) -> Self {
        let is_null = self.first.is_null();
        let first = self.first.wrapping_add(if is_null { 0 } else { start });
        let len = self.len.saturating_sub(start).min(len);
        InOutArray { first, len, ..self }
    }

    /// Returns the elements. A null pointer is an error unless the length is 0.
    #[inline(always)]
    pub fn get(self, name: &str) -> Result<&'a mut [T], Failure> {
        match (self.first.is_null(), self.len) {
            (_, 0) => Ok(&mut []),
            (true, _) => Err(null(name)),
            // SAFETY: `first` is not null, so `len` elements are valid by the contract of `new`.
            // The standard forbids that arguments of one call overlap.
            (false, len) => Ok(unsafe { std::slice::from_raw_parts_mut(self.first, len) }),
        }
    }

    /// Returns the element at an index, or `None` if the index is out of range.
    #[inline(always)]
    pub fn at(self, index: usize) -> Option<Out<'a, T>> {
        // SAFETY: the index is below `len`, so the element is writable by the contract of `new`.
        (index < self.len).then(|| unsafe { Out::new(self.first.wrapping_add(index)) })
    }

    /// Stores the element at an index; a null pointer is an error.
    #[inline]
    pub fn set(self, index: usize, value: T, name: &str) -> Outcome {
        match self.at(index) {
            Some(place) if !self.first.is_null() => place.set(value, name),
            _ => Err(null(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_array_is_refused_unless_it_is_empty() {
        // SAFETY: `new` accepts null pointers.
        let array = |len: i32| unsafe { InArray::<i32>::new(std::ptr::null(), len) };
        assert!(array(0).get("a").is_ok_and(<[i32]>::is_empty));
        // A negative length gives an empty array; the MPI function reports the error.
        assert!(array(-1).get("a").is_ok_and(<[i32]>::is_empty));
        let failure = array(2).get("a").unwrap_err();
        assert_eq!(failure.message(), "a is a null pointer");
        assert!(array(2).part(1, 1).get("a").is_err());
        assert!(array(2).part(1, 0).get("a").is_ok());
    }

    #[test]
    fn a_part_stays_within_the_array() {
        let mut numbers = [1, 2, 3];
        // SAFETY: the array has three elements.
        let array = unsafe { InOutArray::new(numbers.as_mut_ptr(), 3) };
        let part = |start, len| array.part(start, len).input().get("a").ok();
        assert_eq!(part(1, 9), Some(&[2, 3][..]));
        assert_eq!(part(0, 2), Some(&[1, 2][..]));
        assert_eq!(part(5, 1), Some(&[][..]));
        assert!(array.at(2).is_some() && array.at(3).is_none());
        assert!(array.set(3, 7, "a").is_err());
    }
}
