//! How the shared library is linked, with optional components and without.

#[path = "../build/unwinder.rs"]
mod unwinder;

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=../library/build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    // The library never calls a function of its own through the loader, where another library's of the same name may stand in
    // front of it: that of a program of another ABI (`compat/`).
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    unwinder::need_only_libc()
}
