//! Copy loops between packed bytes and noncontiguous data in memory.
//!
//! One generic loop copies in both directions and with all block lengths. It is compiled for each
//! direction, and for each block length of numbers and small structures: a block of such a length
//! is a few moves without a function call.
//! For blocks of 32 bytes and more it is compiled a second time for processors with AVX2.
//! `direction` has the operations on one block, `grid` copies blocks
//! at a constant stride, `structs` arrays of structures,
//! and this file lists of blocks and complete messages.
//! In the datatype engine only this module, [`super::buf`] and [`super::bytes`] access user memory.
#![allow(unsafe_code)]

mod direction;
mod grid;
mod structs;

use std::ops::Range;

use direction::{Direction, Gather, Scatter};
use grid::{Grid, Row, all_blocks};
use structs::{Repeated, bodies};

use super::layout::{Body, Run, Shape};
use super::walk::{Piece, Runs, Walk};

/// # Safety
/// All bytes of the block at every offset must be valid for [`Direction::run`].
/// `len` is `N` unless `N` is 0.
#[inline(always)]
unsafe fn scattered<D: Direction, const N: usize>(mut d: D, base: *mut u8, at: &[i64], len: usize) {
    for &offset in at {
        let memory = base.wrapping_offset(offset as isize);
        // SAFETY: every block is valid for `Direction::run` by this function's contract.
        unsafe {
            match N {
                0 => d.run(memory, len),
                _ => d.block::<N>(memory),
            }
        }
        d = d.ahead(len);
    }
}

/// Moves all runs of one repetition of a body (a list of runs).
///
/// # Safety
/// All bytes of every run of the body must be valid for [`Direction::run`].
unsafe fn one_body<D: Direction>(d: D, base: *mut u8, body: &Body<'_>) {
    let (at, n) = (body.offsets, body.uniform().unwrap_or(0) as usize);
    // SAFETY: every run of the body is valid by this function's contract.
    // In a uniform body every run has length `n`.
    unsafe {
        match n {
            4 => scattered::<D, 4>(d, base, at, n),
            8 => scattered::<D, 8>(d, base, at, n),
            12 => scattered::<D, 12>(d, base, at, n),
            16 => scattered::<D, 16>(d, base, at, n),
            24 => scattered::<D, 24>(d, base, at, n),
            _ => {
                #[cfg(target_arch = "x86_64")]
                if std::arch::is_x86_feature_detected!("avx2") {
                    return any_body_wide(d, base, body);
                }
                any_body(d, base, body);
            }
        }
    }
}

/// [`any_body`] compiled with AVX2.
///
/// # Safety
/// The contract of [`one_body`], on a processor that has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn any_body_wide<D: Direction>(d: D, base: *mut u8, body: &Body<'_>) {
    // SAFETY: every run of the body is valid by this function's contract.
    unsafe { any_body(d, base, body) }
}

/// # Safety
/// The contract of [`one_body`].
#[inline(always)]
unsafe fn any_body<D: Direction>(mut d: D, base: *mut u8, body: &Body<'_>) {
    if let Some(len) = body.uniform() {
        // SAFETY: every run of the body is valid by this function's contract, and has length `len`.
        return unsafe { scattered::<D, 0>(d, base, body.offsets, len as usize) };
    }
    for run in body.runs() {
        // SAFETY: every run of the body is valid by this function's contract.
        unsafe { d.run(base.wrapping_offset(run.offset as isize), run.len as usize) };
        d = d.ahead(run.len as usize);
    }
}

/// Moves the packed bytes `range` of the elements at `base`.
///
/// # Safety
/// The data of `range` in memory, and the same number
/// of bytes at `d`, must be valid for the direction.
#[inline(always)]
unsafe fn transfer<D: Direction>(d: D, base: *mut u8, shape: &Shape<'_>, range: Range<i64>) {
    let Shape { body, total, .. } = *shape;
    let [inner, outer, rest @ ..] = &shape.loops;
    // If the range is all data of a list, structure,
    // array of structures or grid, no [`Walk`] is used:
    // its set-up would take longer than copying a few short runs.
    let all = range == (0..total);
    let simple = rest.iter().all(|l| l.count == 1);
    // SAFETY: in the first three branches the blocks are all data of the range. In the last, `walk`
    // gets the range. Both are valid by this function's contract.
    unsafe {
        if all && total == body.bytes {
            one_body(d, base, &body);
        } else if let (true, [offset]) = (all && simple, body.offsets) {
            let row = Row {
                memory: base.wrapping_offset(*offset as isize),
                stride: inner.stride,
                packed_stride: body.bytes as usize,
                count: inner.count,
            };
            let grid = Grid {
                row,
                stride: outer.stride,
                count: outer.count,
                total,
            };
            all_blocks(d, grid, body.bytes);
        } else if all && simple && outer.count == 1 {
            let all = Repeated {
                d,
                memory: base,
                stride: inner.stride,
                packed_stride: body.bytes as usize,
                count: inner.count,
            };
            bodies(all, &body);
        } else {
            walk(d, base, shape, range);
        }
    }
}

/// Copies the packed bytes `range` as the pieces that a [`Walk`] returns.
///
/// # Safety
/// The contract of [`transfer`].
#[inline(never)]
unsafe fn walk<D: Direction>(mut d: D, base: *mut u8, shape: &Shape<'_>, range: Range<i64>) {
    if let Some(offset) = shape.in_one_run(&range) {
        let len = (range.end - range.start) as usize;
        // SAFETY: `len` bytes at `offset` are the data of the range, valid by the contract of `transfer`.
        return unsafe { d.run(base.wrapping_offset(offset as isize), len) };
    }
    for piece in Walk::new(*shape, range) {
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
                    total: shape.total,
                };
                // SAFETY: the walk returns only blocks inside the range,
                // whose data are valid by the contract of `transfer`.
                unsafe { all_blocks(d, grid, len) };
                d = d.ahead((len * count * rows) as usize);
            }
            Piece::Bodies {
                base: at,
                body,
                stride,
                count,
            } => {
                let all = Repeated {
                    d,
                    memory: base.wrapping_offset(at as isize),
                    stride,
                    packed_stride: body.bytes as usize,
                    count,
                };
                // SAFETY: the walk returns only runs inside the range,
                // whose data are valid by the contract of `transfer`.
                unsafe { bodies(all, &body) };
                d = d.ahead((body.bytes * count) as usize);
            }
        }
    }
}

/// Packs the elements at `base` into `out`, beginning at the packed position `from`.
/// Returns the number of copied bytes, which is limited by the end of the data.
///
/// # Safety
/// The data of `shape`, relative to `base`, must be readable,
/// and no code may write them during the call.
#[inline(always)]
pub unsafe fn pack(base: *const u8, shape: &Shape<'_>, from: i64, out: &mut [u8]) -> usize {
    let range = range_at(shape, from, out.len());
    let len = (range.end - range.start) as usize;
    // SAFETY: the range is at most `out.len()` bytes. The data are readable by this function's
    // contract, and `Gather` only reads memory.
    unsafe { transfer(Gather(out.as_mut_ptr()), base.cast_mut(), shape, range) };
    len
}

/// Unpacks `input` into the elements at `base`, beginning at the packed position `from`.
/// Returns the number of copied bytes, which is limited by the end of the data.
///
/// # Safety
/// The data of `shape`, relative to `base`, must be writable,
/// and no other code may use them during the call.
#[inline(always)]
pub unsafe fn unpack(base: *mut u8, shape: &Shape<'_>, from: i64, input: &[u8]) -> usize {
    let range = range_at(shape, from, input.len());
    let len = (range.end - range.start) as usize;
    // SAFETY: the range is at most `input.len()` bytes.
    // The data are writable by this function's contract.
    unsafe { transfer(Scatter(input.as_ptr()), base, shape, range) };
    len
}

fn range_at(shape: &Shape<'_>, from: i64, len: usize) -> Range<i64> {
    let from = from.clamp(0, shape.total);
    from..from.saturating_add(len as i64).min(shape.total)
}

/// Copies data between two buffers of any shapes, up to the number of bytes of the smaller one.
///
/// # Safety
/// The data of `from`, relative to `src`, must be readable.
/// The data of `to`, relative to `dst`, must be writable.
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
        // SAFETY: `n` bytes of both runs are data of `from` and `to`,
        // valid by this function's contract.
        // `ptr::copy` allows overlap.
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
