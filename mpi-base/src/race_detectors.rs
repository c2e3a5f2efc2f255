//! Annotations of atomic locks for race detectors: valgrind's helgrind and drd, and ThreadSanitizer.
//!
//! An atomic lock orders the threads that acquire it, but a detector that knows only
//! pthread locks reports a race on data that the lock protects.
//! So the lock's implementation calls [`acquired`] after acquiring the lock,
//! and [`releasing`] before releasing it.
//! The detector then knows that all accesses before a release happen before all accesses after the
//! next acquisition. Without a detector each call is one relaxed load.
//! With `cfg(instrumented)`, which `cargo xtask races` sets, nothing is annotated: the library is instrumented for ThreadSanitizer,
//! which sees the lock's own atomic accesses. An annotation would hide a wrong memory ordering in the lock.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering::Relaxed};

static DETECTOR: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = 0;
const VALGRIND: u8 = 1;
const SANITIZER: u8 = 2;

/// `__tsan_acquire` and `__tsan_release` of ThreadSanitizer's runtime; null without it.
static ACQUIRE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static RELEASE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Detects a running detector; the process calls this one time, before its second thread starts.
/// The call also excludes the words of the lock itself from helgrind's race detection ([`exclude`]).
pub fn find<T>(lock: &T) {
    if cfg!(instrumented) {
        return;
    }
    let symbol = |name: &CStr| {
        // SAFETY: the name is zero-terminated, and the default handle needs no library to be open.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    let (acquire, release) = (symbol(c"__tsan_acquire"), symbol(c"__tsan_release"));
    if !acquire.is_null() && !release.is_null() {
        ACQUIRE.store(acquire, Relaxed);
        RELEASE.store(release, Relaxed);
        DETECTOR.store(SANITIZER, Relaxed);
    } else if crate::valgrind::is_running() {
        DETECTOR.store(VALGRIND, Relaxed);
        exclude(lock);
    }
}

/// Excludes words that threads access only with atomic operations from helgrind's race detection:
/// helgrind recognises atomic read-modify-write operations, but not atomic loads and stores.
pub fn exclude<T>(words: &T) {
    // The client request `_VG_USERREQ__HG_ARANGE_MAKE_UNTRACKED` of helgrind.h.
    const MAKE_UNTRACKED: u64 = 0x4847_0127;
    if DETECTOR.load(Relaxed) == VALGRIND {
        let at = std::ptr::from_ref(words).addr() as u64;
        crate::valgrind::request([MAKE_UNTRACKED, at, size_of::<T>() as u64, 0, 0, 0]);
    }
}

/// Annotates that the caller has acquired the lock at address `lock`.
#[inline]
pub fn acquired<T>(lock: &T) {
    if DETECTOR.load(Relaxed) != NONE {
        tell(std::ptr::from_ref(lock).cast(), true);
    }
}

/// Annotates that the caller is about to release the lock at address `lock`.
#[inline]
pub fn releasing<T>(lock: &T) {
    if DETECTOR.load(Relaxed) != NONE {
        tell(std::ptr::from_ref(lock).cast(), false);
    }
}

#[cold]
fn tell(lock: *const c_void, has_it: bool) {
    if DETECTOR.load(Relaxed) == VALGRIND {
        // `_VG_USERREQ__HG_USERSO_RECV_POST` and `_VG_USERREQ__HG_USERSO_SEND_PRE` of helgrind.h;
        // other tools ignore these client requests.
        const RECV_POST: u64 = 0x4847_0122;
        const SEND_PRE: u64 = 0x4847_0121;
        let code = if has_it { RECV_POST } else { SEND_PRE };
        crate::valgrind::request([code, lock as u64, 0, 0, 0, 0]);
        return;
    }
    let function = if has_it { &ACQUIRE } else { &RELEASE }.load(Relaxed);
    if function.is_null() {
        return;
    }
    // SAFETY: `function` is the address of `__tsan_acquire` or `__tsan_release`, which `find` looked up in the sanitizer's runtime;
    // tsan_interface.h declares both as `void (void *)`. They use the address as an identifier and do not dereference it.
    unsafe {
        let function: extern "C" fn(*const c_void) = std::mem::transmute(function);
        function(lock);
    }
}
