//! Detection of valgrind, and its client requests.
//! Valgrind observes this process's accesses, but not those of other processes to the same memory.
//!
//! A tool that tracks every byte considers memory written by another process as uninitialised.
//! So under valgrind no peer writes into this process (`process_vm_writev(2)`);
//! valgrind tracks memory correctly if this process writes it.

#![allow(unsafe_code)]

use std::sync::OnceLock;

/// Returns true if this process runs under valgrind; the result is cached.
pub fn is_running() -> bool {
    static RUNNING: OnceLock<bool> = OnceLock::new();
    *RUNNING.get_or_init(|| request_running() != 0)
}

/// `VG_USERREQ__RUNNING_ON_VALGRIND` of valgrind.h: the nesting depth, 0 without valgrind.
#[cfg(target_arch = "x86_64")]
fn request_running() -> u64 {
    const RUNNING_ON_VALGRIND: u64 = 0x1001;
    request([RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0])
}

/// Issues a client request: its code and five arguments. Returns 0 if no tool handles it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn request(request: [u64; 6]) -> u64 {
    let mut answer: u64 = 0;
    // SAFETY: valgrind recognises these rotations, by 128 bits in total, and the exchange of a
    // register with itself (valgrind.h, `__SPECIAL_INSTRUCTION_PREAMBLE`).
    // A processor only changes flags when it executes them.
    // The request is only read, and outlives the block.
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

/// Always returns 0: client requests are not implemented for this processor.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn request(_: [u64; 6]) -> u64 {
    0
}

/// Detects valgrind by the library that valgrind adds to `LD_PRELOAD`; returns 1 or 0.
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
