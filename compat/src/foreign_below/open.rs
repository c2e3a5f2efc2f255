//! Search for the backend's file, and filling of the slots with the backend's functions.
//!
//! `PORTCULLIS_ON` names the file, except in a program with raised privileges.
//! Without that variable, the loader searches for the file names in [`Foreign::FILES`].
//! The file is opened with `RTLD_LOCAL` and `RTLD_DEEPBIND`.
//! So the backend's references resolve to its own symbols, not to the same names of this library.
//! Sanitizers forbid `RTLD_DEEPBIND`. Then only [`crate::reentrancy`] detects the backend's calls.

use super::{Foreign, fallbacks};
use crate::backend::{NAMES, REFUSED, SLOTS, open_file};
use crate::environment;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// The environment variable with the path of the backend's file.
const ON: &str = "PORTCULLIS_ON";

/// Opens the backend, or records why it cannot be opened.
/// Runs once, when the loader starts this library.
pub fn open<F: Foreign>() {
    if let Err(reason) = try_open::<F>() {
        let _ = REFUSED.set(reason);
    }
}

fn try_open<F: Foreign>() -> Result<(), String> {
    let named = environment::var(ON).filter(|path| !path.is_empty());
    let candidates: Vec<PathBuf> = match &named {
        Some(path) => vec![path.into()],
        None => F::FILES.iter().map(PathBuf::from).collect(),
    };
    let mut errors = Vec::new();
    for candidate in &candidates {
        match open_alone(candidate) {
            Ok(handle) => return fill::<F>(handle, candidate),
            Err(error) => errors.push(error),
        }
    }
    Err(format!(
        "this program is to run on {}, which cannot be opened ({}): {}",
        F::NAME,
        match named {
            Some(_) => format!("{ON} names it"),
            None => format!("no {ON} names it"),
        },
        errors.join("; ")
    ))
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn open_alone(path: &Path) -> Result<*mut c_void, String> {
    let usual = libc::RTLD_NOW | libc::RTLD_LOCAL;
    open_file(path, usual | libc::RTLD_DEEPBIND).or_else(|_| open_file(path, usual))
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn open_alone(path: &Path) -> Result<*mut c_void, String> {
    open_file(path, libc::RTLD_NOW | libc::RTLD_LOCAL)
}

fn fill<F: Foreign>(handle: *mut c_void, path: &Path) -> Result<(), String> {
    let find = |name: &CStr| {
        // SAFETY: `dlopen` returned the handle, which is never closed. `name` is a C string.
        unsafe { libc::dlsym(handle, name.as_ptr().cast::<c_char>()) }
    };
    if find(F::MARK).is_null() {
        let file = path.display();
        return Err(match find(c"MPI_Abi_get_version").is_null() {
            false => format!(
                "{file} is a library of the standard ABI itself: a program finds it by LD_LIBRARY_PATH, without {ON}"
            ),
            true => format!(
                "{file} is not a library of {} or a relative of it: it has no {}",
                F::NAME,
                F::MARK.to_string_lossy()
            ),
        });
    }
    F::learn(&find);
    let instead = fallbacks::table::<F>();
    let mut lacking = Vec::new();
    for (id, slot) in SLOTS.iter().enumerate() {
        let symbol = NAMES.get(id).and_then(|name| symbol(&find, name));
        if symbol.is_none() {
            lacking.push(id);
        }
        let function = symbol.or_else(|| instead.get(id).copied());
        slot.store(function.unwrap_or(std::ptr::null_mut()), Ordering::Relaxed);
    }
    fallbacks::prepare::<F>(&lacking);
    Ok(())
}

/// Finds the backend's function `PMPI_X`, or else `MPI_X`, or else `MPIX_X`.
/// For an extension, the order is `PMPIX_X`, `MPIX_X`, `MPI_X`.
fn symbol(find: &dyn Fn(&CStr) -> *mut c_void, name: &CStr) -> Option<*mut c_void> {
    let name = name.to_str().ok()?;
    let plain = name
        .strip_prefix("PMPI_")
        .or_else(|| name.strip_prefix("PMPIX_"))?;
    let names = match name.starts_with("PMPIX_") {
        false => [name.into(), format!("MPI_{plain}"), format!("MPIX_{plain}")],
        true => [name.into(), format!("MPIX_{plain}"), format!("MPI_{plain}")],
    };
    names
        .into_iter()
        .filter_map(|name| CString::new(name).ok())
        .map(|name| find(&name))
        .find(|symbol| !symbol.is_null())
}
