//! The shared library `libmpi_abi.so.1`: all exports of `mpi-abi`.
//!
//! A separate package, so that programs which need tables of `mpi-abi` do not wait for the library to be linked,
//! and so that cargo can optimise across crates, which it does not do for a package that is also a Rust library.
//! It selects the built-in components: the hardware barrier.

#![deny(unsafe_code)]

/// Runs when the library is loaded, before any function of it can be called.
#[allow(unsafe_code)]
mod loaded {
    use mpi_abi::{components, stdio};

    // SAFETY: the loader calls the entries of this section once, as C functions; the function ignores the arguments passed.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOADED: extern "C" fn() = build_in;

    extern "C" fn build_in() {
        components::build_in(&[coll_hwbarr::TABLE]);
        stdio::by_lines_under_a_launcher();
    }
}
