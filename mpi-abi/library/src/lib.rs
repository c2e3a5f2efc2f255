//! The shared library `libmpi_abi.so.1`: all exports of `mpi-abi`.
//!
//! This package is separate from `mpi-abi` for two reasons:
//! Programs that need only the tables of `mpi-abi` can be built before this library is linked.
//! Cargo optimises across crates only if `cdylib` is the package's only crate type.
//! The package links one optional component into the library: the hardware barrier.

#![deny(unsafe_code)]

/// The initializer: the loader runs it before all other functions of the library.
#[allow(unsafe_code)]
mod loaded {
    use mpi_abi::{components, stdio};

    // SAFETY: the loader calls each pointer in the section `.init_array` once, as a C function.
    // The function `build_in` ignores the loader's arguments.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOADED: extern "C" fn() = build_in;

    extern "C" fn build_in() {
        components::build_in(&[coll_hwbarr::TABLE]);
        stdio::by_lines_under_a_launcher();
    }
}
