//! Where the program has made an object: the address after its call of the MPI function, recorded only for `mpi_report_leaks`.
#![allow(unsafe_code)]

use crate::unwind;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static IS_KEPT: AtomicBool = AtomicBool::new(false);

/// Records origins from now on.
pub fn keep() {
    IS_KEPT.store(true, Relaxed);
}

/// Returns true if origins are recorded.
#[inline(always)]
pub fn is_kept() -> bool {
    IS_KEPT.load(Relaxed)
}

/// Returns the return address of the innermost call from outside of MPI libraries; 0 if there is none.
#[cold]
pub fn here() -> usize {
    let (frames, count) = unwind::frames();
    let mut outside = frames[..count].iter().filter(|frame| !is_of_mpi(**frame));
    outside.next().copied().unwrap_or(0)
}

/// Returns true if the address belongs to this library, or to one that is named as a library of MPI, such as that for Fortran.
fn is_of_mpi(address: usize) -> bool {
    let of = |address: *const c_void| {
        let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: `dladdr` accepts any address, and `found` is a live local; all bytes zero are a valid value of it.
        unsafe {
            libc::dladdr(address, found.as_mut_ptr());
            found.assume_init()
        }
    };
    let (it, own) = (of(address as *const c_void), of(here as *const c_void));
    if it.dli_fname.is_null() {
        return false;
    }
    // SAFETY: the loader's name of a file that is mapped; objects that are in the stack are not unloaded.
    let name = unsafe { CStr::from_ptr(it.dli_fname) }.to_bytes();
    let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    it.dli_fbase == own.dli_fbase || last.starts_with(b"libmpi")
}
