//! The plugin ABI of collective components: the tables, and functions that read tables of other
//! header versions.
//!
//! The C header documents the rules. A test compiles it and compares the layout of every table.
//! Every slot is an `Option` or a nullable pointer, so a zeroed table is valid and empty.
//! Hence a newer version of a table can have more slots at its end.
#![allow(unsafe_code)]

pub use super::table::*;

use crate::manifest::Interface;
use std::ffi::c_char;

/// The interface version of this build, with the layout hash of each minor version.
/// A header with larger tables has a new minor version and a new line here.
///
/// The hash of a released minor version never changes; a test computes the last hash.
pub const INTERFACE: Interface = Interface {
    major: ABI_VERSION,
    layouts: &[(0, ABI_LAYOUT)],
};

/// The name of the only symbol that a plugin exports; its type is [`Entry`].
pub const SYMBOL: &str = "portcullis_component";

/// The type of the exported function. The library calls it once and stores the table.
pub type Entry = unsafe extern "C-unwind" fn() -> *const ComponentTable;

// SAFETY: the pointers in a `Host` point to functions and to constants that no code writes.
unsafe impl Sync for Host {}
// SAFETY: the pointers in a `ModuleTable` point to functions and to constants that no code writes.
unsafe impl Sync for ModuleTable {}
// SAFETY: the pointers in an `Operation` point to functions.
unsafe impl Sync for Operation {}
// SAFETY: the pointers in a `Param` point to constant texts that no code writes.
unsafe impl Sync for Param {}
// SAFETY: the pointers in a `ComponentTable` point to functions and to unwritten constants.
unsafe impl Sync for ComponentTable {}

/// A table that may come from a plugin or library compiled with another version of the header.
///
/// # Safety
/// The type is `repr(C)`, starts with its size as a `usize`, and is valid when all bytes are zero.
pub unsafe trait Table: Copy {}

// SAFETY: `repr(C)` with `size` first; zero is valid in every field (a zeroed `Option` is `None`).
unsafe impl Table for Host {}
// SAFETY: `repr(C)` with `size` first; zero is valid in every field (a zeroed `Option` is `None`).
unsafe impl Table for ModuleTable {}
// SAFETY: `repr(C)` with `size` first; zero is valid in every field (a zeroed `Option` is `None`).
unsafe impl Table for ComponentTable {}
// SAFETY: `repr(C)` with `size` first; zero is valid in every field (pointers and numbers).
unsafe impl Table for Args {}
// SAFETY: `repr(C)`, `size` is the first field, and all fields are numbers.
unsafe impl Table for TypeInfo {}
// SAFETY: `repr(C)`, `size` is the first field, and all fields are numbers.
unsafe impl Table for OpInfo {}
// SAFETY: `repr(C)` with `size` first; zero is valid in every field (pointers and numbers).
unsafe impl Table for Topology {}

/// Copies a table. Slots beyond the size of `table` are zero in the copy;
/// slots that `T` does not have are dropped.
///
/// # Safety
/// `table` is readable for the number of bytes in its first field.
pub unsafe fn read<T: Table>(table: *const T) -> T {
    // SAFETY: a table starts with its size and is readable by this function's contract.
    let known = unsafe { table.cast::<usize>().read() }.min(size_of::<T>());
    let mut copy = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: both have at least `known` bytes.
    // By the contract of [`Table`] the copy is a valid `T`.
    unsafe {
        std::ptr::copy_nonoverlapping(table.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), known);
        copy.assume_init()
    }
}

/// Copies `from` to a table of another header version, up to the smaller size of both.
/// The size field of `to` stays unchanged.
///
/// # Safety
/// `to` is null, or writable for the number of bytes in its first field.
pub unsafe fn fill_in<T: Table>(to: *mut T, from: &T) {
    if to.is_null() {
        return;
    }
    // SAFETY: `to` is not null, and every table starts with its size (contract of [`Table`]).
    let size = unsafe { to.cast::<usize>().read() };
    let known = size.min(size_of::<T>());
    // SAFETY: both have at least `known` bytes, and `to` is writable by this function's contract.
    unsafe {
        std::ptr::copy_nonoverlapping(std::ptr::from_ref(from).cast::<u8>(), to.cast(), known);
        to.cast::<usize>().write(size);
    }
}

impl Why {
    /// Returns an empty reason.
    pub fn new() -> Why {
        Why { text: [0; 512] }
    }

    /// Returns true if the reason has no text.
    pub fn is_empty(&self) -> bool {
        self.text[0] == 0
    }

    /// Returns the text, or a default sentence if the plugin gave no reason.
    pub fn sentence(&self) -> String {
        let end = self.text.iter().position(|c| *c == 0);
        let bytes = self.text.map(|c| c as u8);
        match String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).trim() {
            "" => "it gives no reason".to_string(),
            text => text.to_string(),
        }
    }

    /// Stores a text. A text that is too long is truncated at a character boundary.
    pub fn set(&mut self, text: &str) {
        let most = text.len().min(self.text.len() - 1);
        let end = (0..=most)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        self.text.fill(0);
        for (to, from) in self.text.iter_mut().zip(&text.as_bytes()[..end]) {
            *to = *from as c_char;
        }
    }
}

impl Default for Why {
    fn default() -> Why {
        Why::new()
    }
}
