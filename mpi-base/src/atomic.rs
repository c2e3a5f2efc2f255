//! The one door to atomics.
//!
//! Everything in this crate that another thread or process may see takes its atomics from here,
//! so that under `--cfg loom` the same ring, bell and bitmap run inside the loom model checker.
#![allow(unsafe_code)]

#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence,
};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// What [`std::sync::atomic::fence`] promises, in less time.
///
/// The compiler makes `mfence` of a sequentially consistent fence for x86-64, which also waits for what no fence of the language speaks of.
/// A locked operation orders all loads and stores of ordinary memory as well (Intel SDM volume 3, 9.2.3.9; AMD APM volume 2, 7.4.2):
/// 2.8 ns after a store on an EPYC, where `mfence` takes 21.
#[cfg(not(loom))]
#[inline(always)]
pub fn fence(order: Ordering) {
    match order {
        Ordering::SeqCst => full_fence(),
        order => std::sync::atomic::fence(order),
    }
}

#[cfg(not(loom))]
#[inline(always)]
fn full_fence() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the word on top of the stack keeps its value; the compiler takes it for an access to any memory.
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp], 0");
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// Tells the processor that this thread is polling.
#[inline(always)]
pub fn spin_loop() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Asks the processor for the line at `address` soon, because it will be read.
///
/// A hint without effect on any value, for any address whatever.
#[inline(always)]
pub fn prefetch_for_read(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
    // SAFETY: a prefetch never faults and changes neither memory nor flags.
    unsafe {
        std::arch::asm!("prefetcht0 [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(any(miri, loom))))]
    // SAFETY: a prefetch never faults and changes neither memory nor flags.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

/// Asks the processor to own the line at `address` soon, because it will be written.
///
/// A hint without effect on any value, for any address whatever.
#[inline(always)]
pub fn prefetch_for_write(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
    // SAFETY: a prefetch never faults and changes neither memory nor flags; processors without it take it as a no-op.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(any(miri, loom))))]
    // SAFETY: a prefetch never faults and changes neither memory nor flags.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

/// Goes on when what was written before has reached the nearest cache.
///
/// For its time only, on processors where that was measured: code that needs an order uses an atomic.
#[inline(always)]
pub fn settle_writes() {
    #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
    // SAFETY: the word on top of the stack keeps its value. A locked operation waits for the stores before it.
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp], 0");
    }
}

/// Goes on when what was read before is there; for its time only.
#[inline(always)]
pub fn settle_reads() {
    #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
    // SAFETY: the instruction changes neither memory nor flags.
    unsafe {
        std::arch::asm!("lfence", options(nostack, preserves_flags));
    }
}
