//! The loops of the pairs of predefined operators and datatypes that the program has used.
//!
//! A pair is found in one load, so reductions that alternate between pairs need no search.
//! A search for a pair executes code on eight pages, which took 2 us in the first reduction with a pair.
//! So the pairs that most programs use are searched in `MPI_Init` ([`COMMON`]).
//!
//! A handle of a predefined object always refers to the same object, so an entry never becomes invalid.

use crate::abi::*;
use mpi_core::op::DenseOp;
use std::cell::Cell;

/// Number of places; a pair has one place, and a later pair with the same place replaces it.
const PLACES: usize = 64;

/// The pairs of operator and datatype that most programs use; no two of them have the same place.
pub const COMMON: [(MPI_Op, MPI_Datatype); 12] = {
    let ops = [MPI_SUM, MPI_MIN, MPI_MAX];
    let datatypes = [MPI_INT, MPI_LONG, MPI_FLOAT, MPI_DOUBLE];
    let mut all = [(MPI_SUM, MPI_INT); 12];
    let mut at = 0;
    while at < all.len() {
        all[at] = (ops[at % 3], datatypes[at / 3]);
        at += 1;
    }
    all
};

/// A pair and its loop.
#[derive(Clone, Copy)]
struct Known {
    op: MPI_Op,
    datatype: MPI_Datatype,
    dense: DenseOp,
}

pub(crate) struct KnownOps([Cell<Option<Known>>; PLACES]);

impl KnownOps {
    pub(super) const fn new() -> KnownOps {
        KnownOps([const { Cell::new(None) }; PLACES])
    }

    /// Returns the loop of a pair, if its place has it.
    #[inline(always)]
    pub fn get(&self, op: MPI_Op, datatype: MPI_Datatype) -> Option<DenseOp> {
        let known = self.0[place(op, datatype)].get()?;
        (known.op == op && known.datatype == datatype).then_some(known.dense)
    }

    /// Stores the loop of a pair.
    pub fn put(&self, op: MPI_Op, datatype: MPI_Datatype, dense: DenseOp) {
        let known = Known {
            op,
            datatype,
            dense,
        };
        self.0[place(op, datatype)].set(Some(known));
    }
}

/// Returns a pair's place: the standard's handles of operators and of datatypes differ in their low bits.
#[inline(always)]
fn place(op: MPI_Op, datatype: MPI_Datatype) -> usize {
    (datatype.0 ^ op.0 << 4) % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_core::datatype::{Datatype, Named};
    use mpi_core::op::Predefined;

    #[test]
    fn common_pairs_have_different_places() {
        let mut places = COMMON.map(|(op, datatype)| place(op, datatype));
        places.sort_unstable();
        assert!(places.windows(2).all(|two| two[0] != two[1]), "{places:?}");
    }

    #[test]
    fn a_pair_with_the_same_place_replaces_the_earlier_one() {
        let known = KnownOps::new();
        let dense = |of: Named| DenseOp::new(&Predefined::Sum.into(), &Datatype::from(of)).unwrap();
        let other = MPI_Datatype(MPI_INT.0 + 64);
        known.put(MPI_SUM, MPI_INT, dense(Named::INT));
        assert!(known.get(MPI_SUM, MPI_INT).is_some());
        assert!(known.get(MPI_MIN, MPI_INT).is_none());
        assert!(known.get(MPI_SUM, other).is_none());
        known.put(MPI_SUM, other, dense(Named::DOUBLE));
        assert!(known.get(MPI_SUM, MPI_INT).is_none());
        assert!(known.get(MPI_SUM, other).is_some());
    }
}
