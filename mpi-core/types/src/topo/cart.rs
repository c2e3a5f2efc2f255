//! Cartesian topologies: a grid of processes in row-major order.
//! Each dimension is open or periodic (section 8.5).

use super::TopoError;

/// A grid of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cart {
    dims: Vec<u32>,
    periods: Vec<bool>,
}

impl Cart {
    /// Creates a grid with these extents. A grid without dimensions has one process.
    pub fn new(dims: &[i64], periods: Vec<bool>) -> Result<Cart, TopoError> {
        let dims = dims
            .iter()
            .enumerate()
            .map(|(at, &extent)| {
                let positive = u32::try_from(extent).ok().filter(|extent| *extent > 0);
                positive.ok_or(TopoError::Dimension { at, extent })
            })
            .collect::<Result<_, _>>()?;
        Ok(Cart { dims, periods })
    }

    /// Returns the extent of each dimension. Ranks are row-major:
    /// the last dimension changes fastest (MPI 5.0, section 8.5.1).
    pub fn dims(&self) -> &[u32] {
        &self.dims
    }

    /// Returns for each dimension true if it is periodic.
    pub fn periods(&self) -> &[bool] {
        &self.periods
    }

    /// Returns the number of processes. It saturates at 2^64 - 1, far above any communicator size.
    pub fn size(&self) -> u64 {
        self.dims
            .iter()
            .fold(1, |size: u64, extent| size.saturating_mul((*extent).into()))
    }

    /// Returns an error if the grid has more processes than the communicator.
    pub fn fit(self, size: u32) -> Result<Cart, TopoError> {
        let needed = self.size();
        if needed > size.into() {
            return Err(TopoError::TooFew { needed, size });
        }
        Ok(self)
    }

    /// Returns the coordinates of a rank.
    pub fn coords(&self, rank: i64) -> Result<Vec<u32>, TopoError> {
        let size = self.size() as u32;
        let mut rest = u32::try_from(rank)
            .ok()
            .filter(|rank| *rank < size)
            .ok_or(TopoError::Rank { rank, size })?;
        let mut coords = vec![0; self.dims.len()];
        for (coord, extent) in coords.iter_mut().zip(&self.dims).rev() {
            *coord = rest % extent;
            rest /= extent;
        }
        Ok(coords)
    }

    /// Returns the rank at these coordinates. Coordinates wrap around in periodic dimensions.
    pub fn rank(&self, coords: &[i64]) -> Result<u32, TopoError> {
        let mut rank = 0;
        for (at, (&extent, &periodic)) in self.dims.iter().zip(&self.periods).enumerate() {
            let coordinate = coords.get(at).copied().unwrap_or(0);
            let wrapped = coordinate.rem_euclid(extent.into());
            if wrapped != coordinate && !periodic {
                return Err(TopoError::Coordinate {
                    at,
                    coordinate,
                    extent,
                });
            }
            rank = rank * extent + wrapped as u32;
        }
        Ok(rank)
    }

    /// Returns source and destination of a shift along a dimension.
    /// A rank beyond an open end is `None`.
    pub fn shift(
        &self,
        rank: u32,
        direction: i64,
        displacement: i64,
    ) -> Result<(Option<u32>, Option<u32>), TopoError> {
        let at = usize::try_from(direction)
            .ok()
            .filter(|at| *at < self.dims.len())
            .ok_or(TopoError::Direction {
                direction,
                dimensions: self.dims.len(),
            })?;
        let here: Vec<i64> = self
            .coords(rank.into())?
            .into_iter()
            .map(i64::from)
            .collect();
        let neighbour = |by: i64| {
            let mut there = here.clone();
            there[at] += by;
            self.rank(&there).ok()
        };
        Ok((neighbour(-displacement), neighbour(displacement)))
    }

    /// Returns the subgrid that contains a rank and has the dimensions in `keep`.
    /// The result is the index of the subgrid, the rank in the subgrid, and the subgrid itself.
    pub fn sub(&self, rank: u32, keep: &[bool]) -> Result<(u32, u32, Cart), TopoError> {
        let coords = self.coords(rank.into())?;
        let (mut which, mut inside) = (0, 0);
        let mut kept = Cart {
            dims: Vec::new(),
            periods: Vec::new(),
        };
        for (at, keep) in keep.iter().enumerate().take(self.dims.len()) {
            if *keep {
                inside = inside * self.dims[at] + coords[at];
                kept.dims.push(self.dims[at]);
                kept.periods.push(self.periods[at]);
            } else {
                which = which * self.dims[at] + coords[at];
            }
        }
        Ok((which, inside, kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cart() -> impl Strategy<Value = Cart> {
        prop::collection::vec((1..5i64, any::<bool>()), 0..4).prop_map(|dims| {
            let (dims, periods): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
            Cart::new(&dims, periods).expect("positive extents")
        })
    }

    proptest! {
        #[test]
        fn ranks_and_coordinates_name_each_other(cart in cart()) {
            for rank in 0..cart.size() as u32 {
                let coords = cart.coords(rank.into()).expect("inside");
                let coords: Vec<i64> = coords.into_iter().map(i64::from).collect();
                prop_assert_eq!(cart.rank(&coords), Ok(rank));
            }
        }

        #[test]
        fn the_destination_of_a_shift_has_this_rank_as_its_source(cart in cart(), by in -7..7i64) {
            for direction in 0..cart.dims().len() as i64 {
                for rank in 0..cart.size() as u32 {
                    let (_, to) = cart.shift(rank, direction, by).expect("a shift");
                    if let Some(to) = to {
                        prop_assert_eq!(cart.shift(to, direction, by).expect("a shift").0, Some(rank));
                    }
                }
            }
        }

        #[test]
        fn subgrids_share_the_processes_out(cart in cart(), keep in prop::collection::vec(any::<bool>(), 4)) {
            let keep = &keep[..cart.dims().len()];
            let mut seen = std::collections::HashSet::new();
            for rank in 0..cart.size() as u32 {
                let (which, inside, sub) = cart.sub(rank, keep).expect("inside");
                prop_assert!(u64::from(inside) < sub.size());
                prop_assert!(seen.insert((which, inside)));
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(
            Cart::new(&[2, 0], vec![false; 2]),
            Err(TopoError::Dimension { at: 1, extent: 0 })
        );
        let cart = Cart::new(&[3, 2], vec![false, true]).expect("a grid");
        assert_eq!(cart.rank(&[2, -1]), Ok(5));
        let said = cart.rank(&[3, 0]).expect_err("beyond the end").to_string();
        assert_eq!(
            said,
            "coordinate 0 is 3, and dimension 0 goes from 0 to 2 and does not wrap around"
        );
        let said = cart.fit(5).expect_err("too large").to_string();
        assert_eq!(
            said,
            "the topology has 6 processes, and the communicator only 5"
        );
    }
}
