//! The shared library `libmpi_abi.so.1`: all exports of `mpi-abi`.
//!
//! This package is separate from `mpi-abi` for two reasons:
//! Programs that need only the tables of `mpi-abi` can be built before this library is linked.
//! Cargo optimises across crates only if a package has no other crate type than this one.
//! The package selects the linked-in optional components: the hardware barrier.

#![deny(unsafe_code)]

/// The initializer: the loader runs it before all other functions of the library.
#[allow(unsafe_code)]
mod loaded {
    use mpi_abi::{components, stdio};

    // SAFETY: the loader calls each entry of this section once, as a C function.
    // The function ignores its arguments.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOADED: extern "C" fn() = build_in;

    extern "C" fn build_in() {
        components::build_in(&[coll_hwbarr::TABLE]);
        stdio::by_lines_under_a_launcher();
    }
}
