//! The shared library `libmpi_abi.so.1`: all exports of `mpi-abi`.
//!
//! The library is in its own package, separate from `mpi-abi`, for two reasons.
//! Programs that need tables of `mpi-abi` do not wait for the link of the library.
//! Cargo optimises across crates only for a package that is not also a Rust library.
//! The package selects the built-in components: the hardware barrier.

#![deny(unsafe_code)]

/// The initializer, which runs when the library is loaded and before all other functions.
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
