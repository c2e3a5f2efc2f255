//! Build script that generates the wrapper functions.
//!
//! The library links only the C library and is never unloaded:
//! exit handlers and MPI may call its functions even after `dlclose`.

#[path = "build/entries.rs"]
mod entries;
#[path = "../mpi-abi/build/unwinder.rs"]
mod unwinder;
#[path = "build/watched.rs"]
mod watched;

use compat_generate::{root, tables, write};

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    let [entries, names] = entries::write(&tables::read(&root(1)?)?)?;
    write("entries.rs", &entries)?;
    write("names.rs", &names)?;
    unwinder::need_only_libc()
}
