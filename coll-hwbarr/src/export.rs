//! The one symbol of the plugin file.
#![allow(unsafe_code)]

use mpi_core::plugin::abi::ComponentTable;

// SAFETY: the name is the plugin ABI's; nothing else of a plugin is found by symbol.
#[unsafe(no_mangle)]
extern "C" fn portcullis_component() -> *const ComponentTable {
    crate::TABLE.as_ptr()
}
