//! The shared library `libmpi_abi.so.1` without optional components.
//!
//! The package exists because cargo names a shared library after its package.
//! Two variants of `mpi-abi-library` would overwrite each other in one target folder.
//! With other features, all dependencies would be compiled twice.

#![deny(unsafe_code)]

/// The initializer, which runs when the library is loaded and before all other functions.
#[allow(unsafe_code)]
mod loaded {
    use mpi_abi::stdio;

    // SAFETY: the loader calls each entry of this section once, as a C function.
    // The function ignores its arguments.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOADED: extern "C" fn() = prepare;

    extern "C" fn prepare() {
        stdio::by_lines_under_a_launcher();
    }
}
