//! What race detectors are told of locks that they cannot see: helgrind and drd of valgrind, and ThreadSanitizer.
//!
//! A lock made of atomic operations orders the threads that take it, and a detector that knows only the locks of pthreads
//! takes what they hand to each other for a race. So the lock's owner calls [`acquired`] when it has the lock and [`releasing`]
//! before it gives it back; a detector then knows that whatever was done before the one happened before whatever follows the other.
//! Without a detector each is one relaxed load.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering::Relaxed};

/// Which detector runs, as far as [`find`] has seen.
static DETECTOR: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = 0;
const VALGRIND: u8 = 1;
const SANITIZER: u8 = 2;

/// `__tsan_acquire` and `__tsan_release` of the runtime that the program brings.
static ACQUIRE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static RELEASE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Looks for a detector; called once, before a second thread comes. The words of the lock itself are atomic, which helgrind
/// does not see of all of them, so it is told not to follow them.
pub fn find<T>(lock: &T) {
    let symbol = |name: &CStr| {
        // SAFETY: the name ends with a zero, and the default handle needs no library to be open.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    let (acquire, release) = (symbol(c"__tsan_acquire"), symbol(c"__tsan_release"));
    if !acquire.is_null() && !release.is_null() {
        ACQUIRE.store(acquire, Relaxed);
        RELEASE.store(release, Relaxed);
        DETECTOR.store(SANITIZER, Relaxed);
    } else if crate::valgrind::is_running() {
        DETECTOR.store(VALGRIND, Relaxed);
        // helgrind.h: `_VG_USERREQ__HG_ARANGE_MAKE_UNTRACKED`.
        const MAKE_UNTRACKED: u64 = 0x4847_0127;
        let at = std::ptr::from_ref(lock).addr() as u64;
        crate::valgrind::request([MAKE_UNTRACKED, at, size_of::<T>() as u64, 0, 0, 0]);
    }
}

/// The caller has the lock at `lock`.
#[inline]
pub fn acquired<T>(lock: &T) {
    if DETECTOR.load(Relaxed) != NONE {
        tell(std::ptr::from_ref(lock).cast(), true);
    }
}

/// The caller gives the lock at `lock` back next.
#[inline]
pub fn releasing<T>(lock: &T) {
    if DETECTOR.load(Relaxed) != NONE {
        tell(std::ptr::from_ref(lock).cast(), false);
    }
}

#[cold]
fn tell(lock: *const c_void, has_it: bool) {
    if DETECTOR.load(Relaxed) == VALGRIND {
        // helgrind.h: `_VG_USERREQ__HG_USERSO_RECV_POST` and `_VG_USERREQ__HG_USERSO_SEND_PRE`; other tools answer nothing.
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
    // SAFETY: `find` got it by this name from the sanitizer's runtime, whose interface (tsan_interface.h) gives it this type;
    // the runtime takes the address as a name and does not follow it.
    unsafe {
        let function: extern "C" fn(*const c_void) = std::mem::transmute(function);
        function(lock);
    }
}
