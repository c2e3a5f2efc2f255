//! How many blocks a rank exchanges in a collective operation, which only the communicator knows.
#![allow(unsafe_code)]

use crate::below;
use crate::family::{Family, Kind, Word};
use std::ffi::c_int;

/// `MPI_GRAPH` and `MPI_CART` of the standard; a distributed graph is the third kind.
const CART: c_int = 211;
const GRAPH: c_int = 212;
/// `MPI_ROOT` of the standard.
const ROOT: c_int = -4;

/// The ranks that each rank of a communicator exchanges with: those of the other group where there is one.
///
/// # Safety
/// The library below is there, and the communicator is one of its handles that is not null.
pub unsafe fn all_ranks<F: Family>(comm: F::Below) -> (c_int, c_int) {
    let (mut inter, mut size) = (0, 0);
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        (below::MPI_Comm_test_inter::<F>())(comm, &mut inter);
        if inter != 0 {
            (below::MPI_Comm_remote_size::<F>())(comm, &mut size);
        } else {
            (below::MPI_Comm_size::<F>())(comm, &mut size);
        }
    }
    (size, size)
}

/// Neighbours that a rank sends to, and those it receives from.
///
/// # Safety
/// As for [`all_ranks`].
pub unsafe fn neighbours<F: Family>(comm: F::Below) -> (c_int, c_int) {
    let (mut topology, mut count) = (0, 0);
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        (below::MPI_Topo_test::<F>())(comm, &mut topology);
        match F::standard(Word::Topology, topology) {
            CART => {
                (below::MPI_Cartdim_get::<F>())(comm, &mut count);
                (2 * count, 2 * count)
            }
            GRAPH => {
                let mut rank = 0;
                (below::MPI_Comm_rank::<F>())(comm, &mut rank);
                (below::MPI_Graph_neighbors_count::<F>())(comm, rank, &mut count);
                (count, count)
            }
            _ => {
                let (mut from, mut to, mut weighted) = (0, 0, 0);
                (below::MPI_Dist_graph_neighbors_count::<F>())(
                    comm,
                    &mut from,
                    &mut to,
                    &mut weighted,
                );
                (to, from)
            }
        }
    }
}

/// Whether a communicator can be asked for its size without a call that fails.
pub fn known<F: Family>(comm: F::Below) -> bool {
    comm != F::null(Kind::Comm) && !F::is_none(comm)
}

/// The ranks of a communicator's own group.
///
/// # Safety
/// As for [`all_ranks`].
pub unsafe fn members<F: Family>(comm: F::Below) -> c_int {
    let mut size = 0;
    if known::<F>(comm) {
        // SAFETY: a communicator of the library below.
        unsafe { (below::MPI_Comm_size::<F>())(comm, &mut size) };
    }
    size
}

/// Whether this rank is the one whose arrays count; `root` is a rank of the library below.
///
/// # Safety
/// As for [`all_ranks`].
pub unsafe fn is_root<F: Family>(comm: F::Below, root: c_int) -> bool {
    let (mut inter, mut rank) = (0, -1);
    // SAFETY: a communicator of the library below.
    unsafe {
        (below::MPI_Comm_test_inter::<F>())(comm, &mut inter);
        if inter != 0 {
            return F::standard(Word::Rank, root) == ROOT;
        }
        (below::MPI_Comm_rank::<F>())(comm, &mut rank);
    }
    rank == root
}
