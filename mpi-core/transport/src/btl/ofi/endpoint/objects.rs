//! The open objects of libfabric, access to fields of its structures, and its error texts.

#![allow(unsafe_code)]

use super::super::LIBRARY;
use super::super::abi::{self, Functions, Object, Pointer};
use crate::btl::fabric::library::LibraryError;
use std::ffi::{CStr, c_int};
use std::ptr::null_mut;

/// The open objects of the library, in the order in which they were opened. They are closed in the reverse order.
pub(super) struct Objects {
    pub library: Functions,
    /// The list that `fi_getinfo` returned, or null.
    pub info: Pointer,
    open: Vec<Object>,
}

impl Objects {
    pub fn of(library: Functions) -> Objects {
        Objects {
            library,
            info: null_mut(),
            open: Vec::new(),
        }
    }

    pub fn text(&self, error: isize) -> String {
        let number = c_int::try_from(error.unsigned_abs()).unwrap_or(c_int::MAX);
        // SAFETY: the function accepts any number and returns a static string, or null.
        let text = unsafe { (self.library.fi_strerror)(number) };
        match text.is_null() {
            true => format!("error {error} of libfabric"),
            // SAFETY: the string is not null, is zero-terminated and static.
            false => unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
        }
    }

    pub fn failed(&self, doing: &'static str, error: c_int) -> LibraryError {
        failure(doing, self.text(error as isize))
    }

    /// Records an object that the call `doing` has opened. Returns an error if the call has failed.
    pub fn opened(
        &mut self,
        doing: &'static str,
        result: c_int,
        object: Pointer,
    ) -> Result<Object, LibraryError> {
        match (result, object.is_null()) {
            (0, false) => {
                self.open.push(Object(object));
                Ok(Object(object))
            }
            (error, _) => Err(self.failed(doing, error)),
        }
    }

    /// Closes `object` if it is the last object that was opened.
    pub fn close_last(&mut self, object: Object) {
        if self.open.last() == Some(&object) {
            self.open.pop();
            // SAFETY: the object was open, and was removed from the list of open objects.
            unsafe { close(object) };
        }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        for object in self.open.drain(..).rev() {
            // SAFETY: each object is removed from the list of open objects here, after the objects that were opened later.
            unsafe { close(object) };
        }
        if !self.info.is_null() {
            // SAFETY: `info` is the list that `fi_getinfo` returned, and no other function frees it.
            unsafe { (self.library.fi_freeinfo)(self.info) };
        }
    }
}

/// Closes an object, such as an endpoint or a registration of memory.
///
/// # Safety
/// The object must be open and must not be used afterwards, and all objects that depend on it must be closed.
pub(super) unsafe fn close(object: Object) {
    // SAFETY: all objects have this function, and the caller guarantees that this object may be closed.
    unsafe {
        if let Some(close) = object.function::<abi::Close>(abi::CLOSE) {
            close(object.0);
        }
    }
}

pub(super) fn failure(doing: &'static str, reason: String) -> LibraryError {
    LibraryError::Failed {
        title: LIBRARY.title,
        doing,
        reason,
    }
}

/// Returns a function of an object, or an error if the loaded version of the library lacks the function.
///
/// # Safety
/// As for [`Object::function`].
pub(super) unsafe fn need<F: Copy>(
    object: Object,
    entry: abi::Entry,
    doing: &'static str,
) -> Result<F, LibraryError> {
    // SAFETY: the caller guarantees that the object is open and that `F` is the type of this entry.
    let function = unsafe { object.function(entry) };
    function.ok_or_else(|| failure(doing, "this version has no such function".into()))
}

/// Reads a pointer field of a structure. Returns null if the structure is null.
///
/// # Safety
/// `object` must be null or point to a structure with a pointer at this offset.
pub(super) unsafe fn pointer_at(object: Pointer, offset: usize) -> Pointer {
    match object.is_null() {
        true => null_mut(),
        // SAFETY: the structure is not null, and the caller guarantees that it has a pointer at this offset.
        false => unsafe { object.byte_add(offset).cast::<Pointer>().read() },
    }
}

/// Sets a field of a structure that the library has allocated. Does nothing if the structure is null.
///
/// # Safety
/// As for [`pointer_at`], for a field of type `T`.
pub(super) unsafe fn set<T>(object: Pointer, offset: usize, value: T) {
    if !object.is_null() {
        // SAFETY: the structure is not null, and the caller guarantees that it has a `T` at this offset.
        unsafe { object.byte_add(offset).cast::<T>().write(value) };
    }
}

/// Reads a field of a structure. Returns `None` if the structure is null.
///
/// # Safety
/// As for [`set`].
pub(super) unsafe fn field<T: Copy>(object: Pointer, offset: usize) -> Option<T> {
    // SAFETY: the closure is called only if the structure is not null, and the caller guarantees that it has a `T` at this offset.
    (!object.is_null()).then(|| unsafe { object.byte_add(offset).cast::<T>().read() })
}
