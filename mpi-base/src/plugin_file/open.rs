//! Opening of a plugin file and look-up of its entry point.
//!
//! Files are opened with `RTLD_NOW | RTLD_LOCAL`: a missing symbol is reported now and not later,
//! and a plugin's symbols are invisible to other files.
//! A file is never closed: until the process ends, this library may call the functions of the
//! plugin's tables, and the C library may run the file's exit handlers and the destructors of its
//! thread-local variables.
#![allow(unsafe_code)]

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The reason why a file has no entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The dynamic linker rejects the file.
    Linker(String),
    /// The path no longer refers to the file whose manifest was read.
    Replaced,
    /// The file does not define the entry point.
    NoSymbol {
        /// The entry point's name.
        symbol: &'static str,
    },
    /// The symbol is defined by a library that the file needs, and not by the file itself.
    SymbolOfOther {
        /// The entry point's name.
        symbol: &'static str,
        /// The path of that library.
        file: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linker(reason) => write!(f, "it cannot be loaded: {reason}"),
            Self::Replaced => f.write_str(
                "another file took its place while this process opened it, so it is not used; start the job again",
            ),
            Self::NoSymbol { symbol } => {
                write!(f, "it does not export {symbol}, so it is not a plugin")
            }
            Self::SymbolOfOther { symbol, file } => write!(
                f,
                "it does not export {symbol}, and the one of {file}, which it needs, is not its own, so it is not a plugin"
            ),
        }
    }
}

impl std::error::Error for OpenError {}

/// The identity of a file (device, inode, size, time), which a replacement of the file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity([i64; 5]);

impl Identity {
    /// Returns the identity of the file at a path; `None` if there is no file.
    pub fn of(file: &Path) -> Option<Identity> {
        let found = file.metadata().ok()?;
        let (device, number) = (found.dev() as i64, found.ino() as i64);
        let changed = [found.mtime(), found.mtime_nsec()];
        Some(Identity([
            device,
            number,
            found.size() as i64,
            changed[0],
            changed[1],
        ]))
    }
}

/// Opens a file and returns the address of its entry point.
///
/// Opening runs the file's constructors. [`super::trust`] has checked the file:
/// only trusted users can write it.
/// `before` is the file's identity at the time when its manifest was read.
pub fn entry(
    file: &Path,
    before: Option<Identity>,
    symbol: &'static str,
) -> Result<*const c_void, OpenError> {
    super::escape::prepare();
    // SAFETY: the file's constructors may run,
    // because [`super::trust`] has checked that only trusted users can write the file.
    let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|error| OpenError::Linker(linker_text(&error)))?;
    // SAFETY: the address of any symbol may be read as a pointer;
    // the caller converts it to the type that `plugin.h` defines.
    let found = unsafe { library.get::<*const c_void>(symbol.as_bytes()) };
    let entry = found.map(|symbol| symbol.as_raw_ptr().cast_const());
    let base = base_of(library);
    if before.is_some() && Identity::of(file) != before {
        return Err(OpenError::Replaced);
    }
    let entry = entry.map_err(|_| OpenError::NoSymbol { symbol })?;
    // The look-up also searches the libraries that the file needs, so the symbol's file is checked.
    if let Some((file, other)) = place_of(entry)
        && base != Some(other)
    {
        return Err(OpenError::SymbolOfOther { symbol, file });
    }
    Ok(entry)
}

/// Returns the address at which a file is loaded; the file stays open.
fn base_of(library: Library) -> Option<usize> {
    let handle = library.into_raw();
    let mut map: *mut LinkMap = std::ptr::null_mut();
    // SAFETY: the handle is that of an open file, and the request (dlinfo(3)) writes one pointer.
    let done = unsafe { libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) };
    // SAFETY: `dlinfo` succeeded, so `map` is the file's entry in the linker's list,
    // which exists while the file is open.
    (done == 0).then(|| unsafe { (*map).address })
}

/// The first members of `struct link_map` (link.h) in glibc and musl.
#[repr(C)]
struct LinkMap {
    address: usize,
}

/// Returns the path and the load address of the file that contains a function.
fn place_of(entry: *const c_void) -> Option<(String, usize)> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `dladdr` accepts any address and writes only a local variable.
    let known = unsafe { libc::dladdr(entry, found.as_mut_ptr()) } != 0;
    // SAFETY: all bytes are initialised, and zero is a valid value of each member.
    let found = unsafe { found.assume_init() };
    if !known || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` succeeded, so the pointer is the linker's string,
    // which exists while the file is loaded.
    let file = unsafe { CStr::from_ptr(found.dli_fname) };
    Some((
        file.to_string_lossy().into_owned(),
        found.dli_fbase as usize,
    ))
}

/// Returns the dynamic linker's error text, which libloading reports as the source of its error.
fn linker_text(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |inner| inner.to_string())
}
