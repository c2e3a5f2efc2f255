//! Yielding of the core by `sched_yield(2)`, as an inlined system call instruction.
//!
//! A core predicts return addresses with a return stack,
//! which the kernel overwrites at each switch between processes,
//! so that one process cannot mislead another's speculation (the kernel's documentation of Spectre, "RSB filling").
//! After a context switch the core therefore mispredicts returns,
//! one for each function call that encloses the yield.
//! On oversubscribed cores every message and every collective completes after a context switch.
//! So the system call instruction is compiled directly into the waiting loop:
//! with it, a barrier of 16 ranks on two cores takes a fifteenth less time than with the
//! C library's function.
#![allow(unsafe_code)]

/// Yields the core one time; returns when this thread is scheduled again.
#[inline(always)]
pub fn yield_now() {
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(loom)))]
    {
        /// The number of the system call in the kernel (`arch/x86/entry/syscalls/syscall_64.tbl`).
        const SCHED_YIELD: usize = 24;
        // SAFETY: this system call has no arguments, touches no memory of the process and cannot fail (sched_yield(2)).
        // The instruction overwrites rax, rcx and r11 (AMD64 ABI, section A.2.1).
        // The assembly is not declared `nomem`, so the compiler keeps no memory in registers that
        // other processes may have written during the yield.
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

/// The duration of a yield, in ticks of the time stamp counter (TSC).
///
/// The counter's rate is 2 to 5 GHz. A rate of 3 GHz is assumed,
/// so the times of this type are correct within a factor of 1.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Yielded(u64);

/// Number of ticks in a microsecond.
#[cfg(target_arch = "x86_64")]
const MICROSECOND: u64 = 3_000;

#[cfg(not(target_arch = "x86_64"))]
const MICROSECOND: u64 = 1_000;

impl Yielded {
    /// The duration above which another process has computed during a yield:
    /// the scheduler gave that process the rest of this thread's time slice, 3 to 4 ms,
    /// while a switch to a waiting rank and back takes microseconds.
    pub const LONG: Yielded = Yielded::micros(500);

    /// The duration above which another process has used most of a time slice, which is 3 to 4 ms.
    pub const SLICE: Yielded = Yielded::micros(1_500);

    /// The duration below which no other thread ran during a yield:
    /// two context switches take 1.2 to 2 us, a yield without them 0.2 to 0.4 us.
    pub const IDLE: Yielded = Yielded(MICROSECOND * 3 / 4);

    /// Returns the duration of a yield of `micros` microseconds.
    pub const fn micros(micros: u64) -> Yielded {
        Yielded(micros * MICROSECOND)
    }

    /// Returns the number of waits for which one yield of this duration means 2 us per wait.
    pub fn waits_until_next(self) -> u32 {
        const COST: u64 = 2 * MICROSECOND;
        u32::try_from(self.0 / COST).unwrap_or(u32::MAX)
    }
}

/// Yields the core one time; returns the time during which other threads ran on the core.
///
/// The function reads the time stamp counter twice in addition to [`yield_now`]:
/// this takes about 10 ns; reading the clock would take 50 ns.
#[inline(always)]
#[must_use]
pub fn timed_yield() -> Yielded {
    let before = stamp();
    yield_now();
    Yielded(stamp().wrapping_sub(before))
}

/// The steps of a wait for another process or thread without a doorbell: each step yields the core.
/// After a yield longer than [`Yielded::LONG`], a step sleeps instead.
#[derive(Debug, Default)]
pub struct Backoff {
    beside_load: bool,
}

/// Duration of a sleep between two polls, on a core that a computing process shares.
#[cfg(not(loom))]
const NAP: std::time::Duration = std::time::Duration::from_micros(50);

impl Backoff {
    /// Returns a wait that has not yet yielded.
    pub const fn new() -> Backoff {
        Backoff { beside_load: false }
    }

    /// Performs one step between two polls: yields, or sleeps if a process computes on this core.
    pub fn pause(&mut self) {
        if self.beside_load {
            nap();
        } else if timed_yield() > Yielded::LONG {
            self.beside_load = true;
        }
    }
}

#[cfg(not(loom))]
fn nap() {
    std::thread::sleep(NAP);
}

/// Does nothing under loom, which has no clock.
#[cfg(loom)]
fn nap() {
    yield_now();
}

/// Returns the value of the time stamp counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn stamp() -> u64 {
    // SAFETY: `rdtsc` reads a counter into two registers and touches no memory.
    // Every x86-64 processor has this instruction. If the system forbids it to programs
    // (`PR_SET_TSC`), the vDSO's clock also faults.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Returns the time of the monotonic clock in nanoseconds, on processors other than x86-64.
#[cfg(all(not(target_arch = "x86_64"), not(loom)))]
#[inline]
fn stamp() -> u64 {
    crate::clock::now_ns()
}

/// Returns 0 under loom, which has no clock, on processors other than x86-64.
#[cfg(all(not(target_arch = "x86_64"), loom))]
fn stamp() -> u64 {
    0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn the_waits_without_a_yield_are_in_proportion_to_what_the_yield_took() {
        let waits = |micros| Yielded::micros(micros).waits_until_next();
        assert_eq!((waits(4_000), waits(200), waits(1)), (2_000, 100, 0));
        assert_eq!(Yielded(u64::MAX).waits_until_next(), u32::MAX);
    }

    #[test]
    fn a_wait_beside_load_goes_on_without_yields() {
        let mut backoff = Backoff { beside_load: true };
        backoff.pause();
        assert!(backoff.beside_load);
    }

    /// Two threads on one core yield to each other thousands of times within one time slice;
    /// with a yield that does not release the core, this would take an hour.
    #[test]
    fn a_yield_lets_another_thread_run() {
        const TURNS: u32 = 20_000;
        let core = rustix::thread::sched_getcpu();
        let turn = AtomicU32::new(0);
        let play = |mine: u32| {
            let mut one = rustix::thread::CpuSet::new();
            one.set(core);
            // If the kernel does not allow the binding, the threads run on two cores.
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
