//! Number of blocks that a rank exchanges in a collective operation, derived from the communicator.
#![allow(unsafe_code)]

use crate::backend;
use crate::family::{Family, Kind, Word};
use std::ffi::c_int;

/// `MPI_GRAPH` and `MPI_CART` of the standard; the third topology is a distributed graph.
const CART: c_int = 211;
const GRAPH: c_int = 212;
/// `MPI_ROOT` of the standard.
const ROOT: c_int = -4;

/// Returns the number of ranks that each rank sends to and receives from: the size of the remote group of an intercommunicator, or else of the group.
///
/// # Safety
/// The backend is open, and `comm` is a valid handle of it that is not null.
pub unsafe fn all_ranks<F: Family>(comm: F::Below) -> (c_int, c_int) {
    let (mut inter, mut size) = (0, 0);
    // SAFETY: `comm` is a valid handle of the backend (contract of this function), and the output arguments are locals.
    unsafe {
        (backend::MPI_Comm_test_inter::<F>())(comm, &mut inter);
        if inter != 0 {
            (backend::MPI_Comm_remote_size::<F>())(comm, &mut size);
        } else {
            (backend::MPI_Comm_size::<F>())(comm, &mut size);
        }
    }
    (size, size)
}

/// Returns the number of neighbours that a rank sends to, and that it receives from.
///
/// # Safety
/// As for [`all_ranks`].
pub unsafe fn neighbours<F: Family>(comm: F::Below) -> (c_int, c_int) {
    let (mut topology, mut count) = (0, 0);
    // SAFETY: `comm` is a valid handle of the backend (contract of this function), and the output arguments are locals.
    unsafe {
        (backend::MPI_Topo_test::<F>())(comm, &mut topology);
        match F::standard(Word::Topology, topology) {
            CART => {
                (backend::MPI_Cartdim_get::<F>())(comm, &mut count);
                (2 * count, 2 * count)
            }
            GRAPH => {
                let mut rank = 0;
                (backend::MPI_Comm_rank::<F>())(comm, &mut rank);
                (backend::MPI_Graph_neighbors_count::<F>())(comm, rank, &mut count);
                (count, count)
            }
            _ => {
                let (mut from, mut to, mut weighted) = (0, 0, 0);
                (backend::MPI_Dist_graph_neighbors_count::<F>())(
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

/// Returns true if the size of a communicator can be queried without an error.
pub fn known<F: Family>(comm: F::Below) -> bool {
    comm != F::null(Kind::Comm) && !F::is_none(comm)
}

/// Returns the size of a communicator's local group.
///
/// # Safety
/// As for [`all_ranks`].
pub unsafe fn members<F: Family>(comm: F::Below) -> c_int {
    let mut size = 0;
    if known::<F>(comm) {
        // SAFETY: `comm` is neither null nor invalid (checked by `known`), and `size` is a local.
        unsafe { (backend::MPI_Comm_size::<F>())(comm, &mut size) };
    }
    size
}

/// Returns true if this rank is the root, whose arrays are significant; `root` is a constant or rank of the backend.
///
/// # Safety
/// As for [`all_ranks`].
pub unsafe fn is_root<F: Family>(comm: F::Below, root: c_int) -> bool {
    let (mut inter, mut rank) = (0, -1);
    // SAFETY: `comm` is a valid handle of the backend (contract of this function), and the output arguments are locals.
    unsafe {
        (backend::MPI_Comm_test_inter::<F>())(comm, &mut inter);
        if inter != 0 {
            return F::standard(Word::Rank, root) == ROOT;
        }
        (backend::MPI_Comm_rank::<F>())(comm, &mut rank);
    }
    rank == root
}
