//! The shared library `libmpi_abi.so.1` without optional components: the exports of `mpi-abi`, with nothing built in.
//!
//! A separate package instead of `mpi-abi-library` with other features: cargo names a shared library after its package alone,
//! so two variants of one package would overwrite each other in a folder, and other features would compile all dependencies twice.

#![deny(unsafe_code)]

/// Runs when the library is loaded, before any function of it can be called.
#[allow(unsafe_code)]
mod loaded {
    use mpi_abi::stdio;

    // SAFETY: the loader calls the entries of this section once, as C functions; the function ignores the arguments passed.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOADED: extern "C" fn() = prepare;

    extern "C" fn prepare() {
        stdio::by_lines_under_a_launcher();
    }
}
