//! The two directions of a copy, from memory to packed bytes or back,
//! with the operations of the copy loops on one block.

use mpi_base::atomic::{prefetch_for_read, prefetch_for_write, settle_reads, settle_writes};
use mpi_base::copy::copy;

/// A direction of a copy, with the present position in the packed bytes.
pub trait Direction: Copy {
    /// Returns the position that is `by` packed bytes further.
    fn ahead(self, by: usize) -> Self;

    /// Moves `N` bytes between `memory` and the packed position.
    ///
    /// # Safety
    /// `N` bytes on both sides must be valid for the direction, and they must not overlap.
    unsafe fn block<const N: usize>(self, memory: *mut u8);

    /// Moves `len` bytes, for a length that is not known at compile time.
    ///
    /// # Safety
    /// `len` bytes on both sides must be valid for the direction, and they must not overlap.
    unsafe fn run(self, memory: *mut u8, len: usize);

    /// Prefetches a block at `memory`, which need not be a valid address.
    fn expect(memory: *mut u8);

    /// Prefetches the packed bytes at this position, which need not be a valid address.
    fn expect_packed(self);

    /// True if the copy writes the user's memory.
    const WRITES: bool;

    /// The minimum number of groups for which a wait after each group saves time,
    /// for blocks that compete for the same cache sets (a `Crowd`).
    /// `stride` is the distance of the blocks in bytes.
    fn many_groups(stride: i64) -> i64;

    /// Waits until all previous moves have completed their accesses to the user's memory.
    fn settle();
}

#[derive(Clone, Copy)]
pub struct Gather(pub *mut u8);

#[derive(Clone, Copy)]
pub struct Scatter(pub *const u8);

impl Direction for Gather {
    #[inline(always)]
    fn ahead(self, by: usize) -> Gather {
        Gather(self.0.wrapping_add(by))
    }

    #[inline(always)]
    unsafe fn block<const N: usize>(self, memory: *mut u8) {
        // SAFETY: `N` bytes on both sides are valid and disjoint by the contract of `block`.
        unsafe { std::ptr::copy_nonoverlapping(memory, self.0, N) }
    }

    #[inline(always)]
    unsafe fn run(self, memory: *mut u8, len: usize) {
        // SAFETY: `len` bytes on both sides are valid and disjoint by the contract of `run`.
        unsafe { copy_short(memory, self.0, len) }
    }

    #[inline(always)]
    fn expect(memory: *mut u8) {
        prefetch_for_read(memory);
    }

    #[inline(always)]
    fn expect_packed(self) {
        prefetch_for_write(self.0);
    }

    const WRITES: bool = false;

    #[inline(always)]
    fn many_groups(stride: i64) -> i64 {
        // While all blocks are in the second-level cache, waiting for reads gains nothing.
        // At strides of 32 KiB the blocks conflict in that cache too:
        // copying 64 doubles took 13 ns per double in a plain loop,
        // and 2 ns if the loop waits for the outstanding reads after every 8 doubles.
        if stride % (32 << 10) == 0 { 8 } else { 128 }
    }

    #[inline(always)]
    fn settle() {
        settle_reads();
    }
}

impl Direction for Scatter {
    #[inline(always)]
    fn ahead(self, by: usize) -> Scatter {
        Scatter(self.0.wrapping_add(by))
    }

    #[inline(always)]
    unsafe fn block<const N: usize>(self, memory: *mut u8) {
        // SAFETY: `N` bytes on both sides are valid and disjoint by the contract of `block`.
        unsafe { std::ptr::copy_nonoverlapping(self.0, memory, N) }
    }

    #[inline(always)]
    unsafe fn run(self, memory: *mut u8, len: usize) {
        // SAFETY: `len` bytes on both sides are valid and disjoint by the contract of `run`.
        unsafe { copy_short(self.0, memory, len) }
    }

    #[inline(always)]
    fn expect(memory: *mut u8) {
        prefetch_for_write(memory);
    }

    #[inline(always)]
    fn expect_packed(self) {
        prefetch_for_read(self.0);
    }

    const WRITES: bool = true;

    #[inline(always)]
    fn many_groups(_: i64) -> i64 {
        8
    }

    #[inline(always)]
    fn settle() {
        settle_writes();
    }
}

/// Copies a short block without a function call.
///
/// # Safety
/// `len` bytes at `src` and at `dst` must be valid and must not overlap.
#[inline(always)]
unsafe fn copy_short(src: *const u8, dst: *mut u8, len: usize) {
    /// Two moves of `N` bytes, of which the second ends at the end of the data.
    /// They cover each length from `N` to `2 * N`.
    #[inline(always)]
    unsafe fn two<const N: usize>(src: *const u8, dst: *mut u8, len: usize) {
        // SAFETY: `N <= len`, so both moves are inside `len` bytes,
        // which are valid and disjoint by the contract of `copy_short`.
        unsafe {
            src.copy_to_nonoverlapping(dst, N);
            src.add(len - N).copy_to_nonoverlapping(dst.add(len - N), N);
        }
    }
    // SAFETY: each arm moves bytes inside `len`,
    // which are valid and disjoint by this function's contract.
    unsafe {
        match len {
            0 => (),
            1 => *dst = *src,
            2..=3 => two::<2>(src, dst, len),
            4..=7 => two::<4>(src, dst, len),
            8..=15 => two::<8>(src, dst, len),
            16..=32 => two::<16>(src, dst, len),
            33..=64 => two::<32>(src, dst, len),
            _ => copy_long(src, dst, len),
        }
    }
}

/// Copies a long block by a function call.
///
/// # Safety
/// `len` bytes at `src` and at `dst` must be valid and must not overlap.
#[inline(always)]
unsafe fn copy_long(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: `len` bytes at `src` and at `dst` are valid and disjoint by this function's contract.
    unsafe {
        copy(
            std::slice::from_raw_parts(src, len),
            std::slice::from_raw_parts_mut(dst, len),
        );
    }
}
