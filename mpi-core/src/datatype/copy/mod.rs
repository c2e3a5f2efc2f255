//! The copy loops: between packed bytes and data scattered in memory.
//!
//! One loop serves both directions and every block length; it is compiled once for each direction and for each of
//! the block lengths that numbers and small structures have, where a block is a few moves instead of a call,
//! and all of that once more for processors whose moves are 32 bytes wide.
//! What is done with one block is in `direction`, with blocks at equal distances in `grid`, with lists of them and whole messages here.
//! This module and [`super::buf`] are the only ones of the datatype engine that touch memory.
#![allow(unsafe_code)]

mod direction;
mod grid;

use std::ops::Range;

use direction::{Direction, Gather, Scatter};
use grid::{Grid, Row, all_blocks, reach};

use super::layout::{Body, Run, Shape};
use super::walk::{Piece, Runs, Walk};

/// # Safety
/// As for [`Direction::run`], for every offset; `len` is `N` unless `N` is 0.
#[inline(always)]
unsafe fn scattered<D: Direction, const N: usize>(mut d: D, base: *mut u8, at: &[i64], len: usize) {
    for &offset in at {
        let memory = base.wrapping_offset(offset as isize);
        // SAFETY: the caller vouches for every block.
        unsafe {
            match N {
                0 => d.run(memory, len),
                _ => d.block::<N>(memory),
            }
        }
        d = d.ahead(len);
    }
}

/// All runs of a body once.
///
/// # Safety
/// As for [`Direction::run`], for every run of the body.
#[inline(always)]
unsafe fn one_body<D: Direction>(mut d: D, base: *mut u8, body: &Body<'_>) {
    let at = body.offsets;
    let Some(len) = body.uniform() else {
        for run in body.runs() {
            // SAFETY: passed on from the caller.
            unsafe { d.run(base.wrapping_offset(run.offset as isize), run.len as usize) };
            d = d.ahead(run.len as usize);
        }
        return;
    };
    let n = len as usize;
    // SAFETY: passed on from the caller; in a uniform body every run has the one length.
    unsafe {
        match len {
            4 => scattered::<D, 4>(d, base, at, n),
            8 => scattered::<D, 8>(d, base, at, n),
            12 => scattered::<D, 12>(d, base, at, n),
            16 => scattered::<D, 16>(d, base, at, n),
            24 => scattered::<D, 24>(d, base, at, n),
            32 => scattered::<D, 32>(d, base, at, n),
            _ => scattered::<D, 0>(d, base, at, n),
        }
    }
}

/// The memory that repetitions of a body should not exceed to stay in the first-level cache between its runs.
const NEAR: i64 = 16 << 10;

/// Repetitions of a body: an array of structures.
///
/// Run by run over a stretch of repetitions, each run is a row of one known length without a branch;
/// the stretch is short enough for the next run to find its memory in the cache.
///
/// # Safety
/// As for [`Direction::run`], for every run of every repetition.
#[inline(always)]
unsafe fn bodies<D: Direction>(
    mut d: D,
    mut base: *mut u8,
    body: &Body<'_>,
    stride: i64,
    count: i64,
) {
    let stretch = NEAR / stride.saturating_abs().max(body.bytes);
    let mut left = count;
    while left > 0 {
        let n = if stretch < 8 { 1 } else { stretch.min(left) };
        if n < 8 {
            // SAFETY: passed on from the caller.
            unsafe { one_body(d, base, body) };
        } else {
            let mut at = d;
            for run in body.runs() {
                let row = Row {
                    memory: base.wrapping_offset(run.offset as isize),
                    stride,
                    packed_stride: body.bytes as usize,
                    count: n,
                };
                let grid = Grid {
                    row,
                    stride: 0,
                    count: 1,
                    reach: NEAR,
                };
                // SAFETY: passed on from the caller.
                unsafe { all_blocks(at, grid, run.len) };
                at = at.ahead(run.len as usize);
            }
        }
        let n = if n < 8 { 1 } else { n };
        d = d.ahead((n * body.bytes) as usize);
        base = base.wrapping_offset((n as isize).wrapping_mul(stride as isize));
        left -= n;
    }
}

/// Moves packed bytes `range` of the elements at `base`.
///
/// # Safety
/// The data of that range in memory, and as many bytes at `d`, must be valid for the direction.
unsafe fn transfer<D: Direction>(d: D, base: *mut u8, shape: Shape<'_>, range: Range<i64>) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions; the rest is passed on from the caller.
        return unsafe { transfer_wide(d, base, shape, range) };
    }
    // SAFETY: passed on from the caller.
    unsafe { transfer_all(d, base, shape, range) }
}

/// [`transfer_all`] with wide moves.
///
/// # Safety
/// As for [`transfer`], on a processor that has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn transfer_wide<D: Direction>(d: D, base: *mut u8, shape: Shape<'_>, range: Range<i64>) {
    // SAFETY: passed on from the caller.
    unsafe { transfer_all(d, base, shape, range) }
}

/// # Safety
/// As for [`transfer`].
#[inline(always)]
unsafe fn transfer_all<D: Direction>(mut d: D, base: *mut u8, shape: Shape<'_>, range: Range<i64>) {
    // All of one list or structure, or of one grid, needs no walk, which would take longer than copying a few short runs.
    if range == (0..shape.total) {
        if shape.total == shape.body.bytes {
            // SAFETY: the range is all runs of the body, and the caller vouches for it.
            return unsafe { one_body(d, base, &shape.body) };
        }
        if let ([offset], [inner, outer, rest @ ..]) = (shape.body.offsets, &shape.loops)
            && rest.iter().all(|l| l.count == 1)
        {
            let row = Row {
                memory: base.wrapping_offset(*offset as isize),
                stride: inner.stride,
                packed_stride: shape.body.bytes as usize,
                count: inner.count,
            };
            let grid = Grid {
                row,
                stride: outer.stride,
                count: outer.count,
                reach: reach(&shape, shape.body.bytes, inner.stride),
            };
            // SAFETY: the range is all repetitions of the one run, and the caller vouches for it.
            return unsafe { all_blocks(d, grid, shape.body.bytes) };
        }
    }
    for piece in Walk::new(shape, range) {
        match piece {
            Piece::Grid {
                offset,
                len,
                count,
                stride,
                rows,
                row_stride,
            } => {
                let row = Row {
                    memory: base.wrapping_offset(offset as isize),
                    stride,
                    packed_stride: len as usize,
                    count,
                };
                let grid = Grid {
                    row,
                    stride: row_stride,
                    count: rows,
                    reach: reach(&shape, len, stride),
                };
                // SAFETY: the walk stays inside the range, for which the caller vouches.
                unsafe { all_blocks(d, grid, len) };
                d = d.ahead((len * count * rows) as usize);
            }
            Piece::Bodies {
                base: at,
                body,
                stride,
                count,
            } => {
                let base = base.wrapping_offset(at as isize);
                // SAFETY: the walk stays inside the range, for which the caller vouches.
                unsafe { bodies(d, base, &body, stride, count) };
                d = d.ahead((body.bytes * count) as usize);
            }
        }
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
