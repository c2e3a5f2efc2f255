//! Conversion of a datatype to other basic types,
//! for data representations (MPI 5.0, section 14.5.1).
//!
//! Displacements in elements scale with the extents of the new basic types.
//! Displacements in bytes do not change.

use super::construct::{Derived, Made};
use super::error::TypeError;
use super::named::Named;
use super::{Datatype, Repr, arrays};

/// Returns this datatype with each predefined type `t` replaced by `basic(t)`.
pub fn over<E: From<TypeError>>(
    datatype: &Datatype,
    basic: &mut dyn FnMut(Named) -> Result<Datatype, E>,
) -> Result<Datatype, E> {
    match &datatype.0 {
        Repr::Named(named) => basic(*named),
        Repr::Derived(derived) => derived.over(basic),
    }
}

impl Derived {
    fn over<E: From<TypeError>>(
        &self,
        basic: &mut dyn FnMut(Named) -> Result<Datatype, E>,
    ) -> Result<Datatype, E> {
        if let Made::Fortran(kind) = &self.made {
            return basic(kind.basic);
        }
        if let Made::Struct {
            blocklengths,
            displacements,
        } = &self.made
        {
            let types: Result<Vec<_>, E> = self.types.iter().map(|old| over(old, basic)).collect();
            return Ok(Datatype::structure(blocklengths, displacements, &types?)?);
        }
        // All other constructors have one old type.
        let Some(old) = self.types.first() else {
            return Ok(Datatype::structure(&[], &[], &[])?);
        };
        let old = &over(old, basic)?;
        Ok(match &self.made {
            Made::Dup | Made::Fortran(_) | Made::Struct { .. } => old.clone(),
            Made::Contiguous { count } => Datatype::contiguous(*count, old)?,
            Made::Vector {
                count,
                blocklength,
                stride,
            } => Datatype::vector(*count, *blocklength, *stride, old)?,
            Made::Hvector {
                count,
                blocklength,
                stride,
            } => Datatype::hvector(*count, *blocklength, *stride, old)?,
            Made::Indexed {
                blocklengths,
                displacements,
            } => Datatype::indexed(blocklengths, displacements, old)?,
            Made::Hindexed {
                blocklengths,
                displacements,
            } => Datatype::hindexed(blocklengths, displacements, old)?,
            Made::IndexedBlock {
                blocklength,
                displacements,
            } => Datatype::indexed_block(*blocklength, displacements, old)?,
            Made::HindexedBlock {
                blocklength,
                displacements,
            } => Datatype::hindexed_block(*blocklength, displacements, old)?,
            Made::Resized { lb, extent } => Datatype::resized(*lb, *extent, old)?,
            Made::Subarray {
                sizes,
                subsizes,
                starts,
                order,
            } => arrays::subarray(sizes, subsizes, starts, *order, old)?,
            Made::Darray {
                processes,
                rank,
                global,
                distributions,
                grid,
                order,
            } => arrays::darray(*processes, *rank, global, distributions, grid, *order, old)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::{Order, external_bytes};

    /// Returns the datatype with each basic type replaced by a type of four bytes.
    fn shrunk(datatype: &Datatype) -> Datatype {
        let made = over(datatype, &mut |_| {
            Datatype::contiguous(4, &Named::BYTE.into())
        });
        made.expect("a type")
    }

    /// Returns the runs of two elements, with adjacent runs merged.
    fn runs(datatype: &Datatype) -> Vec<(i64, i64)> {
        datatype.commit().expect("committed");
        let mut all: Vec<(i64, i64)> = Vec::new();
        for run in datatype.runs(2, 0..2 * datatype.size()) {
            match all.last_mut() {
                Some((at, len)) if *at + *len == run.offset => *len += run.len,
                _ => all.push((run.offset, run.len)),
            }
        }
        all
    }

    #[test]
    fn what_counts_elements_follows_their_extents_and_what_is_in_bytes_stays() {
        let long: Datatype = Named::LONG.into();
        let vector = Datatype::vector(2, 1, 3, &long).expect("a type");
        assert_eq!(runs(&vector), [(0, 8), (24, 16), (56, 8)]);
        assert_eq!(runs(&shrunk(&vector)), [(0, 4), (12, 8), (28, 4)]);
        let hvector = Datatype::hvector(2, 1, 24, &long).expect("a type");
        assert_eq!(runs(&shrunk(&hvector)), [(0, 4), (24, 8), (52, 4)]);
        let part = arrays::subarray(&[4], &[2], &[1], Order::C, &long).expect("a type");
        assert_eq!(runs(&shrunk(&part)), [(4, 8), (20, 8)]);
        let resized = Datatype::resized(0, 40, &long).expect("a type");
        assert_eq!(runs(&shrunk(&resized)), [(0, 4), (40, 4)]);
    }

    #[test]
    fn each_constructor_keeps_its_number_of_elements() {
        let long: Datatype = Named::LONG.into();
        let made = [
            Datatype::contiguous(3, &long),
            Datatype::vector(2, 2, 3, &long),
            Datatype::hvector(2, 1, 99, &long),
            Datatype::indexed(&[1, 2], &[5, 9], &long),
            Datatype::hindexed(&[2, 1], &[5, 90], &long),
            Datatype::indexed_block(2, &[1, 4], &long),
            Datatype::hindexed_block(2, &[1, 40], &long),
            Datatype::structure(&[1, 2], &[0, 16], &[Named::INT.into(), long.clone()]),
            Datatype::resized(-8, 90, &long),
            long.dup(),
        ];
        for datatype in made {
            let datatype = datatype.expect("a type");
            let elements = external_bytes(&datatype, 1) / 4;
            assert_eq!(shrunk(&datatype).size(), 4 * elements, "{datatype}");
        }
    }
}
