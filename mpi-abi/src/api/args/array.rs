//! Arrays.
//!
//! The length of most is an argument too.
//! A negative length makes an empty array; the implementation reports it as an error of the length.

use super::{IntoI64, Out, null};
use crate::device::{self, Access};
use crate::error::{Failure, Outcome};
use crate::state;
use mpi_core::datatype::Named;
use std::ffi::c_int;
use std::marker::PhantomData;

/// An array that is only read.
#[derive(Clone, Copy)]
pub struct InArray<'a, T> {
    first: *const T,
    len: usize,
    of: PhantomData<&'a [T]>,
}

impl<'a, T> InArray<'a, T> {
    /// # Safety
    /// `first` is null, a constant such as `MPI_UNWEIGHTED`, or valid for reading `len` elements during the call.
    #[inline(always)]
    pub unsafe fn new(first: *const T, len: impl IntoI64) -> Self {
        InArray {
            first,
            len: usize::try_from(len.wide()).unwrap_or(0),
            of: PhantomData,
        }
    }

    /// Returns the address, to compare it with the constants that some functions accept instead of an array.
    #[inline(always)]
    pub fn address(self) -> *const T {
        self.first
    }

    pub fn len(self) -> usize {
        self.len
    }

    /// Returns the elements; a null pointer is an error unless there are none.
    #[inline(always)]
    pub fn get(self, name: &str) -> Result<&'a [T], Failure> {
        match (self.first.is_null(), self.len) {
            (_, 0) => Ok(&[]),
            (true, _) => Err(null(name)),
            // SAFETY: not null, so valid for reading `len` elements by the contract of `new`.
            (false, len) => Ok(unsafe { std::slice::from_raw_parts(self.first, len) }),
        }
    }

    /// Returns the array of `len` elements from an index on, which must be in this one; a null pointer stays one.
    pub fn part(self, start: usize, len: usize) -> Self {
        let is_null = self.first.is_null();
        let first = self.first.wrapping_add(if is_null { 0 } else { start });
        let len = self.len.saturating_sub(start).min(len);
        InArray { first, len, ..self }
    }

    /// Returns the elements, which are counts or displacements, in the engine's width.
    pub fn widened(self, name: &str) -> Result<Vec<i64>, Failure>
    where
        T: IntoI64,
    {
        Ok(self.get(name)?.iter().map(|v| v.wide()).collect())
    }
}

/// An array that is only read, whose length depends on an object, such as the dimensions of a grid.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Uncounted<'a, T>(*const T, PhantomData<&'a [T]>);

impl<'a, T> Uncounted<'a, T> {
    /// # Safety
    /// `first` is null, a constant such as `MPI_UNWEIGHTED`, or valid during the call for reading the number of elements that the standard says.
    #[inline(always)]
    pub unsafe fn new(first: *const T) -> Self {
        Uncounted(first, PhantomData)
    }

    /// Returns the address, to compare it with the constants that some functions accept instead of an array.
    pub fn address(self) -> *const T {
        self.0
    }

    /// Returns the array with its length.
    ///
    /// # Safety
    /// The standard says that this argument has `len` elements.
    pub unsafe fn counted(self, len: usize) -> InArray<'a, T> {
        InArray {
            first: self.0,
            len,
            of: PhantomData,
        }
    }
}

/// An array that is only written, whose length depends on an object, such as the number of spawned processes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct UncountedOut<'a, T>(*mut T, PhantomData<&'a mut [T]>);

impl<'a, T> UncountedOut<'a, T> {
    /// # Safety
    /// `first` is null, a constant such as `MPI_ERRCODES_IGNORE`, or valid during the call for writing the number of elements that the standard says.
    #[inline(always)]
    pub unsafe fn new(first: *mut T) -> Self {
        UncountedOut(first, PhantomData)
    }

    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Returns the array with its length.
    ///
    /// # Safety
    /// The standard says that this argument has `len` elements.
    pub unsafe fn counted(self, len: usize) -> InOutArray<'a, T> {
        InOutArray {
            first: self.0,
            len,
            of: PhantomData,
        }
    }
}

/// An array that is only written, whose length is behind a pointer.
#[derive(Clone, Copy)]
pub struct SizedOut<'a, T> {
    first: *mut T,
    size: *const c_int,
    of: PhantomData<&'a mut [T]>,
}

impl<T> SizedOut<'_, T> {
    /// # Safety
    /// `size` is null or valid for reading, and `first` is null or valid for writing `*size` elements, both during the call.
    #[inline(always)]
    pub unsafe fn new(first: *mut T, size: *const c_int) -> Self {
        SizedOut {
            first,
            size,
            of: PhantomData,
        }
    }

    /// Stores values as far as the array has space; a null pointer takes none.
    pub fn fill(self, values: impl Iterator<Item = T>) {
        if self.first.is_null() || self.size.is_null() {
            return;
        }
        // SAFETY: not null, so valid for reading by the contract of `new`.
        let size = usize::try_from(unsafe { *self.size }).unwrap_or(0);
        for (index, value) in values.take(size).enumerate() {
            // SAFETY: not null, and the index is below the length of the array by the contract of `new`.
            unsafe { self.first.add(index).write(value) };
        }
    }
}

/// An array that is written; whether it is also read is up to the function.
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

/// Returns the address of host memory that replaces bytes in device memory.
#[cold]
fn staged(first: *mut u8, len: usize, access: Access) -> Result<Option<*mut u8>, Failure> {
    let count = i64::try_from(len).unwrap_or(i64::MAX);
    Ok(device::stage(first, count, &Named::BYTE.into(), access)?)
}

impl<'a, T> InOutArray<'a, T> {
    /// # Safety
    /// `first` is null, a constant such as `MPI_STATUSES_IGNORE`, or valid for reading and writing `len` elements during the call.
    #[inline(always)]
    pub unsafe fn new(first: *mut T, len: impl IntoI64) -> Self {
        InOutArray {
            first,
            len: usize::try_from(len.wide()).unwrap_or(0),
            of: PhantomData,
        }
    }

    /// Returns the address, to compare it with the constants that some functions accept instead of an array.
    #[inline(always)]
    pub fn address(self) -> *mut T {
        self.first
    }

    /// Returns the array for a call without it.
    pub fn none() -> Self {
        InOutArray {
            first: std::ptr::null_mut(),
            len: 0,
            of: PhantomData,
        }
    }

    /// Returns the array for a function that only reads it.
    pub fn input(self) -> InArray<'a, T> {
        let InOutArray { first, len, .. } = self;
        InArray {
            first,
            len,
            of: PhantomData,
        }
    }

    /// Returns the array without all elements but the first `most`.
    pub fn up_to(self, most: usize) -> Self {
        self.part(0, most)
    }

    /// Returns the array of `len` elements from an index on, which must be in this one; a null pointer stays one.
    pub fn part(self, start: usize, len: usize) -> Self {
        let is_null = self.first.is_null();
        let first = self.first.wrapping_add(if is_null { 0 } else { start });
        let len = self.len.saturating_sub(start).min(len);
        InOutArray { first, len, ..self }
    }

    /// Returns the elements; a null pointer is an error unless there are none.
    #[inline(always)]
    pub fn get(self, name: &str) -> Result<&'a mut [T], Failure> {
        match (self.first.is_null(), self.len) {
            (_, 0) => Ok(&mut []),
            (true, _) => Err(null(name)),
            // SAFETY: not null, so valid for `len` elements by the contract of `new`; the standard forbids that arguments overlap.
            (false, len) => Ok(unsafe { std::slice::from_raw_parts_mut(self.first, len) }),
        }
    }

    /// Returns the element at an index, `None` behind the end.
    #[inline(always)]
    pub fn at(self, index: usize) -> Option<Out<'a, T>> {
        // SAFETY: within `len` elements, so valid for writing by the contract of `new`.
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
        // SAFETY: null pointers.
        let array = |len: i32| unsafe { InArray::<i32>::new(std::ptr::null(), len) };
        assert!(array(0).get("a").is_ok_and(<[i32]>::is_empty));
        // The function reports the negative length itself.
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
