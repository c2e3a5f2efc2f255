//! Instructions of seccomp filters, and the offsets of the fields that they load.

/// The architecture of this program, as the kernel numbers it (`<linux/audit.h>`).
#[cfg(target_arch = "x86_64")]
pub(crate) const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(crate) const ARCHITECTURE: u32 = 0xc000_00b7;

/// Offsets in bytes in `struct seccomp_data`.
/// That of the second argument is the offset of its low half.
pub(crate) const NUMBER: u32 = 0;
pub(crate) const ARCH: u32 = 4;
pub(crate) const SECOND_ARGUMENT: u32 = 24;
/// Mask of an ioctl's type, which is the second byte of its code.
pub(crate) const TYPE_MASK: u32 = 0xff00;

/// Returns an instruction that loads a word of `struct seccomp_data` into the accumulator.
pub(crate) const fn load(offset: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

/// Returns an instruction that replaces the accumulator by its bitwise AND with `k`.
pub(crate) const fn and(mask: u32) -> libc::sock_filter {
    instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, mask)
}

/// Returns an instruction that skips `yes` instructions if the accumulator equals `k`,
/// and `no` instructions otherwise.
pub(crate) const fn equal(k: u32, yes: u8, no: u8) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, k)
}

/// Returns an instruction that ends the filter with this answer.
pub(crate) const fn answer(k: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, k)
}

const fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    let code = code as u16;
    libc::sock_filter { code, jt, jf, k }
}
