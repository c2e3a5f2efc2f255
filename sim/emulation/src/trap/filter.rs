//! The seccomp filter: makes `ioperm` and the ioctls of GPIO chips raise
//! SIGSYS in this thread and in the threads and processes that it creates.

use crate::gpio::chardev;
use std::io;

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// Offsets in `struct seccomp_data` of the system call's number,
/// the architecture and the low half of the second argument.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const SECOND_ARGUMENT: u32 = 24;
/// Mask of an ioctl's type, which is the second byte of its code.
const TYPE_MASK: u32 = 0xff00;

const fn load(offset: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

/// Returns a BPF instruction that skips `yes`
/// instructions if the accumulator equals `k`, else `no`.
const fn equal(k: u32, yes: u8, no: u8) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, k)
}

const fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    let code = code as u16;
    libc::sock_filter { code, jt, jf, k }
}

const fn answer(k: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, k)
}

/// Installs the filter; a filter cannot be removed.
pub fn install() -> io::Result<()> {
    let mut program = [
        load(ARCH),
        equal(AUDIT_ARCH_X86_64, 0, 6),
        load(NUMBER),
        equal(libc::SYS_ioperm as u32, 5, 0),
        equal(libc::SYS_ioctl as u32, 0, 3),
        load(SECOND_ARGUMENT),
        instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, TYPE_MASK),
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
