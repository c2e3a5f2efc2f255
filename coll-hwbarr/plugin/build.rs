//! The plugin needs nothing but the C library, as the library that loads it.

#[path = "../../mpi-abi/build/unwinder.rs"]
mod unwinder;

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=build.rs");
    unwinder::need_only_libc()
}
