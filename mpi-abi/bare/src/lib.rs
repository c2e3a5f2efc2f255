//! The shared library `libmpi_abi.so.1` without optional components (the hardware barrier).
//!
//! Cargo names a shared library after its package, so this variant needs its own package:
//! two variants in `mpi-abi-library` would overwrite each other in one target folder.
//! A cargo feature would not help: cargo would compile all dependencies once per feature set.

#![deny(unsafe_code)]

/// The initializer: the loader runs it before all other functions of the library.
#[allow(unsafe_code)]
mod loaded {
    use mpi_abi::stdio;

    // SAFETY: the loader calls each pointer in the section `.init_array` once, as a C function.
    // The function `prepare` ignores the loader's arguments.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOADED: extern "C" fn() = prepare;

    extern "C" fn prepare() {
        stdio::by_lines_under_a_launcher();
    }
}
