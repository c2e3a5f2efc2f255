//! Static linking of the compiler's stack unwinder, for build scripts of shared libraries that must need only the C library.

use std::path::PathBuf;

/// Links the unwinder into the library instead of the system's shared one.
///
/// Rust's standard library links it as `gcc_s`, the shared one; the first folder of the linker's search path has a script of that name
/// that refers to the archives of the same code, as `-static-libgcc` does for the languages of gcc.
pub fn need_only_libc() -> Result<(), String> {
    let is = |what: &str, value: &str| std::env::var(what).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return Ok(());
    }
    let out =
        PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join("unwinder");
    let script = out.join("libgcc_s.so");
    std::fs::create_dir_all(&out)
        .and_then(|()| std::fs::write(&script, "INPUT ( -lgcc_eh -lgcc )\n"))
        .map_err(|e| format!("{} cannot be written: {e}", script.display()))?;
    println!("cargo:rustc-cdylib-link-arg=-L{}", out.display());
    Ok(())
}
