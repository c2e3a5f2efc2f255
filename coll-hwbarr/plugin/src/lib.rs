//! The hardware barrier as a plugin file: `lib/portcullis/coll_hwbarr.so`.
//!
//! A package of its own, so that the library that has the component built in does not export a plugin's symbol, and so that cargo gives the two builds two names.
#![deny(unsafe_code)]

use mpi_core::plugin::abi::ComponentTable;

/// The one symbol by which a host finds the component.
#[allow(unsafe_code)]
// SAFETY: the name is the plugin ABI's; nothing else of a plugin is found by symbol.
#[unsafe(no_mangle)]
extern "C" fn portcullis_component() -> *const ComponentTable {
    coll_hwbarr::TABLE.as_ptr()
}
