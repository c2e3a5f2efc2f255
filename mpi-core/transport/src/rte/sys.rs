//! System calls for which no safe crate exists: inherited descriptors, environment variables, and immediate exit.

#![allow(unsafe_code)]

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Takes ownership of an inherited file descriptor, and sets close-on-exec on it.
/// Returns `None` if the descriptor is not open or fails the check `is_ours`.
pub fn inherited(number: RawFd, is_ours: impl Fn(BorrowedFd<'_>) -> bool) -> Option<OwnedFd> {
    if number < 3 {
        return None;
    }
    // SAFETY: `fd` is used only in this function, which does not close it. If the descriptor is not open, the calls on it fail with EBADF.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = fcntl_getfd(fd).ok()?;
    if !is_ours(fd) {
        return None;
    }
    fcntl_setfd(fd, flags | FdFlags::CLOEXEC).ok()?;
    // SAFETY: `fcntl` has succeeded, so the descriptor is open. The launcher passed its number only to this process, in the environment, so no other value owns it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Returns true if a descriptor is a connected socket.
pub fn is_connected(fd: BorrowedFd<'_>) -> bool {
    rustix::net::getpeername(fd).is_ok()
}

/// Sets an environment variable of this process, for child processes or for a library that is loaded.
pub fn set_variable(name: &str, value: &str) {
    // SAFETY: this is called during the initialization of MPI, before this library has threads of its own. If the program reads the environment
    // in another thread at this time, it has a data race with the library of any launcher, because these libraries also set variables during initialization.
    unsafe { std::env::set_var(name, value) };
}

/// Removes an environment variable that [`set_variable`] has set.
pub fn remove_variable(name: &str) {
    // SAFETY: as for `set_variable`. A library that has been loaded may have threads; the C library moves the pointers to the other variables
    // and frees nothing, so such a thread reads valid strings.
    unsafe { std::env::remove_var(name) };
}

unsafe extern "C" {
    /// The C function `quick_exit` (ISO C11, 7.22.4.7).
    fn quick_exit(code: core::ffi::c_int) -> !;
}

/// Exits without executing code that might wait for other processes: no destructors and no `atexit` handlers.
/// Only `at_quick_exit` handlers are executed, with which a component resets its hardware.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `quick_exit` accepts any code and does not return; the handlers that it calls were registered for this purpose.
    unsafe { quick_exit(code) }
}

/// Returns the exit status for an abort with the error code `code`: its low eight bits, or 1 if these are 0.
pub fn abort_status(code: i32) -> i32 {
    match code & 0xff {
        0 => 1,
        low => low,
    }
}
