//! Dividing processes among dimensions (section 8.5.2).

use crate::abi::*;
use crate::api::args::{length, slice_mut};
use crate::error::{Failure, Outcome};
use std::ffi::c_int;

pub unsafe fn MPI_Dims_create(nnodes: c_int, ndims: c_int, dims: *mut c_int) -> Outcome {
    let ndims = length(ndims, "ndims")?;
    // SAFETY: an array of the caller with `ndims` elements.
    let dims = unsafe { slice_mut(dims, ndims, "dims")? };
    let mut left = u32::try_from(nnodes)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| {
            Failure::new(
                MPI_ERR_ARG,
                format!("nnodes is {nnodes}, which is not positive"),
            )
        })?;
    for dim in dims.iter().filter(|d| **d != 0) {
        left = u32::try_from(*dim)
            .ok()
            .filter(|d| left % d == 0)
            .map(|d| left / d)
            .ok_or_else(|| {
                Failure::new(
                    MPI_ERR_DIMS,
                    format!("{nnodes} processes cannot be divided by the {dim} of dims"),
                )
            })?;
    }
    let free = dims.iter().filter(|d| **d == 0).count();
    if free == 0 && left != 1 {
        return Err(Failure::new(
            MPI_ERR_DIMS,
            format!("the product of dims is not the {nnodes} processes"),
        ));
    }
    let balanced = balanced(left, free);
    for (dim, factor) in dims.iter_mut().filter(|d| **d == 0).zip(balanced) {
        *dim = factor as c_int;
    }
    Ok(())
}

/// `k` factors of `n`, the largest first and as close to each other as can be.
fn balanced(n: u32, k: usize) -> Vec<u32> {
    match k {
        0 => return Vec::new(),
        1 => return vec![n],
        _ => {}
    }
    let root = f64::from(n).powf(1.0 / k as f64);
    // The largest factor is at least the k-th root; the first divisors above it leave the closest rest.
    let from = (root - 0.5).max(1.0) as u32;
    let best = divisors(n)
        .into_iter()
        .filter(|d| *d >= from)
        .map(|d| [vec![d], balanced(n / d, k - 1)].concat())
        .filter(|f| f.is_sorted_by(|a, b| a >= b))
        .min_by_key(|f| (f[0] - f[k - 1], f[0]));
    best.unwrap_or_else(|| [vec![n], vec![1; k - 1]].concat())
}

fn divisors(n: u32) -> Vec<u32> {
    let small = (1..)
        .take_while(|d: &u32| d.saturating_mul(*d) <= n)
        .filter(|d| n.is_multiple_of(*d));
    let mut all: Vec<u32> = small.flat_map(|d| [d, n / d]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_balanced_and_the_largest_comes_first() {
        for (n, k, expected) in [
            (6, 2, vec![3, 2]),
            (60, 3, vec![5, 4, 3]),
            (64, 3, vec![4, 4, 4]),
            (7, 3, vec![7, 1, 1]),
            (1, 2, vec![1, 1]),
            (72, 3, vec![6, 4, 3]),
            (1024, 2, vec![32, 32]),
        ] {
            assert_eq!(balanced(n, k), expected);
        }
    }
}
