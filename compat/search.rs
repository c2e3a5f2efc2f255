//! `libportcullis-search.so`: an audit library of the dynamic loader (rtld-audit(7)) that redirects searches for MPI libraries.
//!
//! `LD_LIBRARY_PATH` does not control every search for a library.
//! R's start script puts the system's directory before it, and the older kind of run path (`DT_RPATH`) takes precedence over it.
//! The loader of the GNU C library calls an audit library before it searches for a name, whatever object needs that name.
//! `mpirun` names this library in `LD_AUDIT` for programs that name no MPI library themselves, and the files to load in [`STAND_INS`].
//!
//! The loader loads an audit library into a separate namespace, with a second copy of every library that it needs.
//! This library needs none; it delays the start of a program by some 40 microseconds.
//!
//! Loaders before glibc 2.35 route every call between two libraries through the audit code once there is an audit library.
//! [`la_version`] asks them to unload this one.
//!
//! Rust's standard library would need the C library, so this file is not a package of the workspace:
//! `cargo xtask install` calls `rustc` for it, without either library.
#![no_std]
#![deny(unsafe_code)]

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_uint};

/// The variable with a colon-separated list of files; a search for the name of one of these files returns the file.
const STAND_INS: &[u8] = b"PORTCULLIS_STAND_INS=";

/// The first version of the audit interface whose loaders do not slow down calls that are not audited.
const VERSION: c_uint = 2;

/// The search for a name as given by the program or library; the loader uses other flags for each path that it tries.
const ORIGINAL: c_uint = 1;

/// Maximum length of the list in bytes.
const CAPACITY: usize = 16 << 10;

/// The list of [`STAND_INS`], each file ended by a zero byte, the last one by two.
///
/// It is a copy, since a program may overwrite the memory of its environment, for example to change its title.
struct List(UnsafeCell<[u8; CAPACITY]>);

// SAFETY: `start` writes the list before the loader calls any other function of this library, and nothing writes it later.
#[allow(unsafe_code)]
unsafe impl Sync for List {}

static LIST: List = List(UnsafeCell::new([0; CAPACITY]));

/// Called by the loader after it has loaded this library: copies the list of files.
#[allow(unsafe_code)]
extern "C" fn start(_argc: c_int, _argv: *const *const c_char, environment: *const *const c_char) {
    let mut entry = environment;
    // SAFETY: the loader passes the environment of the process to the functions of `.init_array`: pointers to strings, the last one null.
    while let Some(setting) = unsafe { entry.as_ref() }.filter(|setting| !setting.is_null()) {
        // SAFETY: `setting` is a string of the environment.
        if let Some(value) = unsafe { value(*setting) } {
            // SAFETY: `value` is a string of the environment, and the loader calls no other function of this library before this one returns.
            unsafe { keep(value) };
            return;
        }
        // SAFETY: the entry was not the last, which is null.
        entry = unsafe { entry.add(1) };
    }
}

// SAFETY: the loader calls each function of this section once, with the arguments and the environment of the process.
#[used]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

/// Returns what follows the `=` of [`STAND_INS`]; `None` for another variable.
///
/// # Safety
/// `setting` is a string that ends with a zero byte.
#[allow(unsafe_code)]
unsafe fn value(setting: *const c_char) -> Option<*const c_char> {
    for (at, wanted) in STAND_INS.iter().enumerate() {
        // SAFETY: all bytes before this one were those of `STAND_INS`, so the string has not ended.
        if unsafe { byte(setting, at) } != *wanted {
            return None;
        }
    }
    // SAFETY: the string has at least this length, and its end comes after it.
    Some(unsafe { setting.add(STAND_INS.len()) })
}

/// Copies a list, with zero bytes in place of colons; one that is too long becomes empty.
///
/// # Safety
/// `value` is a string that ends with a zero byte, and the list is neither read nor written elsewhere.
#[allow(unsafe_code)]
unsafe fn keep(value: *const c_char) {
    let to = LIST.0.get().cast::<u8>();
    for at in 0..CAPACITY - 1 {
        // SAFETY: no byte before this one was the end of the string.
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
    // SAFETY: `to` points to the list, which has `CAPACITY` bytes, so its first byte exists.
    unsafe { to.write_volatile(0) };
}

/// Reads a byte of a string; volatile, so that the compiler does not replace the loop around it by a call of the C library.
///
/// # Safety
/// The string has not ended before `at`.
#[allow(unsafe_code)]
unsafe fn byte(string: *const c_char, at: usize) -> u8 {
    // SAFETY: this is the function's own condition.
    unsafe { string.add(at).cast::<u8>().read_volatile() }
}

/// Returns true if the last component of the path `file` is `name`.
///
/// # Safety
/// Both are strings that end with a zero byte.
#[allow(unsafe_code)]
unsafe fn has_name(file: *const c_char, name: *const c_char) -> bool {
    let mut last = file;
    let mut at = 0;
    loop {
        // SAFETY: no byte before this one was the end of the file's path.
        match unsafe { byte(file, at) } {
            0 => break,
            // SAFETY: the slash is a byte of the string, so its end comes after it.
            b'/' => last = unsafe { file.add(at + 1) },
            _ => {}
        }
        at += 1;
    }
    at = 0;
    loop {
        // SAFETY: all bytes before this one were equal and not the end.
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

/// Called by the loader first: returns the version of the audit interface, or 0 if the loader must unload this library.
#[unsafe(no_mangle)]
#[allow(unsafe_code)]
pub extern "C" fn la_version(version: c_uint) -> c_uint {
    match version {
        VERSION.. => version,
        _ => 0,
    }
}

/// Called by the loader before it searches for a library, and for each path that it tries; it continues with the returned name.
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
    // SAFETY: the list consists of strings and ends with an empty one.
    while unsafe { byte(file, 0) } != 0 {
        // SAFETY: `file` is a string of the list, and `name` one of the loader.
        if unsafe { has_name(file, name) } {
            return file;
        }
        let mut length = 0;
        // SAFETY: no byte before this one was the end of the string.
        while unsafe { byte(file, length) } != 0 {
            length += 1;
        }
        // SAFETY: another string, or the list's end, follows the end of this one.
        file = unsafe { file.add(length + 1) };
    }
    name.cast_mut()
}

/// Nothing here panics, but the compiler requires this function.
#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
