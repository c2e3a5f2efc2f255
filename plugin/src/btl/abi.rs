//! The plugin ABI of transports: the tables of the header, and what is not in them.
//!
//! The header documents the rules; a test compiles it and compares the layout of every table with these.
#![allow(unsafe_code)]

pub use super::table::*;
pub use crate::coll::abi::{DONE, FAILED, Why, read};

use crate::coll::abi::Table;
use crate::manifest::Interface;

/// The version of this build, with the layout hash of each minor version. A line of a released version is never changed.
pub const INTERFACE: Interface = Interface {
    major: TRANSPORT_VERSION,
    layouts: &[(0, 0x9f07_d66d), (1, TRANSPORT_LAYOUT)],
};

/// The only symbol that a plugin exports, of type [`Entry`].
pub const SYMBOL: &str = "portcullis_transport";

/// The type of the symbol: a function that is called once and returns a table that stays valid for the rest of the process.
pub type Entry = unsafe extern "C-unwind" fn() -> *const Transport;

// SAFETY: the pointers in a `Host` are to functions and to constants, which no code writes.
unsafe impl Sync for Host {}
// SAFETY: the pointers in a `Param` are to constant texts, which no code writes.
unsafe impl Sync for Param {}
// SAFETY: the pointers in a `Transport` are to functions and to constants, which no code writes.
unsafe impl Sync for Transport {}

// SAFETY: `repr(C)`, `size` comes first, and zero is valid in every field: a zeroed `Option` of a function is `None`.
unsafe impl Table for Host {}
// SAFETY: `repr(C)`, `size` comes first, and zero is valid in every field: a zeroed `Option` of a function is `None`.
unsafe impl Table for Transport {}
// SAFETY: `repr(C)`, `size` comes first, and zero is valid in every field: numbers and pointers.
unsafe impl Table for Access {}
