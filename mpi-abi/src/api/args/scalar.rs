//! Pointers to one scalar, handle or status.

use super::null;
use crate::error::{Failure, Outcome};
use std::marker::PhantomData;

/// A pointer to an input value.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct In<'a, T>(*const T, PhantomData<&'a T>);

impl<T: Copy> In<'_, T> {
    /// # Safety
    /// `from` is null or valid for reading during the call.
    #[inline(always)]
    pub unsafe fn new(from: *const T) -> Self {
        In(from, PhantomData)
    }

    /// Returns the value, or `None` for a null pointer.
    #[inline(always)]
    pub fn peek(self) -> Option<T> {
        // SAFETY: the pointer is not null, so valid for reading by the contract of `new`.
        (!self.0.is_null()).then(|| unsafe { *self.0 })
    }

    /// Returns the value. A null pointer is an error.
    #[inline(always)]
    pub fn get(self, name: &str) -> Result<T, Failure> {
        self.peek().ok_or_else(|| null(name))
    }
}

/// A pointer to an output value.
#[repr(transparent)]
pub struct Out<'a, T>(*mut T, PhantomData<&'a mut T>);

impl<T> Clone for Out<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<'_, T> {}

impl<'a, T> Out<'a, T> {
    /// # Safety
    /// `to` is null, a constant such as `MPI_STATUS_IGNORE`, or valid for writing.
    /// The pointer stays valid until the call returns, or until the request of the call completes.
    #[inline(always)]
    pub unsafe fn new(to: *mut T) -> Self {
        Out(to, PhantomData)
    }

    /// Makes an output argument from a variable of this library.
    #[inline(always)]
    pub fn of(to: &'a mut T) -> Self {
        Out(to, PhantomData)
    }

    /// Returns the address, which is null if the caller passed no argument.
    #[inline(always)]
    pub fn address(self) -> *mut T {
        self.0
    }

    #[inline(always)]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Stores a value unless the pointer is null. Returns true if the value was stored.
    #[inline(always)]
    pub fn put(self, value: T) -> bool {
        let is_present = !self.0.is_null();
        if is_present {
            // SAFETY: the pointer is not null, so valid for writing by the contract of `new`.
            unsafe { self.0.write(value) };
        }
        is_present
    }

    /// Returns an output argument that is written at completion. A null pointer is an error.
    pub fn later(self, name: &str) -> Result<Later<T>, Failure> {
        match self.0.is_null() {
            true => Err(null(name)),
            false => Ok(Later(self.0)),
        }
    }

    /// Stores a value. A null pointer is an error.
    #[inline(always)]
    pub fn set(self, value: T, name: &str) -> Outcome {
        if self.0.is_null() {
            return Err(null(name));
        }
        // SAFETY: the pointer is not null, so valid for writing by the contract of `new`.
        unsafe { self.0.write(value) };
        Ok(())
    }
}

/// An output argument that is written when the request of the call completes.
pub struct Later<T>(*mut T);

impl<T> Later<T> {
    /// # Safety
    /// The request of the call is not complete yet.
    pub unsafe fn put(&self, value: T) {
        // SAFETY: by the contract of `Out::new`, the pointer is valid until the request completes.
        unsafe { self.0.write(value) };
    }
}

/// A pointer to a value that is both input and output.
#[repr(transparent)]
pub struct InOut<'a, T>(*mut T, PhantomData<&'a mut T>);

impl<T> Clone for InOut<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for InOut<'_, T> {}

impl<'a, T: Copy> InOut<'a, T> {
    /// # Safety
    /// `at` is null or valid for reading and writing.
    /// The pointer stays valid until the call returns, or until the request of the call completes.
    #[inline(always)]
    pub unsafe fn new(at: *mut T) -> Self {
        InOut(at, PhantomData)
    }

    /// Makes an in-out argument from a variable of this library.
    #[inline(always)]
    pub fn of(at: &'a mut T) -> Self {
        InOut(at, PhantomData)
    }

    /// Returns the value, or `None` for a null pointer.
    #[inline(always)]
    pub fn peek(self) -> Option<T> {
        // SAFETY: the pointer is not null, so valid for reading by the contract of `new`.
        (!self.0.is_null()).then(|| unsafe { *self.0 })
    }

    /// Returns the value. A null pointer is an error.
    #[inline(always)]
    pub fn get(self, name: &str) -> Result<T, Failure> {
        self.peek().ok_or_else(|| null(name))
    }

    /// Returns the pointer as an output argument.
    #[inline(always)]
    pub fn out(self) -> Out<'a, T> {
        Out(self.0, PhantomData)
    }

    /// Stores a value. A null pointer is an error.
    #[inline(always)]
    pub fn set(self, value: T, name: &str) -> Outcome {
        self.out().set(value, name)
    }
}
