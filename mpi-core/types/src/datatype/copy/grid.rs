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
/// How many lines before its turn one is asked for.
const SOON: i64 = 32;
/// More data than that are not in the second-level cache, and blocks of a line are asked for too: 4 MiB of them took up to a sixth less for it,
/// while 64 KiB, which are there, took a sixth longer.
const COLD: i64 = 512 << 10;

/// Rows at equal distances in memory, one after another in the packed bytes.
#[derive(Clone, Copy)]
pub struct Grid {
    pub row: Row,
    pub stride: i64,
    pub count: i64,
    /// The packed bytes of all data, of which this may be a part.
    pub total: i64,
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

/// Blocks of a [`LINE`] that are far apart: the packed lines are asked for ahead, as another core has them.
///
/// # Safety
/// As for [`Direction::run`], for every block.
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
            // What is behind the last line may be what the other core is writing.
            if left > SOON {
                d.ahead(SOON as usize * grid.row.packed_stride)
                    .expect_packed();
            }
            // SAFETY: the caller vouches for every block.
            unsafe { d.block::<LINE>(memory) };
            memory = memory.wrapping_offset(stride);
            d = d.ahead(grid.row.packed_stride);
            left -= 1;
        }
        first = first.wrapping_offset(grid.stride as isize);
    }
}

/// Sets of the first-level cache, and lines that each of them holds at least, on all processors with pages of 4 KiB.
const SETS: u32 = 64;
const WAYS: i64 = 8;
/// Blocks that are longer fill the queue of what is under way before they are too many for a set.
const NARROW: i64 = 128;
/// More blocks are not always in the second-level cache; what comes from further away has to be asked for before its group's turn.
/// As many as that cache has lines for are sometimes all in it and sometimes not, and twice as slow then: 8,192 doubles as a message took 45 or 100 us.
const CACHED: i64 = 4096;
/// How many blocks before its turn one is asked for then.
const EARLY: isize = 24;

/// Blocks that share a few sets of the first-level cache, and how to move them.
struct Crowd {
    /// How many of them may be under way at once.
    group: i64,
    /// Whether they are asked for before.
    early: bool,
}

/// How blocks of a grid are moved if they are many and few of them may be under way at once.
///
/// Blocks whose distance is a multiple of a power of two, as in the column of a matrix with so long rows, share a few sets of the first-level cache.
/// The processor asks for the lines of a hundred stores at once, and where a set has room for twelve they push each other out before they are written:
/// doubles 4 KiB apart that went to and fro between two processes (Zen 5), ns each
///
/// | doubles | packed in a plain loop | waiting for every 8 | and asking before | unpacked in a plain loop | waiting for every 8 | and asking before |
/// |---|---|---|---|---|---|---|
/// | 128 | 1.8 | 2.0 | 2.3 | 6.8 | 3.8 | 4.4 |
/// | 2,048 | 6.5 | 3.3 | 4.2 | 8.2 | 4.7 | 4.7 |
/// | 8,192 | 8.9 | 4.5 | 5.3 | 7.3 | 4.1 | 4.1 |
/// | 16,384 | 9.0 | 11.6 | 6.4 | 9.1 | 9.4 | 6.0 |
/// | 32,768 | 9.8 | 15.2 | 8.0 | 11.5 | 14.3 | 8.4 |
///
/// Where they share several sets and are not in the cache, a plain loop reads them sooner than any other (1 KiB apart 3.1 and 4.3).
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

/// Blocks that share a few sets of the first-level cache, never more under way than a group.
///
/// # Safety
/// As for [`Direction::run`], for every block; `len` is `N` unless `N` is 0.
#[inline(always)]
unsafe fn crowd<D: Direction, const N: usize>(mut d: D, grid: Grid, len: usize, how: Crowd) {
    let stride = grid.row.stride as isize;
    let mut first = grid.row.memory;
    let mut under_way = 0;
    for _ in 0..grid.count {
        let mut memory = first;
        for _ in 0..grid.row.count {
            if how.early {
                D::expect(memory.wrapping_offset(stride.wrapping_mul(EARLY)));
            }
            // SAFETY: the caller vouches for every block.
            unsafe {
                match N {
                    0 => d.run(memory, len),
                    _ => d.block::<N>(memory),
                }
            }
            memory = memory.wrapping_offset(stride);
            d = d.ahead(grid.row.packed_stride);
            under_way += 1;
            if under_way == how.group {
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
    if let Some(how) = crowd_of::<D>(&grid, len) {
        // SAFETY: passed on from the caller.
        return unsafe {
            match len {
                8 => crowd::<D, 8>(d, grid, n, how),
                _ => crowd::<D, 0>(d, grid, n, how),
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
            LINE if far => lines(d, grid),
            32 => blocks::<D, 32, false>(d, grid, len),
            _ => blocks::<D, 0, false>(d, grid, len),
        }
    }
}
