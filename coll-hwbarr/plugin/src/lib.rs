//! The hardware barrier as a plugin file: `lib/portcullis/coll_hwbarr.so`.
//!
//! A separate package: the library with the built-in component must not export a plugin's symbol, and cargo needs two names for the two builds.
#![deny(unsafe_code)]

use mpi_core::plugin::abi::ComponentTable;

/// The one symbol by which a host finds the component.
#[allow(unsafe_code)]
// SAFETY: the name belongs to the plugin ABI; a host looks up no other symbol of a plugin.
#[unsafe(no_mangle)]
extern "C" fn portcullis_component() -> *const ComponentTable {
    coll_hwbarr::TABLE.as_ptr()
}
