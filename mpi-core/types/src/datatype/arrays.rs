//! Subarray and distributed array types, built by simpler constructors (MPI 5.0, 5.1.3 and 5.1.4).
//!
//! Both constructors add one dimension after another, beginning with the one contiguous in memory.
//! Then they shift the result to its offset in the array.
//! The extent is set to that of the array, so that consecutive elements are consecutive arrays.

use super::Datatype;
use super::construct::{Made, same_length};
use super::error::TypeError;

/// The dimension that is contiguous in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The last dimension is contiguous.
    C,
    /// The first dimension is contiguous.
    Fortran,
}

impl Order {
    /// Iterates over the dimensions, beginning with the one that is contiguous in memory.
    fn dimensions(self, n: usize) -> Box<dyn Iterator<Item = usize>> {
        match self {
            Order::C => Box::new((0..n).rev()),
            Order::Fortran => Box::new(0..n),
        }
    }
}

/// The distribution of one dimension of a distributed array.
/// An argument `None` is `MPI_DISTRIBUTE_DFLT_DARG`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distribution {
    /// The dimension is not distributed; the argument is kept only for `MPI_Type_get_contents`.
    None(Option<i64>),
    Block(Option<i64>),
    Cyclic(Option<i64>),
}

const SUBARRAY: TypeError = TypeError::Overflow {
    combiner: "subarray",
};
const DARRAY: TypeError = TypeError::Overflow { combiner: "darray" };

/// `MPI_Type_create_subarray`
pub fn subarray(
    sizes: &[i64],
    subsizes: &[i64],
    starts: &[i64],
    order: Order,
    old: &Datatype,
) -> Result<Datatype, TypeError> {
    same_length("sizes", sizes.len(), "subsizes", subsizes.len())?;
    same_length("sizes", sizes.len(), "starts", starts.len())?;
    let mut stride = old.extent();
    let mut offset = 0i64;
    let mut part = old.clone();
    for d in order.dimensions(sizes.len()) {
        within(d, "size", sizes[d], 1, i64::MAX)?;
        within(d, "subsize", subsizes[d], 1, sizes[d])?;
        within(d, "start", starts[d], 0, sizes[d] - subsizes[d])?;
        part = Datatype::hvector(subsizes[d], 1, stride, &part)?;
        offset = starts[d]
            .checked_mul(stride)
            .and_then(|at| offset.checked_add(at))
            .ok_or(SUBARRAY)?;
        stride = stride.checked_mul(sizes[d]).ok_or(SUBARRAY)?;
    }
    let lowered = in_place(&part, offset, stride)?;
    let made = Made::Subarray {
        sizes: sizes.into(),
        subsizes: subsizes.into(),
        starts: starts.into(),
        order,
    };
    Datatype::derive_array(made, old, lowered)
}

/// `MPI_Type_create_darray`. The parameter `grid` is `psizes` in the standard.
pub fn darray(
    processes: i64,
    rank: i64,
    global: &[i64],
    distributions: &[Distribution],
    grid: &[i64],
    order: Order,
    old: &Datatype,
) -> Result<Datatype, TypeError> {
    same_length("sizes", global.len(), "distributions", distributions.len())?;
    same_length("sizes", global.len(), "process counts", grid.len())?;
    let coordinates = coordinates(processes, rank, grid)?;
    let mut stride = old.extent();
    let mut offset = 0i64;
    let mut part = old.clone();
    for d in order.dimensions(global.len()) {
        within(d, "size", global[d], 1, i64::MAX)?;
        let share = Share::of(d, global[d], distributions[d], grid[d], coordinates[d])?;
        part = share.along(stride, &part)?;
        offset = share
            .first
            .checked_mul(stride)
            .and_then(|at| offset.checked_add(at))
            .ok_or(DARRAY)?;
        stride = stride.checked_mul(global[d]).ok_or(DARRAY)?;
    }
    let lowered = in_place(&part, offset, stride)?;
    let made = Made::Darray {
        processes,
        rank,
        global: global.into(),
        distributions: distributions.into(),
        grid: grid.into(),
        order,
    };
    Datatype::derive_array(made, old, lowered)
}

/// The elements of one dimension that a process owns: blocks of `block` elements,
/// whose starts are `cycle` elements apart.
struct Share {
    first: i64,
    len: i64,
    block: i64,
    cycle: i64,
}

impl Share {
    fn of(
        d: usize,
        size: i64,
        distribution: Distribution,
        processes: i64,
        coordinate: i64,
    ) -> Result<Share, TypeError> {
        match distribution {
            Distribution::None(_) => {
                within(d, "number of processes", processes, 1, 1)?;
                Ok(Share::one_block(0, size))
            }
            Distribution::Block(argument) => {
                let block = argument.unwrap_or((size - 1) / processes + 1);
                let least = (size - 1) / processes + 1;
                within(d, "block size", block, least, i64::MAX)?;
                let first = block.checked_mul(coordinate).ok_or(DARRAY)?;
                Ok(Share::one_block(first, block.min(size - first).max(0)))
            }
            Distribution::Cyclic(argument) => {
                let block = argument.unwrap_or(1);
                within(d, "block size", block, 1, i64::MAX)?;
                let cycle = block.checked_mul(processes).ok_or(DARRAY)?;
                let first = block * coordinate;
                let after = (size - first).max(0);
                let len = after / cycle * block + (after % cycle).min(block);
                Ok(Share {
                    first: if len == 0 { 0 } else { first },
                    len,
                    block,
                    cycle,
                })
            }
        }
    }

    fn one_block(first: i64, len: i64) -> Share {
        let first = if len == 0 { 0 } else { first };
        Share {
            first,
            len,
            block: len.max(1),
            cycle: len.max(1),
        }
    }

    /// Builds the type of the elements of a dimension that the process owns.
    /// An element has the type `part`, and consecutive elements are `stride` bytes apart.
    fn along(&self, stride: i64, part: &Datatype) -> Result<Datatype, TypeError> {
        let full = self.len / self.block;
        let rest = self.len % self.block;
        let cycle = stride.checked_mul(self.cycle).ok_or(DARRAY)?;
        let block = Datatype::hvector(self.block, 1, stride, part)?;
        let blocks = Datatype::hvector(full, 1, cycle, &block)?;
        if rest == 0 {
            return Ok(blocks);
        }
        let last = Datatype::hvector(rest, 1, stride, part)?;
        let at = full.checked_mul(cycle).ok_or(DARRAY)?;
        Datatype::structure(&[1, 1], &[0, at], &[blocks, last])
    }
}

/// Returns the type of a part of an array: `part`, shifted by `offset` bytes,
/// with the extent of the whole array.
fn in_place(part: &Datatype, offset: i64, extent: i64) -> Result<Datatype, TypeError> {
    Datatype::resized(0, extent, &Datatype::hindexed_block(1, &[offset], part)?)
}

/// Returns the coordinates of `rank` in the process grid, which is always in C order.
fn coordinates(processes: i64, rank: i64, grid: &[i64]) -> Result<Vec<i64>, TypeError> {
    for (d, &n) in grid.iter().enumerate() {
        within(d, "number of processes", n, 1, i64::MAX)?;
    }
    let places = grid.iter().try_fold(1i64, |all, &n| all.checked_mul(n));
    let grid_size = places.ok_or(DARRAY)?;
    if grid_size != processes {
        return Err(TypeError::Grid {
            processes,
            grid: grid_size,
        });
    }
    if !(0..processes).contains(&rank) {
        return Err(TypeError::Rank { rank, processes });
    }
    let mut rest = rank;
    let mut place: Vec<i64> = grid
        .iter()
        .rev()
        .map(|&n| {
            let at = rest % n;
            rest /= n;
            at
        })
        .collect();
    place.reverse();
    Ok(place)
}

fn within(
    dimension: usize,
    what: &'static str,
    value: i64,
    low: i64,
    high: i64,
) -> Result<(), TypeError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(TypeError::Array {
        dimension,
        what,
        value,
        limit: if value < low { low } else { high },
    })
}
