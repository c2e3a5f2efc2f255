//! The build script: generates the bodies of the procedures and sets the link options.

#[path = "../../mpi-abi/build/unwinder.rs"]
mod unwinder;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use mpi_fortran_generate::{bodies, table};

fn main() -> Result<(), String> {
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    let api = package.join("../api");
    println!("cargo:rerun-if-changed={}", api.display());
    println!("cargo:rerun-if-changed=src/hand");
    println!("cargo:rerun-if-changed=build.rs");
    let tables = table::read(&api)?;
    let text = bodies::text(&tables, &by_hand(&package.join("src/hand"))?);
    write(&out.join("bodies.rs"), &text)?;
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpifort_abi.so.1");
    // The program's sentinels replace the library's, so the library must not bind its own symbols.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--enable-new-dtags,-rpath,$ORIGIN");
    needed(&out)?;
    unwinder::need_only_libc()
}

/// Returns an environment variable of cargo.
fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|e| format!("{name}: {e}"))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{} cannot be written: {e}", path.display()))
}

/// Returns the names of handwritten bodies: each `pub unsafe fn NAME<C: Calls>`, and each row of
/// a macro call.
fn by_hand(folder: &Path) -> Result<BTreeSet<String>, String> {
    let wrong = |e: std::io::Error| format!("{} cannot be read: {e}", folder.display());
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let text = std::fs::read_to_string(entry.map_err(wrong)?.path()).map_err(wrong)?;
        let heads = text.split("pub unsafe fn ").skip(1);
        let names = heads.filter_map(|head| head.split_once("<C: Calls>"));
        let rows = text.lines().map(|line| line.split_whitespace());
        found.extend(rows.filter_map(|mut words| {
            let (name, c) = (words.next()?, words.next()?);
            let is_row = c.starts_with("MPI_") && c.to_lowercase() == format!("mpi_{name}");
            is_row.then(|| name.to_string())
        }));
        found.extend(
            names
                .filter(|(name, _)| !name.contains('('))
                .map(|(name, _)| name.to_string()),
        );
    }
    Ok(found)
}

/// Adds `libmpi_abi.so.1` to the needed libraries, by linking an empty library with this soname.
fn needed(out: &Path) -> Result<(), String> {
    let (source, library) = (out.join("needed.c"), out.join("libmpi_abi.so"));
    write(&source, "int portcullis_needed_by_fortran;\n")?;
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let made = Command::new(&compiler)
        .args([
            "-shared",
            "-fPIC",
            "-nostdlib",
            "-Wl,-soname,libmpi_abi.so.1",
            "-o",
        ])
        .arg(&library)
        .arg(&source)
        .status()
        .map_err(|e| format!("{compiler} cannot be started: {e}"))?;
    if !made.success() {
        return Err(format!(
            "{compiler} could not make {}: {made}",
            library.display()
        ));
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,--no-as-needed");
    println!("cargo:rustc-cdylib-link-arg={}", library.display());
    println!("cargo:rustc-cdylib-link-arg=-Wl,--as-needed");
    Ok(())
}
