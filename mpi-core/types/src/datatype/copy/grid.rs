//! Copy loops for rows and grids of blocks at a constant stride. Blocks are prefetched if they are
//! far apart, and moved in small groups if they map to the same few cache sets.

use super::direction::Direction;

/// A row of blocks. The blocks have one stride in memory and one in the packed bytes.
#[derive(Clone, Copy)]
pub struct Row {
    pub memory: *mut u8,
    pub stride: i64,
    pub packed_stride: usize,
    pub count: i64,
}

/// The minimum stride, in bytes, at which the hardware does not prefetch, in particular for writes.
/// If doubles are 1 KiB apart (a column of a matrix),
/// prefetching [`AHEAD`] blocks ahead makes unpacking a quarter faster.
const FAR: u64 = 512;
const AHEAD: isize = 16;

/// The size of a cache line in bytes. A block of this length mostly spans two lines,
/// and the packed bytes of such blocks are often in another core's cache.
const LINE: usize = 64;
/// The prefetch distance for blocks of one line, in blocks.
const SOON: i64 = 32;
/// Minimum data size in bytes at which the blocks in memory are prefetched, too.
/// A larger amount is not in the second-level cache.
/// Prefetching made a copy of 4 MiB up to a sixth faster,
/// but one of 64 KiB (in the cache) a sixth slower.
const COLD: i64 = 512 << 10;

/// Rows at a constant stride in memory, consecutive in the packed bytes.
#[derive(Clone, Copy)]
pub struct Grid {
    pub row: Row,
    pub stride: i64,
    pub count: i64,
    /// The number of packed bytes of the whole copy; this grid may be only a part of the copy.
    pub total: i64,
}

/// # Safety
/// All bytes of every block must be valid for [`Direction::run`]; `len` is `N` unless `N` is 0.
#[inline(always)]
unsafe fn blocks<D: Direction, const N: usize, const FAR: bool>(mut d: D, grid: Grid, len: usize) {
    let Row {
        stride,
        packed_stride,
        count,
        ..
    } = grid.row;
    let stride = stride as isize;
    // SAFETY: every block of the grid is valid for `Direction::run` by this function's contract.
    let one = |d: D, memory: *mut u8| unsafe {
        match N {
            0 => d.run(memory, len),
            _ => d.block::<N>(memory),
        }
    };
    let mut first = grid.row.memory;
    for _ in 0..grid.count {
        let mut memory = first;
        // Unrolled by four if a block needs only one or two moves, to reduce the loop overhead.
        let fours = if N == 0 { 0 } else { count / 4 };
        for _ in 0..fours {
            for i in 0..4 {
                let block = memory.wrapping_offset((i as isize).wrapping_mul(stride));
                if FAR {
                    D::expect(block.wrapping_offset(stride.wrapping_mul(AHEAD)));
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

/// Moves blocks of [`LINE`] bytes with a large stride.
/// The packed bytes are prefetched, because they are in another core's cache.
///
/// # Safety
/// The contract of `blocks`.
#[inline(always)]
unsafe fn lines<D: Direction>(mut d: D, grid: Grid) {
    let stride = grid.row.stride as isize;
    let cold = grid.total > COLD;
    let mut left = grid.row.count.saturating_mul(grid.count);
    let mut first = grid.row.memory;
    for _ in 0..grid.count {
        let mut memory = first;
        for _ in 0..grid.row.count {
            if cold {
                let later = memory.wrapping_offset(stride.wrapping_mul(SOON as isize));
                D::expect(later);
                D::expect(later.wrapping_add(LINE - 1));
            }
            // Nothing is prefetched beyond the last line, where another core may be writing.
            if left > SOON {
                d.ahead(SOON as usize * grid.row.packed_stride)
                    .expect_packed();
            }
            // SAFETY: every block of the grid is valid for `Direction::run` by this function's contract.
            unsafe { d.block::<LINE>(memory) };
            memory = memory.wrapping_offset(stride);
            d = d.ahead(grid.row.packed_stride);
            left -= 1;
        }
        first = first.wrapping_offset(grid.stride as isize);
    }
}

/// The number of sets of the first-level cache and its minimum number of ways,
/// for all processors with 4 KiB pages.
const SETS: u32 = 64;
const WAYS: i64 = 8;
/// The maximum length in bytes of blocks that are moved in groups. Longer blocks fill the queue of
/// outstanding accesses before they exceed the ways of a set.
const NARROW: i64 = 128;
/// The maximum number of blocks that are assumed to be in the second-level cache.
/// More blocks are prefetched before their group is moved.
/// The limit is below the number of lines of that cache: with that number of blocks, only some
/// executions found all blocks in the cache, and the others
/// were half as fast (a message of 8,192 doubles took 45 or 100 us).
const CACHED: i64 = 4096;
/// The prefetch distance, in blocks, for more than [`CACHED`] blocks.
const EARLY: isize = 24;

/// The parameters for moving a crowd: many blocks that map to the same few sets of the first-level
/// cache and evict each other.
struct Crowd {
    /// The number of blocks that are moved between two waits.
    group: i64,
    /// True if blocks are prefetched.
    early: bool,
}

/// Returns the parameters for moving the blocks of a grid as a crowd.
/// Returns `None` if the blocks are few, long, or map to many sets.
///
/// Blocks whose stride is a multiple of a large power of two, such as a column of a matrix with
/// long rows, map to the same few sets of the first-level cache.
/// The processor requests the lines of about a hundred stores at a time. If a set has twelve ways,
/// these lines evict each other before they are written.
/// Times in ns per double, for doubles 4 KiB apart that were sent back and forth between two
/// processes (Zen 5). "Wait": the loop waits after every 8 doubles;
/// "and prefetch": it also prefetches.
///
/// | doubles | packed in a plain loop | wait after every 8 | and prefetch | unpacked in a plain loop | wait after every 8 | and prefetch |
/// |---|---|---|---|---|---|---|
/// | 128 | 1.8 | 2.0 | 2.3 | 6.8 | 3.8 | 4.4 |
/// | 2,048 | 6.5 | 3.3 | 4.2 | 8.2 | 4.7 | 4.7 |
/// | 8,192 | 8.9 | 4.5 | 5.3 | 7.3 | 4.1 | 4.1 |
/// | 16,384 | 9.0 | 11.6 | 6.4 | 9.1 | 9.4 | 6.0 |
/// | 32,768 | 9.8 | 15.2 | 8.0 | 11.5 | 14.3 | 8.4 |
///
/// A plain loop is fastest for reading blocks that map to several sets and are not in the cache
/// (1 KiB apart: 3.1 ns per double, against 4.3 ns in groups).
fn crowd_of<D: Direction>(grid: &Grid, len: i64) -> Option<Crowd> {
    let lines = (grid.row.stride.trailing_zeros()).checked_sub(LINE.ilog2())?;
    let sets = SETS >> lines.min(SETS.ilog2());
    if sets > 4 || len > NARROW {
        return None;
    }
    let group = i64::from(sets) * WAYS;
    let many = grid.row.count.saturating_mul(grid.count) >= D::many_groups(grid.row.stride) * group;
    let early = many && grid.total / len > CACHED;
    (many && (!early || sets == 1 || D::WRITES)).then_some(Crowd { group, early })
}

/// Moves blocks that map to the same few cache sets, with at most one group in flight.
///
/// # Safety
/// The contract of `blocks`.
#[inline(always)]
unsafe fn copy_crowd<D: Direction, const N: usize>(mut d: D, grid: Grid, len: usize, crowd: Crowd) {
    let stride = grid.row.stride as isize;
    let mut first = grid.row.memory;
    let mut under_way = 0;
    for _ in 0..grid.count {
        let mut memory = first;
        for _ in 0..grid.row.count {
            if crowd.early {
                D::expect(memory.wrapping_offset(stride.wrapping_mul(EARLY)));
            }
            // SAFETY: every block of the grid is valid for `Direction::run` by this function's contract.
            unsafe {
                match N {
                    0 => d.run(memory, len),
                    _ => d.block::<N>(memory),
                }
            }
            memory = memory.wrapping_offset(stride);
            d = d.ahead(grid.row.packed_stride);
            under_way += 1;
            if under_way == crowd.group {
                D::settle();
                under_way = 0;
            }
        }
        first = first.wrapping_offset(grid.stride as isize);
    }
}

/// # Safety
/// All `len` bytes of every block must be valid for [`Direction::run`].
#[inline(never)]
pub unsafe fn all_blocks<D: Direction>(d: D, grid: Grid, len: i64) {
    let n = len as usize;
    if let Some(crowd) = crowd_of::<D>(&grid, len) {
        // SAFETY: this function's contract covers every block of the grid.
        // `N` is 8 only for blocks of 8 bytes.
        return unsafe {
            match len {
                8 => copy_crowd::<D, 8>(d, grid, n, crowd),
                _ => copy_crowd::<D, 0>(d, grid, n, crowd),
            }
        };
    }
    let far = grid.row.stride.unsigned_abs() >= FAR;
    // SAFETY: this function's contract covers every block of the grid.
    // `N` equals the length of the blocks.
    unsafe {
        match len {
            4 if far => blocks::<D, 4, true>(d, grid, n),
            8 if far => blocks::<D, 8, true>(d, grid, n),
            16 if far => blocks::<D, 16, true>(d, grid, n),
            1 => blocks::<D, 1, false>(d, grid, n),
            2 => blocks::<D, 2, false>(d, grid, n),
            4 => blocks::<D, 4, false>(d, grid, n),
            8 => blocks::<D, 8, false>(d, grid, n),
            12 => blocks::<D, 12, false>(d, grid, n),
            16 => blocks::<D, 16, false>(d, grid, n),
            24 => blocks::<D, 24, false>(d, grid, n),
            _ => {
                #[cfg(target_arch = "x86_64")]
                if std::arch::is_x86_feature_detected!("avx2") {
                    return any_blocks_wide(d, grid, n);
                }
                any_blocks(d, grid, n);
            }
        }
    }
}

/// [`any_blocks`] compiled with AVX2.
///
/// # Safety
/// The contract of [`all_blocks`], on a processor that has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn any_blocks_wide<D: Direction>(d: D, grid: Grid, len: usize) {
    // SAFETY: this function's contract covers every block of the grid.
    unsafe { any_blocks(d, grid, len) }
}

/// # Safety
/// The contract of [`all_blocks`].
#[inline(always)]
unsafe fn any_blocks<D: Direction>(d: D, grid: Grid, len: usize) {
    let far = grid.row.stride.unsigned_abs() >= FAR;
    // SAFETY: this function's contract covers every block of the grid.
    // `N` equals the length of the blocks.
    unsafe {
        match len {
            LINE if far => lines(d, grid),
            32 => blocks::<D, 32, false>(d, grid, len),
            _ => blocks::<D, 0, false>(d, grid, len),
        }
    }
}
