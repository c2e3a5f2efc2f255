//! Linker options of the shared library, with and without optional components.

#[path = "../build/unwinder.rs"]
mod unwinder;

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=../library/build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    // The library binds its own functions at link time; through the loader another library's function of the same name could preempt
    // them: that of a program of another ABI (`compat/`).
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    unwinder::need_only_libc()
}
