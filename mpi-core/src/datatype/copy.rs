//! The copy loops: between packed bytes and data scattered in memory.
//!
//! One loop serves both directions and every block length; it is compiled once for each direction and for each of
//! the block lengths that numbers and small structures have, where a block is a few moves instead of a call.
//! This module and [`super::buf`] are the only ones of the datatype engine that touch memory.
#![allow(unsafe_code)]

use std::ops::Range;

use super::layout::{Run, Shape};
use super::walk::{Piece, Runs, Walk};

/// From memory to packed bytes or back; both ends are pointers that only this module moves.
trait Direction {
    /// Moves `N` bytes between `memory` and the packed side, and goes on by `N` there.
    ///
    /// # Safety
    /// `N` bytes at `memory` and at the packed position must be valid for the direction.
    unsafe fn block<const N: usize>(&mut self, memory: *mut u8);

    /// The same for a length that is known only now.
    ///
    /// # Safety
    /// As for `block`.
    unsafe fn run(&mut self, memory: *mut u8, len: usize);
}

struct Gather(*mut u8);
struct Scatter(*const u8);

impl Direction for Gather {
    #[inline(always)]
    unsafe fn block<const N: usize>(&mut self, memory: *mut u8) {
        // SAFETY: the caller vouches for `N` bytes on both sides, which never overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(memory, self.0, N);
            self.0 = self.0.add(N);
        }
    }

    #[inline(always)]
    unsafe fn run(&mut self, memory: *mut u8, len: usize) {
        // SAFETY: the caller vouches for `len` bytes on both sides.
        unsafe {
            copy_short(memory, self.0, len);
            self.0 = self.0.add(len);
        }
    }
}

impl Direction for Scatter {
    #[inline(always)]
    unsafe fn block<const N: usize>(&mut self, memory: *mut u8) {
        // SAFETY: the caller vouches for `N` bytes on both sides, which never overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(self.0, memory, N);
            self.0 = self.0.add(N);
        }
    }

    #[inline(always)]
    unsafe fn run(&mut self, memory: *mut u8, len: usize) {
        // SAFETY: the caller vouches for `len` bytes on both sides.
        unsafe {
            copy_short(self.0, memory, len);
            self.0 = self.0.add(len);
        }
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
            let tail = src.add(len - N).cast::<[u8; N]>().read();
            src.copy_to_nonoverlapping(dst, N);
            dst.add(len - N).cast::<[u8; N]>().write(tail);
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
            _ => src.copy_to_nonoverlapping(dst, len),
        }
    }
}

/// # Safety
/// As for [`Direction::block`], for every block of the row.
#[inline(always)]
unsafe fn row<D: Direction, const N: usize>(d: &mut D, first: *mut u8, stride: i64, count: i64) {
    let mut memory = first;
    for _ in 0..count {
        // SAFETY: the caller vouches for every block of the row.
        unsafe { d.block::<N>(memory) };
        memory = memory.wrapping_offset(stride as isize);
    }
}

/// # Safety
/// As for [`Direction::run`], for every run of the list.
#[inline(always)]
unsafe fn list<D: Direction, const N: usize>(d: &mut D, base: *mut u8, runs: &[Run]) {
    for run in runs {
        // SAFETY: the caller vouches for every run of the list.
        unsafe { d.block::<N>(base.wrapping_offset(run.offset as isize)) };
    }
}

/// Calls the copy loop `$f` that was compiled for this block length, or `$other`.
macro_rules! for_block_length {
    ($len:expr, $f:ident::<$d:ident> $args:tt, $other:expr, [$($n:literal)*]) => {
        match $len {
            $($n => $f::<$d, $n> $args,)*
            _ => $other,
        }
    };
}

/// Moves one piece; `base` is the start of the buffer.
///
/// # Safety
/// All bytes of the piece, counted from `base`, and as many packed bytes must be valid for the direction.
#[inline(always)]
unsafe fn piece<D: Direction>(d: &mut D, base: *mut u8, piece: Piece<'_>, uniform: bool) {
    match piece {
        Piece::Row {
            offset,
            len,
            stride,
            count,
        } => {
            let first = base.wrapping_offset(offset as isize);
            // SAFETY: passed on from the caller.
            unsafe {
                for_block_length!(
                    len,
                    row::<D> (d, first, stride, count),
                    {
                        let mut memory = first;
                        for _ in 0..count {
                            d.run(memory, len as usize);
                            memory = memory.wrapping_offset(stride as isize);
                        }
                    },
                    [1 2 4 8 12 16 24 32]
                )
            }
        }
        Piece::List { base: at, runs } => {
            let base = base.wrapping_offset(at as isize);
            let len = if uniform { runs[0].len } else { 0 };
            // SAFETY: passed on from the caller; in a uniform list every run has the length of the first.
            unsafe {
                for_block_length!(
                    len,
                    list::<D> (d, base, runs),
                    for run in runs {
                        d.run(base.wrapping_offset(run.offset as isize), run.len as usize);
                    },
                    [1 2 4 8 12 16 24 32]
                )
            }
        }
    }
}

/// # Safety
/// As for [`pack`] and [`unpack`].
unsafe fn transfer<D: Direction>(mut d: D, base: *mut u8, shape: Shape<'_>, range: Range<i64>) {
    let uniform = shape.is_uniform();
    for p in Walk::new(shape, range) {
        // SAFETY: the walk stays inside the range of the shape, for which the caller vouches.
        unsafe { piece(&mut d, base, p, uniform) };
    }
}

/// Copies packed bytes `from..from + out.len()` of the elements at `base` to `out`; less if there are no more.
///
/// # Safety
/// The data of `shape`, counted from `base`, must be readable, and nobody may write it meanwhile.
pub unsafe fn pack(base: *const u8, shape: Shape<'_>, from: i64, out: &mut [u8]) -> usize {
    let range = range_at(&shape, from, out.len());
    let len = (range.end - range.start) as usize;
    // SAFETY: the range has no more bytes than `out`; the caller vouches for the memory, which `Gather` only reads.
    unsafe { transfer(Gather(out.as_mut_ptr()), base.cast_mut(), shape, range) };
    len
}

/// Copies `input` to packed bytes `from..` of the elements at `base`; less if there are no more.
///
/// # Safety
/// The data of `shape`, counted from `base`, must be writable, and nobody may use it meanwhile.
pub unsafe fn unpack(base: *mut u8, shape: Shape<'_>, from: i64, input: &[u8]) -> usize {
    let range = range_at(&shape, from, input.len());
    let len = (range.end - range.start) as usize;
    // SAFETY: the range has no more bytes than `input`; the caller vouches for the memory.
    unsafe { transfer(Scatter(input.as_ptr()), base, shape, range) };
    len
}

fn range_at(shape: &Shape<'_>, from: i64, len: usize) -> Range<i64> {
    let from = from.clamp(0, shape.total);
    from..from.saturating_add(len as i64).min(shape.total)
}

/// Copies data between two buffers of any shapes, as many bytes as the smaller has.
///
/// # Safety
/// The data of `from`, counted from `src`, must be readable and that of `to`, counted from `dst`, writable.
pub unsafe fn copy(src: *const u8, from: Shape<'_>, dst: *mut u8, to: Shape<'_>) -> i64 {
    let total = from.total.min(to.total);
    let mut sources = Runs::new(from, 0..total);
    let mut targets = Runs::new(to, 0..total);
    let (mut a, mut b) = (Run::new(0, 0), Run::new(0, 0));
    let mut left = total;
    while left > 0 {
        if a.len == 0 {
            a = sources.next().unwrap_or(a);
        }
        if b.len == 0 {
            b = targets.next().unwrap_or(b);
        }
        let n = a.len.min(b.len);
        // SAFETY: both runs lie in the data that the caller vouches for; `ptr::copy` allows them to overlap.
        unsafe {
            std::ptr::copy(
                src.wrapping_offset(a.offset as isize),
                dst.wrapping_offset(b.offset as isize),
                n as usize,
            );
        }
        a = Run::new(a.offset + n, a.len - n);
        b = Run::new(b.offset + n, b.len - n);
        left -= n;
    }
    total
}
