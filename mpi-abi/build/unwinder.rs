//! Static linking of the stack unwinder, for shared libraries that depend only on the C library.

use std::path::PathBuf;

/// Links the unwinder statically, instead of the system's shared library.
///
/// Rust's standard library links the unwinder with `-lgcc_s`, which selects the shared library.
/// This function puts a linker script `libgcc_s.so` into a folder that is searched first.
/// The script refers to the static archives, as `-static-libgcc` does for gcc.
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
