//! The file `libmpi_abi.so.1` without optional components: what `mpi-abi` exports, with nothing built in.
//!
//! A package of its own rather than `mpi-abi-library` with other features: cargo names the file of a shared library after its package alone,
//! so two variants of one package overwrite each other in a folder, and with other features everything below them is compiled twice.

#![deny(unsafe_code)]

/// What runs when the file is loaded, before any function of it can be called.
#[allow(unsafe_code)]
mod loaded {
    use mpi_abi::stdio;

    // SAFETY: the loader calls what this section lists, once, as functions of C; the arguments that it passes are not looked at.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOADED: extern "C" fn() = prepare;

    extern "C" fn prepare() {
        stdio::by_lines_under_a_launcher();
    }
}
