//! Callbacks of programs built for another ABI, with a context that converts handles and codes.
#![allow(unsafe_code)]

use crate::thrown::guarded;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// A function that frees a context.
pub type Release = unsafe extern "C" fn(*mut c_void);

/// The context argument of a callback, freed when the last reference to it is dropped.
#[derive(Debug)]
pub struct Context {
    pub(crate) value: *mut c_void,
    pub(crate) release: Release,
}

// SAFETY: the library for the other ABI created the context.
// The creator guarantees that any thread inside MPI may use the context.
unsafe impl Send for Context {}
// SAFETY: the library that created the context guarantees use from any thread inside MPI.
// This crate only reads the pointer.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: this is the last reference. `release` belongs to the context's creator.
        unsafe { (self.release)(self.value) }
    }
}

/// An error handler of another ABI.
/// The function receives the context, the object's handle, and a pointer to the in-out code.
#[derive(Clone, Debug)]
pub struct Contextual {
    pub(crate) function: unsafe extern "C-unwind" fn(*mut c_void, usize, *mut c_int),
    pub(crate) context: Arc<Context>,
}

impl Contextual {
    /// Calls the handler function for an object.
    pub fn invoke(&self, object: usize, code: &mut c_int) {
        let (function, context, code) = (self.function, self.context.value, &raw mut *code);
        // SAFETY: the creator of the handler guarantees that its function takes these arguments.
        // The code is a local variable of the caller.
        guarded((), move || unsafe { function(context, object, code) });
    }
}
