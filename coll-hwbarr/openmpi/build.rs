//! Build script: links the component with the C library only, and marks it as never unloaded:
//! exit handlers and MPI may still call it after `dlclose`.

#[path = "../../mpi-abi/build/unwinder.rs"]
mod unwinder;

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    unwinder::need_only_libc()
}
