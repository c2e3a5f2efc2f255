//! The file needs nothing but the C library, and is never unloaded: exit handlers and MPI may still call it when it has been let go of.

#[path = "../../mpi-abi/build/unwinder.rs"]
mod unwinder;

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    unwinder::need_only_libc()
}
