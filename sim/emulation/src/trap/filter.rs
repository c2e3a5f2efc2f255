//! The seccomp filter: makes `ioperm` and the ioctls of GPIO chips raise
//! SIGSYS in this thread and in the threads and processes that it creates.

use crate::bpf::{ARCH, ARCHITECTURE, NUMBER, SECOND_ARGUMENT, TYPE_MASK};
use crate::bpf::{and, answer, equal, load};
use crate::gpio::chardev;
use std::io;

/// Installs the filter; the kernel cannot remove it again.
pub fn install() -> io::Result<()> {
    let mut program = [
        load(ARCH),
        equal(ARCHITECTURE, 0, 6),
        load(NUMBER),
        equal(libc::SYS_ioperm as u32, 5, 0),
        equal(libc::SYS_ioctl as u32, 0, 3),
        load(SECOND_ARGUMENT),
        and(TYPE_MASK),
        equal((chardev::TYPE as u32) << 8, 1, 0),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(libc::SECCOMP_RET_TRAP),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    let (yes, unused): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: the program outlives the calls, which copy it, and the kernel validates it.
    // The other arguments have the width that the kernel reads.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, unused, unused, unused) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) != 0
    };
    if refused {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
