//! Atomic types and fences of this crate; under `--cfg loom`, those of the loom model checker.
//!
//! Code of this crate that shares data with other threads or processes takes its atomics from here.
//! So under `--cfg loom` the same ring, doorbell and bitmap run in the loom model checker.
#![allow(unsafe_code)]

#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence,
};

#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// Does the same as [`std::sync::atomic::fence`] with this ordering, at a lower cost.
///
/// The compiler translates a sequentially consistent fence for x86-64 to `mfence`,
/// which also waits for memory operations that the language's fences do not cover.
/// A locked instruction also orders all loads and stores of ordinary (write-back) memory
/// (Intel SDM volume 3, 9.2.3.9; AMD APM volume 2, 7.4.2):
/// after a store on an EPYC, a locked instruction takes 2.8 ns and `mfence` 21 ns.
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
    // SAFETY: OR with 0 leaves the word at the top of the stack unchanged; without `options`, the compiler assumes that the instruction accesses any memory.
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp], 0");
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// Hints to the processor that this thread is polling.
#[inline(always)]
pub fn spin_loop() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Prefetches the cache line at `address` for reading.
///
/// The prefetch is a hint that changes no value; any address is allowed.
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

/// Prefetches the cache line at `address` for writing (ownership).
///
/// The prefetch is a hint that changes no value; any address is allowed.
#[inline(always)]
pub fn prefetch_for_write(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
    // SAFETY: a prefetch never faults and changes neither memory nor flags; processors that lack the instruction execute a no-op.
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

/// Size of a cache line in bytes.
const CACHE_LINE: usize = 64;

/// Prefetches the cache lines of a value for reading.
pub fn prefetch_value<T>(value: &T) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    for at in (0..size_of::<T>()).step_by(CACHE_LINE) {
        prefetch_for_read(start.wrapping_add(at));
    }
}

/// Waits until the preceding stores have reached the nearest cache.
///
/// The wait changes only the timing; it is used only where a measurement has shown a gain.
/// The wait orders nothing in the language's memory model: code that needs an order uses an atomic.
#[inline(always)]
pub fn settle_writes() {
    #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
    // SAFETY: OR with 0 leaves the word at the top of the stack unchanged. A locked operation waits for the stores before it.
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp], 0");
    }
}

/// Waits until the preceding loads are complete; changes only the timing and orders nothing.
#[inline(always)]
pub fn settle_reads() {
    #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
    // SAFETY: the instruction changes neither memory nor flags.
    unsafe {
        std::arch::asm!("lfence", options(nostack, preserves_flags));
    }
}
