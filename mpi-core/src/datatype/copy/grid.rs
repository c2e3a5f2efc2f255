//! Blocks at equal distances: rows and grids of them, whose lines are asked for ahead where they are far apart,
//! and of which few are under way at once where they share a few sets of a cache.

use super::direction::Direction;

/// Blocks at equal distances in memory and in the packed bytes.
#[derive(Clone, Copy)]
pub struct Row {
    pub memory: *mut u8,
    pub stride: i64,
    pub packed_stride: usize,
    pub count: i64,
}

/// From this distance between numbers on the processor does not fetch ahead by itself, above all not for writing:
/// measured for a column of doubles 1 KiB apart, asking for the one [`AHEAD`] blocks on takes a quarter off unpacking.
const FAR: u64 = 512;
const AHEAD: isize = 16;

/// A cache line: a block of that length is mostly in two of them, and so many packed bytes are often in another core's cache.
const LINE: usize = 64;

/// Rows at equal distances in memory, one after another in the packed bytes.
#[derive(Clone, Copy)]
pub struct Grid {
    pub row: Row,
    pub stride: i64,
    pub count: i64,
    /// The packed bytes of all data, of which this may be a part.
    pub total: i64,
}

impl Grid {
    /// How much memory lies between the first and the last block of all data, if they are `len` bytes long.
    fn reach(&self, len: i64) -> i64 {
        (self.total / len.max(1)).saturating_mul(self.row.stride.saturating_abs())
    }
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
    (sets <= 4 && len <= NARROW && many && grid.reach(len) <= CACHED).then_some(group)
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
#[inline(never)]
pub unsafe fn all_blocks<D: Direction>(d: D, grid: Grid, len: i64) {
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

/// [`any_blocks`] with wide moves.
///
/// # Safety
/// As for [`all_blocks`], on a processor that has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn any_blocks_wide<D: Direction>(d: D, grid: Grid, len: usize) {
    // SAFETY: passed on from the caller.
    unsafe { any_blocks(d, grid, len) }
}

/// # Safety
/// As for [`all_blocks`].
#[inline(always)]
unsafe fn any_blocks<D: Direction>(d: D, grid: Grid, len: usize) {
    let far = grid.row.stride.unsigned_abs() >= FAR;
    // SAFETY: passed on from the caller.
    unsafe {
        match len {
            LINE if far => blocks::<D, LINE, true>(d, grid, len),
            32 => blocks::<D, 32, false>(d, grid, len),
            _ => blocks::<D, 0, false>(d, grid, len),
        }
    }
}
