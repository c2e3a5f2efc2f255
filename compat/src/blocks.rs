//! Number of blocks that a rank sends and receives in a collective, from the communicator.
#![allow(unsafe_code)]

use crate::backend;
use crate::family::{Family, Kind, Word};
use std::ffi::c_int;

/// `MPI_CART` and `MPI_GRAPH` of the standard. The third topology is `MPI_DIST_GRAPH`.
const CART: c_int = 211;
const GRAPH: c_int = 212;
/// `MPI_ROOT` of the standard.
const ROOT: c_int = -4;

/// Returns the number of blocks that a rank sends, and the number that the rank receives,
/// in a collective with one block per rank.
/// Both are the size of the remote group, or on an intracommunicator the size of the group.
///
/// # Safety
/// The backend is open, and `comm` is a valid handle of the backend and not null.
pub unsafe fn all_ranks<F: Family>(comm: F::Below) -> (c_int, c_int) {
    let (mut inter, mut size) = (0, 0);
    // SAFETY: `comm` is a valid handle of the backend, by contract.
    // The outputs are local variables.
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

/// Returns the number of neighbours to which a rank sends, and the number from which it receives.
///
/// # Safety
/// The contract of [`all_ranks`] applies.
pub unsafe fn neighbours<F: Family>(comm: F::Below) -> (c_int, c_int) {
    let (mut topology, mut count) = (0, 0);
    // SAFETY: `comm` is a valid handle of the backend, by contract.
    // The outputs are local variables.
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

/// Returns true if a communicator is neither null nor invalid, so that its size can be queried.
pub fn known<F: Family>(comm: F::Below) -> bool {
    comm != F::null(Kind::Comm) && !F::is_none(comm)
}

/// Returns the size of a communicator's local group.
///
/// # Safety
/// The contract of [`all_ranks`] applies.
pub unsafe fn members<F: Family>(comm: F::Below) -> c_int {
    let mut size = 0;
    if known::<F>(comm) {
        // SAFETY: `known` has checked that `comm` is not null and not invalid.
        // `size` is a local variable.
        unsafe { (backend::MPI_Comm_size::<F>())(comm, &mut size) };
    }
    size
}

/// Returns true if this rank is the root, so that its arrays are significant.
/// `root` is a constant or a rank of the backend.
///
/// # Safety
/// The contract of [`all_ranks`] applies.
pub unsafe fn is_root<F: Family>(comm: F::Below, root: c_int) -> bool {
    let (mut inter, mut rank) = (0, -1);
    // SAFETY: `comm` is a valid handle of the backend, by contract.
    // The outputs are local variables.
    unsafe {
        (backend::MPI_Comm_test_inter::<F>())(comm, &mut inter);
        if inter != 0 {
            return F::standard(Word::Rank, root) == ROOT;
        }
        (backend::MPI_Comm_rank::<F>())(comm, &mut rank);
    }
    rank == root
}
