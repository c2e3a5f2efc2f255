//! The plugin ABI of collective components: the tables of the header, and how a table of another size is read.
//!
//! The header documents the rules; a test compiles it and compares the layout of every table with these.
//! Every slot is an `Option` or a nullable pointer, so zeroed memory is a valid table without functions.
//! That allows a table to grow at its end.
#![allow(unsafe_code)]

pub use super::table::*;

use crate::manifest::Interface;
use std::ffi::c_char;

/// The version that this library speaks, with the layout hash of each minor version: a header whose tables grow has a new minor version and a new line here.
///
/// A line of a released version is never changed; a test computes the last hash from the tables.
pub const INTERFACE: Interface = Interface {
    major: ABI_VERSION,
    layouts: &[(0, ABI_LAYOUT)],
};

/// The only symbol that a plugin exports, of type [`Entry`].
pub const SYMBOL: &str = "portcullis_component";

/// The type of the symbol: a function that is called once and returns a table that stays valid for the rest of the process.
pub type Entry = unsafe extern "C-unwind" fn() -> *const ComponentTable;

// SAFETY: the pointers in a `Host` are to functions and to constants, which no code writes.
unsafe impl Sync for Host {}
// SAFETY: the pointers in a `ModuleTable` are to functions and to constants, which no code writes.
unsafe impl Sync for ModuleTable {}
// SAFETY: the pointers in an `Operation` are to functions.
unsafe impl Sync for Operation {}
// SAFETY: the pointers in a `Param` are to constant texts, which no code writes.
unsafe impl Sync for Param {}
// SAFETY: the pointers in a `ComponentTable` are to functions and to constants, which no code writes.
unsafe impl Sync for ComponentTable {}

/// A table that may have been compiled against an older or a newer header.
///
/// # Safety
/// The type must be `repr(C)`, begin with its size as a `usize`, and be valid when all of it is zero.
pub unsafe trait Table: Copy {}

// SAFETY: `repr(C)`, `size` comes first, and zero is valid in every field: a zeroed `Option` of a function is `None`.
unsafe impl Table for Host {}
// SAFETY: `repr(C)`, `size` comes first, and zero is valid in every field: a zeroed `Option` of a function is `None`.
unsafe impl Table for ModuleTable {}
// SAFETY: `repr(C)`, `size` comes first, and zero is valid in every field: a zeroed `Option` of a function is `None`.
unsafe impl Table for ComponentTable {}
// SAFETY: `repr(C)`, `size` comes first, and zero is valid in every field: null pointers, and numbers.
unsafe impl Table for Args {}
// SAFETY: `repr(C)`, `size` comes first, and all fields are numbers.
unsafe impl Table for TypeInfo {}
// SAFETY: `repr(C)`, `size` comes first, and all fields are numbers.
unsafe impl Table for OpInfo {}
// SAFETY: `repr(C)`, `size` comes first, and zero is valid in every field: a null pointer, and numbers.
unsafe impl Table for Topology {}

/// Copies a table, up to the smaller of its size and ours; missing slots read as absent.
///
/// # Safety
/// `table` must be readable for the number of bytes that its first field gives.
pub unsafe fn read<T: Table>(table: *const T) -> T {
    // SAFETY: every table begins with its size (contract of [`Table`]), and the caller guarantees that it is readable.
    let known = unsafe { table.cast::<usize>().read() }.min(size_of::<T>());
    let mut copy = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: both are at least `known` bytes long; a zeroed `T`, and any prefix of a table over it, is a valid `T` (contract of [`Table`]).
    unsafe {
        std::ptr::copy_nonoverlapping(table.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), known);
        copy.assume_init()
    }
}

/// Fills in a table that the other side has allocated, up to the smaller of its size and ours, and keeps its size.
///
/// # Safety
/// `to` is null, or writable for the number of bytes that its first field gives.
pub unsafe fn fill_in<T: Table>(to: *mut T, from: &T) {
    if to.is_null() {
        return;
    }
    // SAFETY: not null, and every table begins with its size (contract of [`Table`]).
    let size = unsafe { to.cast::<usize>().read() };
    let known = size.min(size_of::<T>());
    // SAFETY: both are at least `known` bytes long, and the caller guarantees that `to` is writable.
    unsafe {
        std::ptr::copy_nonoverlapping(std::ptr::from_ref(from).cast::<u8>(), to.cast(), known);
        to.cast::<usize>().write(size);
    }
}

impl Why {
    /// An empty reason.
    pub fn new() -> Why {
        Why { text: [0; 512] }
    }

    /// Returns true if it has no text.
    pub fn is_empty(&self) -> bool {
        self.text[0] == 0
    }

    /// The text, or a default if the plugin gave no reason.
    pub fn sentence(&self) -> String {
        let end = self.text.iter().position(|c| *c == 0);
        let bytes = self.text.map(|c| c as u8);
        match String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).trim() {
            "" => "it gives no reason".to_string(),
            text => text.to_string(),
        }
    }

    /// Stores a text, truncated at a character boundary if it is too long.
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
