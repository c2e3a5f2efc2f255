//! Callbacks of programs built for another ABI: a function and a context with which it converts handles and codes for the program.
#![allow(unsafe_code)]

use crate::thrown::guarded;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// Frees a context.
pub type Release = unsafe extern "C" fn(*mut c_void);

/// The context argument of a callback, freed when the last reference to it is dropped.
#[derive(Debug)]
pub struct Context {
    pub(crate) value: *mut c_void,
    pub(crate) release: Release,
}

// SAFETY: the library that created the context guarantees that its function may be called from any thread inside MPI.
unsafe impl Send for Context {}
// SAFETY: as for `Send`: the owner of the context promises that any thread inside MPI may use it, and the shared value is only read here.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the last reference is being dropped; the library that created the context frees it with its own function.
        unsafe { (self.release)(self.value) }
    }
}

/// An error handler: its function gets the context, the object's handle, and a pointer to the code, which it may change.
#[derive(Clone, Debug)]
pub struct Contextual {
    pub(crate) function: unsafe extern "C-unwind" fn(*mut c_void, usize, *mut c_int),
    pub(crate) context: Arc<Context>,
}

impl Contextual {
    /// Calls the handler function for an object.
    pub fn invoke(&self, object: usize, code: &mut c_int) {
        let (function, context, code) = (self.function, self.context.value, &raw mut *code);
        // SAFETY: the library that created the handler guarantees that its function takes these arguments; the code is a local.
        guarded((), move || unsafe { function(context, object, code) });
    }
}
