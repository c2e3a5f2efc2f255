//! `libportcullis-search.so`: a loader audit library (rtld-audit(7)).
//!
//! The library redirects searches for MPI libraries.
//!
//! `LD_LIBRARY_PATH` does not control every search for a library.
//! R's start script puts the system's directory before it, and `DT_RPATH` takes precedence over it.
//! The glibc loader calls an audit library before it searches for a library, for every search.
//! `mpirun` puts this library into `LD_AUDIT` for programs that name no MPI library.
//! The files to load are in [`STAND_INS`].
//!
//! The loader loads an audit library and copies of its dependencies into a separate namespace.
//! The library has no dependencies, and delays a program's start by about 40 microseconds.
//!
//! Before glibc 2.35, the loader routes every call between libraries through audit code.
//! With such a loader, [`la_version`] requests that this library is unloaded.
//!
//! Rust's standard library would depend on the C library, so this file is not a workspace package.
//! `cargo xtask install` compiles this file with `rustc`, without the standard and C libraries.
#![no_std]
#![deny(unsafe_code)]

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_uint};

/// The variable with a colon-separated list of files.
/// A search for the name of one of these files returns the file.
const STAND_INS: &[u8] = b"PORTCULLIS_STAND_INS=";

/// The first version of the audit interface in which calls between libraries bypass audit code.
const VERSION: c_uint = 2;

/// The flag for a name as given by the program or library. Paths that are tried have other flags.
const ORIGINAL: c_uint = 1;

/// Maximum length of the list in bytes.
const CAPACITY: usize = 16 << 10;

/// The list of [`STAND_INS`]: each file ends with a zero byte, and the list with an empty string.
///
/// The list is a copy, since a program may overwrite its environment, for example to set its title.
struct List(UnsafeCell<[u8; CAPACITY]>);

#[allow(unsafe_code)]
// SAFETY: `start` writes the list before the loader calls other functions of this library.
// Nothing writes the list later.
unsafe impl Sync for List {}

static LIST: List = List(UnsafeCell::new([0; CAPACITY]));

/// The initializer, called by the loader after the load of this library. Copies the list of files.
#[allow(unsafe_code)]
extern "C" fn start(_argc: c_int, _argv: *const *const c_char, environment: *const *const c_char) {
    let mut entry = environment;
    // SAFETY: the loader passes the environment to functions of `.init_array`: pointers to strings.
    // The last pointer is null.
    while let Some(setting) = unsafe { entry.as_ref() }.filter(|setting| !setting.is_null()) {
        // SAFETY: `setting` is a string of the environment.
        if let Some(value) = unsafe { value(*setting) } {
            // SAFETY: `value` is a string of the environment.
            // The loader calls no other function of this library before this one returns.
            unsafe { keep(value) };
            return;
        }
        // SAFETY: this entry is not the last, which is null.
        entry = unsafe { entry.add(1) };
    }
}

// SAFETY: the loader calls each entry of this section once, with arguments and environment.
#[used]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

/// Returns the value of the variable [`STAND_INS`], or `None` for another variable.
///
/// # Safety
/// `setting` is a string that ends with a zero byte.
#[allow(unsafe_code)]
unsafe fn value(setting: *const c_char) -> Option<*const c_char> {
    for (at, wanted) in STAND_INS.iter().enumerate() {
        // SAFETY: all bytes before this one are those of `STAND_INS`, so the string has not ended.
        if unsafe { byte(setting, at) } != *wanted {
            return None;
        }
    }
    // SAFETY: the string has at least this length without its zero byte.
    Some(unsafe { setting.add(STAND_INS.len()) })
}

/// Copies a list, and replaces colons by zero bytes. A list that is too long becomes empty.
///
/// # Safety
/// `value` is a zero-terminated string. No other code reads or writes the list during the call.
#[allow(unsafe_code)]
unsafe fn keep(value: *const c_char) {
    let to = LIST.0.get().cast::<u8>();
    for at in 0..CAPACITY - 1 {
        // SAFETY: no byte before this one is the end of the string.
        let (byte, end) = match unsafe { byte(value, at) } {
            b':' => (0, false),
            0 => (0, true),
            other => (other, false),
        };
        // SAFETY: `at < CAPACITY`, the size of the list.
        unsafe { to.add(at).write_volatile(byte) };
        if end {
            return;
        }
    }
    // SAFETY: `to` points to the list of `CAPACITY` bytes, so the first byte exists.
    unsafe { to.write_volatile(0) };
}

/// Reads a byte of a string.
/// The read is volatile, so that the compiler does not replace a loop by a call of the C library.
///
/// # Safety
/// The string has not ended before `at`.
#[allow(unsafe_code)]
unsafe fn byte(string: *const c_char, at: usize) -> u8 {
    // SAFETY: the string has not ended before `at`, by contract.
    unsafe { string.add(at).cast::<u8>().read_volatile() }
}

/// Returns true if the last component of the path `file` is `name`.
///
/// # Safety
/// `file` and `name` are strings that end with a zero byte.
#[allow(unsafe_code)]
unsafe fn has_name(file: *const c_char, name: *const c_char) -> bool {
    let mut last = file;
    let mut at = 0;
    loop {
        // SAFETY: no byte before this one is the end of the path.
        match unsafe { byte(file, at) } {
            0 => break,
            // SAFETY: the slash is a byte of the string, which ends after it.
            b'/' => last = unsafe { file.add(at + 1) },
            _ => {}
        }
        at += 1;
    }
    at = 0;
    loop {
        // SAFETY: all bytes before this one were equal and not zero.
        let (ours, theirs) = unsafe { (byte(last, at), byte(name, at)) };
        if ours != theirs {
            return false;
        }
        if ours == 0 {
            return true;
        }
        at += 1;
    }
}

/// Called first by the loader, with its version of the audit interface.
/// Returns the version to use, or 0 to request that this library is unloaded.
#[unsafe(no_mangle)]
#[allow(unsafe_code)]
pub extern "C" fn la_version(version: c_uint) -> c_uint {
    match version {
        VERSION.. => version,
        _ => 0,
    }
}

/// Called by the loader before a search for a library, and for each path that it tries.
/// The loader continues with the returned name.
///
/// # Safety
/// `name` is a zero-terminated string of the loader.
#[unsafe(no_mangle)]
#[allow(unsafe_code)]
pub unsafe extern "C" fn la_objsearch(
    name: *const c_char,
    _cookie: *mut usize,
    flag: c_uint,
) -> *mut c_char {
    if flag != ORIGINAL {
        return name.cast_mut();
    }
    let mut file = LIST.0.get().cast::<c_char>();
    // SAFETY: the list consists of zero-terminated strings, and ends with an empty string.
    while unsafe { byte(file, 0) } != 0 {
        // SAFETY: `file` is a string of the list, and `name` is a string of the loader.
        if unsafe { has_name(file, name) } {
            return file;
        }
        let mut length = 0;
        // SAFETY: no byte before this one is the end of the string.
        while unsafe { byte(file, length) } != 0 {
            length += 1;
        }
        // SAFETY: after the end of this string, another string or the end of the list follows.
        file = unsafe { file.add(length + 1) };
    }
    name.cast_mut()
}

/// The panic handler, which the compiler requires. No function here panics.
#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
