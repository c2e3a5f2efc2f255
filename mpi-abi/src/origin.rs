//! Recorder of the program's calls that create objects, for `mpi_report_leaks`.
//! Records the MPI function, and the return address of its call.
#![allow(unsafe_code)]

use crate::unwind;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static IS_KEPT: AtomicBool = AtomicBool::new(false);

/// Returns the name of the program's current call.
pub type CurrentCall = fn() -> Option<&'static str>;

static CURRENT_CALL: OnceLock<CurrentCall> = OnceLock::new();

/// The call of the program that created an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// The return address of the call, or 0.
    pub address: usize,
    /// The name of the function.
    pub call: Option<&'static str>,
}

/// Starts recording: the calls that create objects from now on are recorded.
pub fn keep(current_call: CurrentCall) {
    let _ = CURRENT_CALL.set(current_call);
    IS_KEPT.store(true, Relaxed);
}

/// Returns true if origins are recorded.
#[inline(always)]
pub fn is_kept() -> bool {
    IS_KEPT.load(Relaxed)
}

/// Returns the innermost call from outside MPI libraries.
#[cold]
pub fn here() -> Origin {
    let (frames, count) = unwind::frames();
    let mut outside = frames[..count].iter().filter(|frame| !is_of_mpi(**frame));
    Origin {
        address: outside.next().copied().unwrap_or(0),
        call: CURRENT_CALL.get().and_then(|current| current()),
    }
}

/// Returns true if the address is in this library, or in a file whose name begins with `libmpi`,
/// such as the library of the Fortran bindings.
fn is_of_mpi(address: usize) -> bool {
    let of = |address: *const c_void| {
        let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: `dladdr` accepts any address. Zero bytes are a valid value of `found`, a local.
        unsafe {
            libc::dladdr(address, found.as_mut_ptr());
            found.assume_init()
        }
    };
    let (it, own) = (of(address as *const c_void), of(here as *const c_void));
    if it.dli_fname.is_null() {
        return false;
    }
    // SAFETY: the name is a C string of the loader for a loaded file.
    // A file with functions in the call stack is not unloaded.
    let name = unsafe { CStr::from_ptr(it.dli_fname) }.to_bytes();
    let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    it.dli_fbase == own.dli_fbase || last.starts_with(b"libmpi")
}
