//! From memory to packed bytes or back: what the loops of copying do with one block.

use mpi_base::atomic::{prefetch_for_read, prefetch_for_write, settle_reads, settle_writes};
use mpi_base::copy::copy;

/// From memory to packed bytes or back: the place in the packed bytes.
pub trait Direction: Copy {
    /// `by` packed bytes further.
    fn ahead(self, by: usize) -> Self;

    /// Moves `N` bytes between `memory` and the packed place.
    ///
    /// # Safety
    /// `N` bytes on both sides must be valid for the direction, and they must not overlap.
    unsafe fn block<const N: usize>(self, memory: *mut u8);

    /// The same for a length that is known only now.
    ///
    /// # Safety
    /// As for `block`.
    unsafe fn run(self, memory: *mut u8, len: usize);

    /// A block at `memory`, which need not be an address, comes soon.
    fn expect(memory: *mut u8);

    /// So does this packed place, which need not be one either.
    fn expect_packed(self);

    /// Whether it is the memory that is written.
    const WRITES: bool;

    /// From how many groups of a crowd on it is worth waiting for each of them, if its blocks are `stride` apart.
    fn many_groups(stride: i64) -> i64;

    /// Waits until the blocks so far have been moved.
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
        // SAFETY: the caller vouches for `N` bytes on both sides.
        unsafe { std::ptr::copy_nonoverlapping(memory, self.0, N) }
    }

    #[inline(always)]
    unsafe fn run(self, memory: *mut u8, len: usize) {
        // SAFETY: the caller vouches for `len` bytes on both sides.
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
        // As long as all are in the second-level cache, reading them has nothing to win; further apart they share a set of that too:
        // 64 doubles took 13 ns each in a plain loop, and 2 when every 8 of them were waited for.
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
        // SAFETY: the caller vouches for `N` bytes on both sides.
        unsafe { std::ptr::copy_nonoverlapping(self.0, memory, N) }
    }

    #[inline(always)]
    unsafe fn run(self, memory: *mut u8, len: usize) {
        // SAFETY: the caller vouches for `len` bytes on both sides.
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

/// A copy that does not call out for the short lengths that scattered data has.
///
/// # Safety
/// `len` bytes at both ends must be valid and must not overlap.
#[inline(always)]
unsafe fn copy_short(src: *const u8, dst: *mut u8, len: usize) {
    /// Two moves of `N` bytes, the second ending where the data ends, cover every length from `N` to `2 * N`.
    #[inline(always)]
    unsafe fn two<const N: usize>(src: *const u8, dst: *mut u8, len: usize) {
        // SAFETY: `N <= len`, so both moves stay inside; the caller vouches for the rest.
        unsafe {
            src.copy_to_nonoverlapping(dst, N);
            src.add(len - N).copy_to_nonoverlapping(dst.add(len - N), N);
        }
    }
    // SAFETY: each arm stays inside `len`; the caller vouches for both ends.
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

/// A copy that calls out.
///
/// # Safety
/// As for [`copy_short`].
#[inline(always)]
unsafe fn copy_long(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: the caller vouches for both ends, and that they do not overlap.
    unsafe {
        copy(
            std::slice::from_raw_parts(src, len),
            std::slice::from_raw_parts_mut(dst, len),
        );
    }
}
