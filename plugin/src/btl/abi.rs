//! The plugin ABI of transports: the generated tables, and the interface version and traits.
//!
//! The C header documents the rules. A test compiles it and compares the layout of every table.
#![allow(unsafe_code)]

pub use super::table::*;
pub use crate::coll::abi::{DONE, FAILED, Why, read};

use crate::coll::abi::Table;
use crate::manifest::Interface;

/// The interface version of this build, with the hash of the table layout per minor version.
/// The hash of a released minor version never changes.
pub const INTERFACE: Interface = Interface {
    major: TRANSPORT_VERSION,
    layouts: &[(0, 0x9f07_d66d), (1, TRANSPORT_LAYOUT)],
};

/// The name of the only symbol that a plugin exports; its type is [`Entry`].
pub const SYMBOL: &str = "portcullis_transport";

/// The type of the exported function. The library calls it once and stores the table.
pub type Entry = unsafe extern "C-unwind" fn() -> *const Transport;

// SAFETY: the pointers in a `Host` point to functions and to constants that no code writes.
unsafe impl Sync for Host {}
// SAFETY: the pointers in a `Param` point to constant texts that no code writes.
unsafe impl Sync for Param {}
// SAFETY: the pointers in a `Transport` point to functions and to constants that no code writes.
unsafe impl Sync for Transport {}

// SAFETY: `repr(C)` with `size` first; zero is valid in every field (a zeroed `Option` is `None`).
unsafe impl Table for Host {}
// SAFETY: `repr(C)` with `size` first; zero is valid in every field (a zeroed `Option` is `None`).
unsafe impl Table for Transport {}
// SAFETY: `repr(C)` with `size` first; zero is valid in every field (numbers and pointers).
unsafe impl Table for Access {}
