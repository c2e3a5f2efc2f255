//! Linker options of the shared library, with and without optional components.

#[path = "../build/unwinder.rs"]
mod unwinder;

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=../library/build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    // The library binds its own functions at link time.
    // Otherwise another library, such as one for another ABI (`compat/`), could preempt them.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    unwinder::need_only_libc()
}
