//! The file `libmpi_abi.so.1`: all that `mpi-abi` exports, as a shared library.
//!
//! A package of its own, so that programs which need tables of `mpi-abi` do not wait for the library to be linked,
//! and so that cargo may optimise across crates, which it does not for a package that is a Rust library as well.
//! It decides which components are built in: the hardware barrier.

#![deny(unsafe_code)]

/// What runs when the file is loaded, before any function of it can be called.
#[allow(unsafe_code)]
mod loaded {
    use mpi_abi::{components, stdio};

    // SAFETY: the loader calls what this section lists, once, as functions of C; the arguments that it passes are not looked at.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOADED: extern "C" fn() = build_in;

    extern "C" fn build_in() {
        components::build_in(&[coll_hwbarr::TABLE]);
        stdio::by_lines_under_a_launcher();
    }
}
