//! System calls that no safe crate offers: inherited descriptors, and immediate exit.

#![allow(unsafe_code)]

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Takes ownership of an inherited descriptor;
/// `None` if the descriptor is not open or fails the check `is_ours`.
///
/// Sets close-on-exec on the descriptor.
pub fn inherited(number: RawFd, is_ours: impl Fn(BorrowedFd<'_>) -> bool) -> Option<OwnedFd> {
    if number < 3 {
        return None;
    }
    // SAFETY: `fd` lives within this function, which closes nothing; if the number is not open, the calls on it fail with EBADF.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = fcntl_getfd(fd).ok()?;
    if !is_ours(fd) {
        return None;
    }
    fcntl_setfd(fd, flags | FdFlags::CLOEXEC).ok()?;
    // SAFETY: the descriptor is open, since `fcntl` succeeded, and the launcher passed its number to this process alone by the environment, so no other value owns it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Returns true if a descriptor is a connected socket.
pub fn is_connected(fd: BorrowedFd<'_>) -> bool {
    rustix::net::getpeername(fd).is_ok()
}

/// Sets an environment variable of this process, for its children or for a library that it loads.
pub fn set_variable(name: &str, value: &str) {
    // SAFETY: this is called while MPI is being initialized, before this library has a thread of its own. A program that reads the environment
    // in another thread at that time has a data race with any launcher's library, since these set variables there, too.
    unsafe { std::env::set_var(name, value) };
}

unsafe extern "C" {
    /// ISO C11, 7.22.4.7.
    fn quick_exit(code: core::ffi::c_int) -> !;
}

/// Exits without code that might wait for other processes: no destructors and no `atexit` handlers,
/// only `at_quick_exit` handlers, with which a component resets its hardware.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `quick_exit` takes any code and does not return; the handlers it runs were registered for this situation.
    unsafe { quick_exit(code) }
}

/// Returns the exit status of an abort: eight bits, never 0.
pub fn abort_status(code: i32) -> i32 {
    match code & 0xff {
        0 => 1,
        low => low,
    }
}
