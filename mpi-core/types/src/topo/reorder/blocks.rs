//! Reordering of a grid, if all units of each level
//! of the machine have the same number of processes:
//! each unit (a node, a package, ...) gets a box of the grid.

use super::{LEVELS, Place};
use crate::topo::Cart;

/// Returns the grid's ranks in the order of `slots`, the sorted locations of the processes.
/// Returns `None` if units differ in size or the grid cannot be divided into boxes of that size.
pub fn order(grid: &Cart, slots: &[Place]) -> Option<Vec<u32>> {
    let periods = grid.periods();
    let mut boxes = vec![grid.dims().to_vec()];
    let mut size = slots.len();
    for level in 0..LEVELS {
        let mut parts = slots
            .chunk_by(|a, b| a[..=level] == b[..=level])
            .map(<[_]>::len);
        let part = parts.next()?;
        if !parts.all(|other| other == part) {
            return None;
        }
        if part < size {
            let whole = boxes.last()?.clone();
            // Only the outermost boxes can be neighbours across the grid's periodic ends.
            // Inside a box no dimension is periodic.
            let round = boxes.len() == 1;
            boxes.push(best_box(&whole, |at| round && periods[at], part as u32)?);
            size = part;
        }
    }
    let mut ranks: Vec<u32> = (0..slots.len() as u32).collect();
    let mut failed = false;
    ranks.sort_by_cached_key(|rank| match grid.coords((*rank).into()) {
        Ok(coords) => which_boxes(&coords, &boxes),
        Err(_) => {
            failed = true;
            Vec::new()
        }
    });
    (!failed).then_some(ranks)
}

/// Returns for each size of boxes, from the largest on,
/// the indices of the box that contains the coordinates.
fn which_boxes(coords: &[u32], boxes: &[Vec<u32>]) -> Vec<u32> {
    let inner = boxes.iter().skip(1);
    inner
        .zip(boxes)
        .flat_map(|(inner, outer)| {
            let dimensions = coords.iter().zip(inner).zip(outer);
            dimensions.map(|((at, inner), outer)| at % outer / inner)
        })
        .collect()
}

/// Returns the box of `size` vertices for which the division
/// of a grid into such boxes cuts the fewest edges.
fn best_box(grid: &[u32], round: impl Fn(usize) -> bool, size: u32) -> Option<Vec<u32>> {
    let all: u64 = grid.iter().map(|d| u64::from(*d)).product();
    let cut = |inner: &[u32]| -> u64 {
        let dimensions = inner.iter().zip(grid).enumerate();
        dimensions
            .map(|(at, (inner, extent))| {
                let walls = match extent / inner {
                    1 => 0,
                    parts => parts - 1 + u32::from(round(at)),
                };
                u64::from(walls) * (all / u64::from(*extent))
            })
            .sum()
    };
    let mut boxes = Vec::new();
    fill(grid, size, &mut Vec::new(), &mut boxes);
    boxes.into_iter().min_by_key(|inner| cut(inner))
}

/// Collects all boxes of `size` vertices whose extents divide the extents of the grid.
fn fill(grid: &[u32], size: u32, so_far: &mut Vec<u32>, boxes: &mut Vec<Vec<u32>>) {
    let Some((extent, rest)) = grid.split_first() else {
        if size == 1 {
            boxes.push(so_far.clone());
        }
        return;
    };
    let divides = |d: &u32| extent.is_multiple_of(*d) && size.is_multiple_of(*d);
    for inner in (1..=(*extent).min(size)).filter(divides) {
        so_far.push(inner);
        fill(rest, size / inner, so_far, boxes);
        so_far.pop();
    }
}
