//! Linker options of the shared library, with and without optional components.

#[path = "../build/unwinder.rs"]
mod unwinder;

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=../library/build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    // The library binds its own functions at link time.
    // Otherwise a function of the same name in another library could preempt them,
    // such as one of a library for another ABI (`compat/`).
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    unwinder::need_only_libc()
}
