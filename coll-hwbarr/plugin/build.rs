//! Build script: links the plugin with the C library only, like the library that loads it.

#[path = "../../mpi-abi/build/unwinder.rs"]
mod unwinder;

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=build.rs");
    unwinder::need_only_libc()
}
