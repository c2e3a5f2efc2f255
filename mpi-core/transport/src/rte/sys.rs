//! What this framework needs from the kernel and no safe crate offers: descriptors that come by number, and leaving at once.

#![allow(unsafe_code)]

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Takes over an inherited descriptor; `None` if the number is not open or not what `is_ours` expects.
///
/// From now on it is closed in whatever this process executes.
pub fn inherited(number: RawFd, is_ours: impl Fn(BorrowedFd<'_>) -> bool) -> Option<OwnedFd> {
    if number < 3 {
        return None;
    }
    // SAFETY: the borrow ends before the descriptor can be closed; if the number is not open, the calls on it fail harmlessly.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = fcntl_getfd(fd).ok()?;
    if !is_ours(fd) {
        return None;
    }
    fcntl_setfd(fd, flags | FdFlags::CLOEXEC).ok()?;
    // SAFETY: the descriptor is open, and the launcher opened it for this process to own: its number came to us alone, by environment.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Whether a descriptor is a connected socket.
pub fn is_connected(fd: BorrowedFd<'_>) -> bool {
    rustix::net::getpeername(fd).is_ok()
}

/// Sets a variable of this process, for the processes that it will start.
pub fn set_variable(name: &str, value: &str) {
    // SAFETY: programs that read the environment in other threads while MPI is being initialized are at risk with any
    // launcher's library, which does the same there; none of our own threads exists yet.
    unsafe { std::env::set_var(name, value) };
}

unsafe extern "C" {
    /// ISO C11, 7.22.4.7.
    fn quick_exit(code: core::ffi::c_int) -> !;
}

/// Leaves without running anything that might wait for others: no destructors and no `atexit` handlers,
/// only those of `at_quick_exit`, by which a component with hardware leaves that hardware at rest.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: it does not return, and code that has registered a handler for it has made it for this situation.
    unsafe { quick_exit(code) }
}

/// The exit status of an abort: eight bits, and never a success.
pub fn abort_status(code: i32) -> i32 {
    match code & 0xff {
        0 => 1,
        low => low,
    }
}
