//! The backend: the MPI library that this library calls (`libmpi_abi.so.1`, MPICH or Open MPI).
//!
//! The initializer opens the backend (MPICH or Open MPI by [`crate::foreign_below`]).
//! A slot is an atomic pointer to a backend function, which is found by its `PMPI_` name.
//! So the loader does not resolve these names to this library's own `MPI_` functions.
//! An installation has `libmpi_abi.so.1` three directories above (`lib/portcullis/compat/X`).
//! Outside an installation, the loader searches for `libmpi_abi.so.1`.
#![allow(unsafe_code, non_snake_case, non_upper_case_globals)]
// Functions with many parameters have long types.
#![allow(clippy::type_complexity)]

use crate::family::Family;
use crate::load_static;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

include!(concat!(env!("OUT_DIR"), "/backend.rs"));

/// The backend's soname.
const LIBRARY: &str = "libmpi_abi.so.1";

/// The reason why the backend could not be opened.
pub(crate) static REFUSED: OnceLock<String> = OnceLock::new();

/// Creates an operator for a reduction function with a context argument.
/// The arguments are the function, the maximum number of elements per call, the context,
/// the context's destructor, commutativity, and the address for the operator.
/// The function's arguments are context, input, in-out operand, count and datatype.
pub type MakeOperator = unsafe extern "C-unwind" fn(
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_void, i64, usize),
    i64,
    *mut c_void,
    unsafe extern "C-unwind" fn(*mut c_void),
    c_int,
    *mut usize,
) -> c_int;

/// Creates an error handler for a function with a context argument.
/// The first argument is the type of the object: 0 communicator, 1 window, 2 file, 3 session.
pub type MakeHandler = unsafe extern "C-unwind" fn(
    c_int,
    unsafe extern "C-unwind" fn(*mut c_void, usize, *mut c_int),
    *mut c_void,
    unsafe extern "C-unwind" fn(*mut c_void),
    *mut usize,
) -> c_int;

/// Duplicates a communicator, nonblocking. The arguments are communicator, info, callback, context
/// and the address for the request.
/// The callback receives the context and the new handle.
pub type Duplicate = unsafe extern "C-unwind" fn(
    usize,
    usize,
    unsafe extern "C-unwind" fn(*mut c_void, usize),
    *mut c_void,
    *mut usize,
) -> c_int;

/// Slots of the functions that `libmpi_abi.so.1` exports for this library only.
pub static DUPLICATE: AtomicPtr<c_void> = AtomicPtr::new(unavailable as *mut c_void);
pub static MAKE_OPERATOR: AtomicPtr<c_void> = AtomicPtr::new(unavailable as *mut c_void);
pub static MAKE_HANDLER: AtomicPtr<c_void> = AtomicPtr::new(unavailable as *mut c_void);

/// Slots of the queries for device memory. Without the backend's function, the answer is 0 (no).
pub static QUERY_CUDA: AtomicPtr<c_void> = AtomicPtr::new(unsupported as *mut c_void);
pub static QUERY_ROCM: AtomicPtr<c_void> = AtomicPtr::new(unsupported as *mut c_void);
pub static QUERY_ZE: AtomicPtr<c_void> = AtomicPtr::new(unsupported as *mut c_void);

extern "C" fn unsupported() -> c_int {
    0
}

/// Returns the backend's answer to a query for device memory: 1 if supported, otherwise 0.
pub fn query(slot: &AtomicPtr<c_void>) -> c_int {
    let function = slot.load(Ordering::Relaxed);
    // SAFETY: a slot of a query holds `unsupported` or a function of this signature.
    unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(function)() }
}

/// Returns the function in the slot [`MAKE_OPERATOR`].
pub fn make_operator() -> MakeOperator {
    // SAFETY: [`open`] stores a symbol of this type in the slot.
    // Before that, the slot holds [`unavailable`], which does not return.
    unsafe {
        std::mem::transmute::<*mut c_void, MakeOperator>(MAKE_OPERATOR.load(Ordering::Relaxed))
    }
}

pub fn make_handler() -> MakeHandler {
    // SAFETY: the slot holds `portcullis_make_error_handler`, which has this type.
    // Before [`open`] it holds [`unavailable`], which does not return.
    unsafe { std::mem::transmute::<*mut c_void, MakeHandler>(MAKE_HANDLER.load(Ordering::Relaxed)) }
}

pub fn duplicate() -> Duplicate {
    // SAFETY: the slot holds `portcullis_comm_idup`, which has this type.
    // Before [`open`] it holds [`unavailable`], which does not return.
    unsafe { std::mem::transmute::<*mut c_void, Duplicate>(DUPLICATE.load(Ordering::Relaxed)) }
}

/// The initial content of all slots. Prints the reason [`REFUSED`] and ends the process.
/// The loader does the same if a program refers to a missing symbol.
pub(crate) unsafe extern "C-unwind" fn unavailable() -> c_int {
    let reason = REFUSED.get().map_or(
        "a function was called before the loader started the library",
        |reason| reason,
    );
    printable::eprintln!("portcullis: {reason}");
    std::process::exit(127)
}

/// Opens the backend and fills the slots. Runs once, when the loader starts this library.
/// `inside` is an address in this library.
pub fn open(inside: *const c_void) {
    let own = file_of(inside);
    // In an installation the backend is three directories above this library's directory.
    // In a Python environment the backend may be in this library's directory.
    let beside = |levels| {
        let file = own.as_deref()?.ancestors().nth(levels)?.join(LIBRARY);
        file.is_file().then_some(file)
    };
    let beside = [beside(4), beside(1)];
    let candidates = beside.into_iter().flatten().chain([PathBuf::from(LIBRARY)]);
    let mut errors = Vec::new();
    for candidate in candidates {
        match open_file(&candidate, libc::RTLD_NOW | libc::RTLD_LOCAL) {
            Ok(handle) => return fill(handle, &candidate),
            Err(error) => errors.push(error),
        }
    }
    let own = own.unwrap_or_default();
    let _ = REFUSED.set(format!(
        "{} serves programs of another MPI with {LIBRARY}, which cannot be opened: {}",
        own.display(),
        errors.join("; ")
    ));
}

/// Returns the path of the loaded library that contains an address.
fn file_of(address: *const c_void) -> Option<PathBuf> {
    // SAFETY: `Dl_info` is a C struct of pointers, for which all zeros is a valid value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `dladdr` accepts any address, and the output is a local variable.
    let found = unsafe { libc::dladdr(address, &mut info) } != 0;
    if !found || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` has set a C string, which is valid while the file is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    std::fs::canonicalize(path).ok()
}

pub(crate) fn open_file(path: &Path, flags: c_int) -> Result<*mut c_void, String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: the name is a C string. The library's constructors run, as the program expects.
    let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
    if !handle.is_null() {
        return Ok(handle);
    }
    // SAFETY: this reads the error text of the call that has just failed.
    // No other call of the loader is in between.
    let text = unsafe { libc::dlerror() };
    Err(match text.is_null() {
        true => format!("{} was refused", path.display()),
        // SAFETY: a non-null result of `dlerror` is a C string.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into(),
    })
}

/// Returns the content of a slot: the address of a backend function.
#[inline(always)]
fn in_slot<const ID: usize>() -> *mut c_void {
    load_static!(SLOTS, ID)
}

/// Returns the function of a slot. The caller passes arguments of the backend's ABI.
///
/// # Safety
/// `F` must be the type of this backend function.
#[inline(always)]
pub unsafe fn unconverted<F: Copy, const ID: usize>() -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let function = in_slot::<ID>();
    // SAFETY: `F` is the type of the function in this slot, by contract.
    // The assertion above checks that `F` has the size of a pointer.
    unsafe { std::mem::transmute_copy::<*mut c_void, F>(&function) }
}

fn fill(handle: *mut c_void, path: &Path) {
    let find = |name: &CStr| {
        // SAFETY: `handle` is from `dlopen` and never closed, and `name` is a C string.
        unsafe { libc::dlsym(handle, name.as_ptr().cast::<c_char>()) }
    };
    for (slot, name) in SLOTS.iter().zip(NAMES) {
        let symbol = find(name);
        if !symbol.is_null() {
            slot.store(symbol, Ordering::Relaxed);
        }
    }
    let queries = [
        (&QUERY_CUDA, c"MPIX_Query_cuda_support"),
        (&QUERY_ROCM, c"MPIX_Query_rocm_support"),
        (&QUERY_ZE, c"MPIX_Query_ze_support"),
    ];
    for (slot, name) in queries {
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
