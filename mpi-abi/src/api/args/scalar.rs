//! Pointers to one scalar, handle or status.

use super::null;
use crate::error::{Failure, Outcome};
use std::marker::PhantomData;

/// An argument that is only read.
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

    /// Returns the value, `None` for a null pointer.
    #[inline(always)]
    pub fn peek(self) -> Option<T> {
        // SAFETY: not null, so valid for reading by the contract of `new`.
        (!self.0.is_null()).then(|| unsafe { *self.0 })
    }

    /// Returns the value.
    #[inline(always)]
    pub fn get(self, name: &str) -> Result<T, Failure> {
        self.peek().ok_or_else(|| null(name))
    }
}

/// An argument that is only written.
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
    /// `to` is null, a constant such as `MPI_STATUS_IGNORE`, or valid for writing: during the call, and if the call returns a request also
    /// until that completes.
    #[inline(always)]
    pub unsafe fn new(to: *mut T) -> Self {
        Out(to, PhantomData)
    }

    /// Returns the argument for a variable of this library.
    #[inline(always)]
    pub fn of(to: &'a mut T) -> Self {
        Out(to, PhantomData)
    }

    /// Returns the address, which is not null for an argument that is present.
    #[inline(always)]
    pub fn address(self) -> *mut T {
        self.0
    }

    #[inline(always)]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Stores a value unless the pointer is null; returns true if it did.
    #[inline(always)]
    pub fn put(self, value: T) -> bool {
        let is_present = !self.0.is_null();
        if is_present {
            // SAFETY: not null, so valid for writing by the contract of `new`.
            unsafe { self.0.write(value) };
        }
        is_present
    }

    /// Returns the argument for the time of completion; a null pointer is an error.
    pub fn later(self, name: &str) -> Result<Later<T>, Failure> {
        match self.0.is_null() {
            true => Err(null(name)),
            false => Ok(Later(self.0)),
        }
    }

    /// Stores the result; a null pointer is an error.
    #[inline(always)]
    pub fn set(self, value: T, name: &str) -> Outcome {
        if self.0.is_null() {
            return Err(null(name));
        }
        // SAFETY: not null, so valid for writing by the contract of `new`.
        unsafe { self.0.write(value) };
        Ok(())
    }
}

/// An argument that is written when the request of the call completes.
pub struct Later<T>(*mut T);

impl<T> Later<T> {
    /// # Safety
    /// The request of the call is not complete yet.
    pub unsafe fn put(&self, value: T) {
        // SAFETY: not null, and valid for writing until the request completes by the contract of `Out::new`.
        unsafe { self.0.write(value) };
    }
}

/// An argument that is read and written.
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
    /// `at` is null or valid for reading and writing: during the call, and if the call returns a request also until that completes.
    #[inline(always)]
    pub unsafe fn new(at: *mut T) -> Self {
        InOut(at, PhantomData)
    }

    /// Returns the argument for a variable of this library.
    #[inline(always)]
    pub fn of(at: &'a mut T) -> Self {
        InOut(at, PhantomData)
    }

    /// Returns the value, `None` for a null pointer.
    #[inline(always)]
    pub fn peek(self) -> Option<T> {
        // SAFETY: not null, so valid for reading by the contract of `new`.
        (!self.0.is_null()).then(|| unsafe { *self.0 })
    }

    /// Returns the value.
    #[inline(always)]
    pub fn get(self, name: &str) -> Result<T, Failure> {
        self.peek().ok_or_else(|| null(name))
    }

    /// Returns the argument for writing.
    #[inline(always)]
    pub fn out(self) -> Out<'a, T> {
        Out(self.0, PhantomData)
    }

    /// Stores the result; a null pointer is an error.
    #[inline(always)]
    pub fn set(self, value: T, name: &str) -> Outcome {
        self.out().set(value, name)
    }
}
