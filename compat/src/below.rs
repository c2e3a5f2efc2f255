//! The library below, opened when the program's loader starts this one: `libmpi_abi.so.1`, or another library ([`crate::foreign_below`]).
//!
//! Its functions are called through slots and by their `PMPI_` names, so that no function of this library is taken for one of
//! that library. Our own lies three folders above (`lib/portcullis/compat/FAMILY` in an installation), else where the loader looks.
#![allow(unsafe_code, non_snake_case, non_upper_case_globals)]
// Functions of many parameters have long types.
#![allow(clippy::type_complexity)]

use crate::family::Family;
use crate::load_here;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

include!(concat!(env!("OUT_DIR"), "/below.rs"));

/// The library's name, which its loader knows.
const LIBRARY: &str = "libmpi_abi.so.1";

/// Why there is no library below.
pub(crate) static REFUSED: OnceLock<String> = OnceLock::new();

/// An operator of a program whose function takes other types: what is called (context, input, input and output, count, datatype),
/// the most elements of one call, the context, what frees it, whether it commutes, where the operator goes.
pub type MakeOperator = unsafe extern "C" fn(
    unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, i64, usize),
    i64,
    *mut c_void,
    unsafe extern "C" fn(*mut c_void),
    c_int,
    *mut usize,
) -> c_int;

/// An error handler likewise; the first argument says for which kind of object: communicator, window, file, session.
pub type MakeHandler = unsafe extern "C" fn(
    c_int,
    unsafe extern "C" fn(*mut c_void, usize, *mut c_int),
    *mut c_void,
    unsafe extern "C" fn(*mut c_void),
    *mut usize,
) -> c_int;

/// Communicator, info, what is called with the handle when it is there, where that puts it, request.
pub type Duplicate = unsafe extern "C" fn(
    usize,
    usize,
    unsafe extern "C" fn(*mut c_void, usize),
    *mut c_void,
    *mut usize,
) -> c_int;

/// The slots of functions that this library and the one below have between them, beside the standard.
pub static DUPLICATE: AtomicPtr<c_void> = AtomicPtr::new(unavailable as *mut c_void);
pub static MAKE_OPERATOR: AtomicPtr<c_void> = AtomicPtr::new(unavailable as *mut c_void);
pub static MAKE_HANDLER: AtomicPtr<c_void> = AtomicPtr::new(unavailable as *mut c_void);

/// What they hold.
pub fn make_operator() -> MakeOperator {
    // SAFETY: the slot holds the symbol of this type, or a function that does not return.
    unsafe {
        std::mem::transmute::<*mut c_void, MakeOperator>(MAKE_OPERATOR.load(Ordering::Relaxed))
    }
}

pub fn make_handler() -> MakeHandler {
    // SAFETY: as above.
    unsafe { std::mem::transmute::<*mut c_void, MakeHandler>(MAKE_HANDLER.load(Ordering::Relaxed)) }
}

pub fn duplicate() -> Duplicate {
    // SAFETY: as above.
    unsafe { std::mem::transmute::<*mut c_void, Duplicate>(DUPLICATE.load(Ordering::Relaxed)) }
}

/// What a slot holds that was not filled: says why, and ends the process as a loader does that misses a symbol.
pub(crate) unsafe extern "C" fn unavailable() -> c_int {
    let reason = REFUSED.get().map_or(
        "a function was called before the loader started the library",
        |reason| reason,
    );
    printable::eprintln!("portcullis: {reason}");
    std::process::exit(127)
}

/// Opens the library below and fills the slots; runs once, when the loader starts the library that `inside` lies in.
pub fn open(inside: *const c_void) {
    let own = file_of(inside);
    // In an installation it lies three folders above; in a Python environment also in the same.
    let beside = |levels| {
        let file = own.as_deref()?.ancestors().nth(levels)?.join(LIBRARY);
        file.is_file().then_some(file)
    };
    let beside = [beside(4), beside(1)];
    let candidates = beside.into_iter().flatten().chain([PathBuf::from(LIBRARY)]);
    let mut said = Vec::new();
    for candidate in candidates {
        match open_file(&candidate, libc::RTLD_NOW | libc::RTLD_LOCAL) {
            Ok(handle) => return fill(handle, &candidate),
            Err(error) => said.push(error),
        }
    }
    let own = own.unwrap_or_default();
    let _ = REFUSED.set(format!(
        "{} serves programs of another MPI with {LIBRARY}, which cannot be opened: {}",
        own.display(),
        said.join("; ")
    ));
}

/// The file that an address was loaded from.
fn file_of(address: *const c_void) -> Option<PathBuf> {
    // SAFETY: all zeros are a value of the structure.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the answer is written into a local.
    let found = unsafe { libc::dladdr(address, &mut info) } != 0;
    if !found || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of the file, which lives as long as the file is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    std::fs::canonicalize(path).ok()
}

pub(crate) fn open_file(path: &Path, flags: c_int) -> Result<*mut c_void, String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: opens a library by name; its constructors run.
    let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
    if !handle.is_null() {
        return Ok(handle);
    }
    // SAFETY: the loader's text about the call that just failed, read at once.
    let text = unsafe { libc::dlerror() };
    Err(match text.is_null() {
        true => format!("{} was refused", path.display()),
        // SAFETY: a string of the loader.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into(),
    })
}

/// What a slot holds.
#[inline(always)]
fn in_slot<const ID: usize>() -> *mut c_void {
    load_here!(SLOTS, ID)
}

/// The function of a slot, which takes the arguments of the library below.
///
/// # Safety
/// `F` is the type of such a function.
#[inline(always)]
pub unsafe fn unconverted<F: Copy, const ID: usize>() -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let function = in_slot::<ID>();
    // SAFETY: as the caller says.
    unsafe { std::mem::transmute_copy::<*mut c_void, F>(&function) }
}

fn fill(handle: *mut c_void, path: &Path) {
    let find = |name: &CStr| {
        // SAFETY: looks a name up in a library that stays open.
        unsafe { libc::dlsym(handle, name.as_ptr().cast::<c_char>()) }
    };
    for (slot, name) in SLOTS.iter().zip(NAMES) {
        let symbol = find(name);
        if !symbol.is_null() {
            slot.store(symbol, Ordering::Relaxed);
        }
    }
    let ours = [
        (&MAKE_OPERATOR, c"portcullis_make_operator"),
        (&MAKE_HANDLER, c"portcullis_make_error_handler"),
        (&DUPLICATE, c"portcullis_comm_idup"),
    ];
    for (slot, name) in ours {
        let symbol = find(name);
        if symbol.is_null() {
            let _ = REFUSED.set(format!(
                "{} is not of this Portcullis: it has no {}",
                path.display(),
                name.to_string_lossy()
            ));
        } else {
            slot.store(symbol, Ordering::Relaxed);
        }
    }
}
