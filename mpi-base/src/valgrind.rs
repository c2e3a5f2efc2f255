//! Whether this process runs under valgrind, which sees what this process does and nothing of what others do to its memory.
//!
//! A tool that follows each byte takes memory that another process has filled for uninitialised,
//! so under it no peer is asked to write into this process (`process_vm_writev(2)`); what this process reads itself, it knows.

#![allow(unsafe_code)]

use std::sync::OnceLock;

/// Whether valgrind runs this process; asked once.
pub fn is_running() -> bool {
    static RUNNING: OnceLock<bool> = OnceLock::new();
    *RUNNING.get_or_init(|| request_running() != 0)
}

/// `VG_USERREQ__RUNNING_ON_VALGRIND` of valgrind.h: how many valgrinds run one in another, 0 on the bare machine.
#[cfg(target_arch = "x86_64")]
fn request_running() -> u64 {
    const RUNNING_ON_VALGRIND: u64 = 0x1001;
    request([RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0])
}

/// A client request and its five arguments; 0 where no tool answers.
#[cfg(target_arch = "x86_64")]
pub(crate) fn request(request: [u64; 6]) -> u64 {
    let mut answer: u64 = 0;
    // SAFETY: valgrind recognises these rotations, by 128 bits in all, and the exchange of a register with itself; to a processor they do nothing but set flags
    // (valgrind.h, `__SPECIAL_INSTRUCTION_PREAMBLE`). The request is read only, and lives through the block.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") answer,
            options(readonly, nostack),
        );
    }
    answer
}

/// No requests are known for this processor.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn request(_: [u64; 6]) -> u64 {
    0
}

/// Elsewhere by what valgrind has the dynamic linker load.
#[cfg(not(target_arch = "x86_64"))]
fn request_running() -> u64 {
    let preloaded = crate::environment::text("LD_PRELOAD").unwrap_or_default();
    u64::from(preloaded.contains("vgpreload"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_test_knows_where_it_runs() {
        let preloaded = std::env::var("LD_PRELOAD").unwrap_or_default();
        assert_eq!(super::is_running(), preloaded.contains("vgpreload"));
    }
}
