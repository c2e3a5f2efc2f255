//! Yielding the core: `sched_yield(2)` as an inlined system call instruction.
//!
//! A core predicts return addresses from a return stack, which the kernel overwrites at each switch between processes,
//! so that one process cannot mislead another's speculation (the kernel's documentation of Spectre, "RSB filling").
//! After a context switch each return is therefore mispredicted, one per call that surrounds the yield,
//! and on oversubscribed cores every message and every collective completes after a switch.
//! So the yield is an instruction here, compiled into the loop that waits: a barrier of 16 ranks on two cores takes a fifteenth less than with the C library's function.
#![allow(unsafe_code)]

/// Yields the core once; returns when this thread is scheduled again.
#[inline(always)]
pub fn yield_now() {
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(loom)))]
    {
        /// `arch/x86/entry/syscalls/syscall_64.tbl` of the kernel.
        const SCHED_YIELD: usize = 24;
        // SAFETY: this system call has no arguments, touches no memory of the process and cannot fail (sched_yield(2)).
        // The instruction overwrites rax, rcx and r11 (AMD64 ABI, section A.2.1).
        // The assembly is not declared `nomem`, so the compiler keeps no memory that others may have written meanwhile in registers.
        unsafe {
            std::arch::asm!(
                "syscall",
                inlateout("rax") SCHED_YIELD => _,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack),
            );
        }
    }
    #[cfg(all(not(all(target_os = "linux", target_arch = "x86_64")), not(loom)))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// After a longer yield, another process computes on this core: the scheduler gave it the rest of this thread's time slice, 3 to 4 ms,
/// while a switch to a waiting rank and back takes microseconds.
const LONG_NS: u64 = 500_000;

/// Yields the core once; returns true if a process that computes has kept it, so that the next yield would cost a time slice too.
///
/// It adds two readings of the time stamp counter to [`yield_now`]: some ten nanoseconds, where the clock would take fifty.
#[inline(always)]
#[must_use]
pub fn yield_meets_load() -> bool {
    let before = stamp();
    yield_now();
    stamp().wrapping_sub(before) > LONG
}

/// [`LONG_NS`] in ticks of the counter, which runs at 2 to 5 GHz: 0.3 to 0.75 ms.
#[cfg(target_arch = "x86_64")]
const LONG: u64 = 3 * LONG_NS;

#[cfg(not(target_arch = "x86_64"))]
const LONG: u64 = LONG_NS;

/// A reading of the time stamp counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn stamp() -> u64 {
    // SAFETY: `rdtsc` reads a counter into two registers and touches no memory.
    // Every x86-64 processor has it; where the system forbids it to programs (`PR_SET_TSC`), the vDSO's clock faults as well.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Nanoseconds of the monotonic clock.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn stamp() -> u64 {
    crate::clock::now_ns()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Two threads on one core alternate thousands of times within one time slice; a yield that kept the core would take an hour.
    #[test]
    fn a_yield_lets_another_thread_run() {
        const TURNS: u32 = 20_000;
        let core = rustix::thread::sched_getcpu();
        let turn = AtomicU32::new(0);
        let play = |mine: u32| {
            let mut one = rustix::thread::CpuSet::new();
            one.set(core);
            // Where the system does not allow that, the threads run on two cores.
            let _ = rustix::thread::sched_setaffinity(None, &one);
            for round in 0..TURNS {
                while turn.load(Ordering::Acquire) != 2 * round + mine {
                    yield_now();
                }
                turn.fetch_add(1, Ordering::Release);
            }
        };
        std::thread::scope(|threads| {
            threads.spawn(|| play(0));
            threads.spawn(|| play(1));
        });
        assert_eq!(turn.into_inner(), 2 * TURNS);
    }
}
