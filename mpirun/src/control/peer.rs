//! The user of the process at the other end of a connection.
#![allow(unsafe_code)]

use rustix::fd::{AsFd, AsRawFd as _};

/// Returns the user number of the process at the other end of a Unix socket (SO_PEERCRED).
///
/// The process may be outside of the PID namespace of this process, as `mpi-ctl` is for a job
/// restored from images. The kernel then reports the process number 0, which rustix's type lacks.
pub(crate) fn user(socket: impl AsFd) -> Option<u32> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `credentials`, which has that size;
    // both live during the call, and every bit pattern is a valid `ucred`.
    let code = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    (code == 0).then_some(credentials.uid)
}
