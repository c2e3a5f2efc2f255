//! A function of the program of another ABI, which is called with a context so that it can convert what the program expects.
#![allow(unsafe_code)]

use crate::thrown::guarded;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// Frees a context.
pub type Release = unsafe extern "C" fn(*mut c_void);

/// What a function of another library is called with, until nothing refers to it.
#[derive(Debug)]
pub struct Context {
    pub(crate) value: *mut c_void,
    pub(crate) release: Release,
}

// SAFETY: the library that gave the context promises that its function may be called from any thread that is in MPI.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the last reference; the library that gave the context frees it.
        unsafe { (self.release)(self.value) }
    }
}

/// An error handler whose function gets a context, the object's handle, and the code, which it may change.
#[derive(Clone, Debug)]
pub struct Contextual {
    pub(crate) function: unsafe extern "C-unwind" fn(*mut c_void, usize, *mut c_int),
    pub(crate) context: Arc<Context>,
}

impl Contextual {
    /// Calls the function on an object.
    pub fn invoke(&self, object: usize, code: &mut c_int) {
        let (function, context, code) = (self.function, self.context.value, &raw mut *code);
        // SAFETY: the library that made the handler promises that its function takes these; the code is a local.
        guarded((), move || unsafe { function(context, object, code) });
    }
}
