//! The copy loops: between packed bytes and data scattered in memory.
//!
//! One loop serves both directions and every block length; it is compiled once for each direction and for each of
//! the block lengths that numbers and small structures have, where a block is a few moves instead of a call,
//! and all of that once more for processors whose moves are 32 bytes wide.
//! This module and [`super::buf`] are the only ones of the datatype engine that touch memory.
#![allow(unsafe_code)]

use std::ops::Range;

use mpi_base::atomic::{prefetch_for_read, prefetch_for_write, settle_reads, settle_writes};

use super::layout::{Body, Run, Shape};
use super::walk::{Piece, Runs, Walk};

/// From memory to packed bytes or back: the place in the packed bytes.
trait Direction: Copy {
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

    /// How many blocks of a crowd, in groups, are worth waiting for each group.
    const CROWD: i64;

    /// Waits until the blocks so far have been moved.
    fn settle();
}

#[derive(Clone, Copy)]
struct Gather(*mut u8);

#[derive(Clone, Copy)]
struct Scatter(*const u8);

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

    // As long as all are in the second cache, reading them has nothing to win.
    const CROWD: i64 = 128;

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

    const CROWD: i64 = 4;

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

/// Blocks at equal distances in memory and in the packed bytes.
#[derive(Clone, Copy)]
struct Row {
    memory: *mut u8,
    stride: i64,
    packed_stride: usize,
    count: i64,
}

/// From this distance between numbers on the processor does not fetch ahead by itself, above all not for writing:
/// measured for a column of doubles 1 KiB apart, asking for the one [`AHEAD`] blocks on takes a quarter off unpacking.
const FAR: u64 = 512;
const AHEAD: isize = 16;

/// A cache line: a block of that length is mostly in two of them, and so many packed bytes are often in another core's cache.
const LINE: usize = 64;

/// Rows at equal distances in memory, one after another in the packed bytes.
#[derive(Clone, Copy)]
struct Grid {
    row: Row,
    stride: i64,
    count: i64,
    /// How much memory lies between the first and the last block of all data, of which this may be a part.
    reach: i64,
}

/// # Safety
/// As for [`Direction::run`], for every block; `len` is `N` unless `N` is 0.
#[inline(always)]
unsafe fn blocks<D: Direction, const N: usize, const FAR: bool>(mut d: D, grid: Grid, len: usize) {
    let Row {
        stride,
        packed_stride,
        count,
        ..
    } = grid.row;
    let stride = stride as isize;
    // SAFETY: the caller vouches for every block.
    let one = |d: D, memory: *mut u8| unsafe {
        match N {
            0 => d.run(memory, len),
            _ => d.block::<N>(memory),
        }
    };
    let mut first = grid.row.memory;
    for _ in 0..grid.count {
        let mut memory = first;
        // Four at a time where a block is a move or two, so that the counting does not outweigh it.
        let fours = if N == 0 { 0 } else { count / 4 };
        for _ in 0..fours {
            for i in 0..4 {
                let block = memory.wrapping_offset((i as isize).wrapping_mul(stride));
                if FAR {
                    D::expect(block.wrapping_offset(stride.wrapping_mul(AHEAD)));
                    if N >= LINE {
                        D::expect(
                            block
                                .wrapping_offset(stride.wrapping_mul(AHEAD))
                                .wrapping_add(N - 1),
                        );
                        d.ahead(i * packed_stride + AHEAD as usize * N)
                            .expect_packed();
                    }
                }
                one(d.ahead(i * packed_stride), block);
            }
            memory = memory.wrapping_offset(stride.wrapping_mul(4));
            d = d.ahead(4 * packed_stride);
        }
        for _ in 4 * fours..count {
            one(d, memory);
            memory = memory.wrapping_offset(stride);
            d = d.ahead(packed_stride);
        }
        first = first.wrapping_offset(grid.stride as isize);
    }
}

/// Sets of the first-level cache, and lines that each of them holds at least, on all processors with pages of 4 KiB.
const SETS: u32 = 64;
const WAYS: i64 = 8;
/// Blocks that are longer fill the queue of what is under way before they are too many for a set.
const NARROW: i64 = 128;
/// What lies further apart comes from main memory, which has more to give the more is under way.
const CACHED: i64 = 16 << 20;

/// How many blocks of a grid may be under way at once, if they are many and that is few.
///
/// Blocks whose distance is a multiple of a power of two, as in the column of a matrix with so long rows, share a few sets of the first-level cache.
/// The processor asks for the lines of a hundred stores at once, and where a set has room for twelve they push each other out before they are written:
/// 128 doubles 4 KiB apart took 7.5 ns each in a plain loop, and 2.5 when every 8 of them were waited for (Zen 5);
/// loads that miss the second cache took 8.6 and 3.8.
fn group<D: Direction>(grid: &Grid, len: i64) -> Option<i64> {
    let lines = (grid.row.stride.trailing_zeros()).checked_sub(LINE.ilog2())?;
    let sets = SETS >> lines.min(SETS.ilog2());
    let group = i64::from(sets) * WAYS;
    let many = grid.row.count.saturating_mul(grid.count) >= D::CROWD * group;
    (sets <= 4 && many && len <= NARROW && grid.reach <= CACHED).then_some(group)
}

/// How much memory lies between the first and the last of all blocks of that length and distance.
fn reach(shape: &Shape<'_>, len: i64, stride: i64) -> i64 {
    (shape.total / len.max(1)).saturating_mul(stride.saturating_abs())
}

/// Blocks that share a few sets of the first-level cache, never more under way than a `group`.
///
/// # Safety
/// As for [`Direction::run`], for every block; `len` is `N` unless `N` is 0.
#[inline(always)]
unsafe fn crowd<D: Direction, const N: usize>(mut d: D, grid: Grid, len: usize, group: i64) {
    let mut first = grid.row.memory;
    let mut under_way = 0;
    for _ in 0..grid.count {
        let mut memory = first;
        for _ in 0..grid.row.count {
            // SAFETY: the caller vouches for every block.
            unsafe {
                match N {
                    0 => d.run(memory, len),
                    _ => d.block::<N>(memory),
                }
            }
            memory = memory.wrapping_offset(grid.row.stride as isize);
            d = d.ahead(grid.row.packed_stride);
            under_way += 1;
            if under_way == group {
                D::settle();
                under_way = 0;
            }
        }
        first = first.wrapping_offset(grid.stride as isize);
    }
}

/// # Safety
/// As for [`Direction::run`], for every block, `len` bytes each.
#[inline(always)]
unsafe fn all_blocks<D: Direction>(d: D, grid: Grid, len: i64) {
    let n = len as usize;
    if let Some(group) = group::<D>(&grid, len) {
        // SAFETY: passed on from the caller.
        return unsafe {
            match len {
                8 => crowd::<D, 8>(d, grid, n, group),
                _ => crowd::<D, 0>(d, grid, n, group),
            }
        };
    }
    let far = grid.row.stride.unsigned_abs() >= FAR;
    // SAFETY: passed on from the caller.
    unsafe {
        match len {
            4 if far => blocks::<D, 4, true>(d, grid, n),
            8 if far => blocks::<D, 8, true>(d, grid, n),
            16 if far => blocks::<D, 16, true>(d, grid, n),
            64 if far => blocks::<D, LINE, true>(d, grid, n),
            1 => blocks::<D, 1, false>(d, grid, n),
            2 => blocks::<D, 2, false>(d, grid, n),
            4 => blocks::<D, 4, false>(d, grid, n),
            8 => blocks::<D, 8, false>(d, grid, n),
            12 => blocks::<D, 12, false>(d, grid, n),
            16 => blocks::<D, 16, false>(d, grid, n),
            24 => blocks::<D, 24, false>(d, grid, n),
            32 => blocks::<D, 32, false>(d, grid, n),
            _ => blocks::<D, 0, false>(d, grid, n),
        }
    }
}

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
