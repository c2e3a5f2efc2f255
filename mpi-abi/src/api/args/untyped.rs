//! `void *` arguments of the tool interface: the address of an object's handle, or a value buffer.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

/// An address whose element type depends on the variable or event.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Untyped<'a>(*mut c_void, PhantomData<&'a mut c_void>);

impl Untyped<'_> {
    /// # Safety
    /// `at` is null, or valid during the call and one of two addresses.
    /// Either: the address of a handle of the kind to which the variable or the event is bound.
    /// Or: a buffer for the number and type of values that the tool interface has reported.
    #[inline(always)]
    pub unsafe fn new(at: *mut c_void) -> Self {
        Untyped(at, PhantomData)
    }

    #[inline]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the handle at this address, of any kind, or `None` for a null pointer.
    pub fn handle(self) -> Option<usize> {
        // SAFETY: the pointer is not null, so by the contract of `new` it refers to a handle.
        // Handles of all kinds have the size of a pointer.
        (!self.0.is_null()).then(|| unsafe { self.0.cast::<usize>().read_unaligned() })
    }

    /// Stores consecutive 64-bit values in the caller's buffer.
    /// The tool interface has reported the required number of elements to the caller.
    /// Returns false for a null pointer.
    pub fn put_words(self, values: impl Iterator<Item = u64>) -> bool {
        if self.0.is_null() {
            return false;
        }
        for (index, value) in values.enumerate() {
            // SAFETY: the pointer is not null, so it has room for these values by `new`'s contract.
            unsafe { self.0.cast::<u64>().add(index).write_unaligned(value) };
        }
        true
    }

    /// Stores the value of a variable of type int. Returns false for a null pointer.
    pub fn put_int(self, value: c_int) -> bool {
        if self.0.is_null() {
            return false;
        }
        // SAFETY: the pointer is not null, so it refers to an int by the contract of `new`.
        unsafe { self.0.cast::<c_int>().write_unaligned(value) };
        true
    }

    /// Stores bytes. The tool interface has reported their number to the caller.
    /// Returns false for a null pointer.
    pub fn put_bytes(self, bytes: &[u8]) -> bool {
        if self.0.is_null() {
            return false;
        }
        // SAFETY: the pointer is not null, so it has room for these bytes by `new`'s contract.
        // The source is a slice of this library, so source and buffer do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.cast(), bytes.len()) };
        true
    }
}
