//! The alltoallw procedures: the communicator determines the length of their datatype arrays.
#![allow(unsafe_code)]
// The standard determines the number of arguments.
#![allow(clippy::too_many_arguments)]

use crate::bodies::{Calls, Ptr};
use crate::cells;
use crate::handle::{self, Many, input, output};
use std::collections::BTreeSet;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

const IN_PLACE: usize = 1;
const GRAPH: i32 = 212;
const CART: i32 = 211;
const DIST_GRAPH: i32 = 213;

/// Returns the number of blocks of a rank in a collective: the size of `comm` or, for an
/// intercommunicator, of the remote group. Returns 0 if `comm` is invalid.
fn ranks<C: Calls>(comm: Ptr) -> usize {
    let (mut is_inter, mut size) = (0i32, 0i32);
    // SAFETY: the C library rejects an invalid handle; the results are local variables.
    unsafe {
        C::MPI_Comm_test_inter(comm, (&raw mut is_inter).cast());
        if is_inter != 0 {
            C::MPI_Comm_remote_size(comm, (&raw mut size).cast());
        } else {
            C::MPI_Comm_size(comm, (&raw mut size).cast());
        }
    }
    size.max(0) as usize
}

/// Returns the numbers of neighbours that send to this rank, and that receive from this rank.
/// Both are 0 if `comm` has no topology.
fn neighbors<C: Calls>(comm: Ptr) -> (usize, usize) {
    let (mut of, mut receive, mut send, mut weighted) = (0i32, 0i32, 0i32, 0i32);
    // SAFETY: the C library rejects an invalid handle; the results are local variables.
    unsafe {
        C::MPI_Topo_test(comm, (&raw mut of).cast());
        if of == CART {
            C::MPI_Cartdim_get(comm, (&raw mut send).cast());
            (send, receive) = (2 * send, 2 * send);
        } else if of == GRAPH {
            let mut rank = 0i32;
            C::MPI_Comm_rank(comm, (&raw mut rank).cast());
            C::MPI_Graph_neighbors_count(comm, rank, (&raw mut send).cast());
            receive = send;
        } else if of == DIST_GRAPH {
            C::MPI_Dist_graph_neighbors_count(
                comm,
                (&raw mut receive).cast(),
                (&raw mut send).cast(),
                (&raw mut weighted).cast(),
            );
        }
    }
    (receive.max(0) as usize, send.max(0) as usize)
}

/// Stores an array until the process ends, because active operations refer to it.
/// Equal arrays are stored only once.
fn kept(handles: Vec<Ptr>) -> Ptr {
    static KEPT: Mutex<BTreeSet<&'static [usize]>> = Mutex::new(BTreeSet::new());
    let numbers: Vec<usize> = handles.iter().map(|h| *h as usize).collect();
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = kept.get(numbers.as_slice()) {
        return found.as_ptr() as Ptr;
    }
    let new: &'static [usize] = Box::leak(numbers.into_boxed_slice());
    kept.insert(new);
    new.as_ptr() as Ptr
}

/// The datatypes of one buffer, as an array of C handles.
struct Types {
    at: Ptr,
    /// The memory of the array, unless an operation refers to the array after the call.
    _own: Vec<Ptr>,
}

impl Types {
    /// Converts the datatypes of `count` blocks.
    /// `stays` is true if the operation refers to the array after the call.
    ///
    /// # Safety
    /// `numbers` has `count` elements.
    unsafe fn new(numbers: *const i32, count: usize, stays: bool) -> Types {
        // SAFETY: `numbers` has `count` elements by this function's contract.
        let own = unsafe { Many::<handle::Datatype>::input(numbers, count).into_vec() };
        if stays {
            return Types {
                at: kept(own),
                _own: Vec::new(),
            };
        }
        Types {
            at: own.as_ptr() as Ptr,
            _own: own,
        }
    }

    /// Returns a null array, for datatypes that C ignores.
    fn none() -> Types {
        Types {
            at: null_mut(),
            _own: Vec::new(),
        }
    }
}

/// Defines bodies. A row has the name, the C function, the integer types of counts and
/// displacements, the function for the block counts, and the optional arguments.
macro_rules! bodies {
    ($($name:ident $c:ident $int:ty, $displacement:ty, $lengths:ident $(, $info:ident)? $(=> $request:ident)?;)*) => {
        $(
            pub unsafe fn $name<C: Calls>(
                sendbuf: Ptr,
                sendcounts: *mut $int,
                sdispls: *mut $displacement,
                sendtypes: *mut i32,
                recvbuf: Ptr,
                recvcounts: *mut $int,
                rdispls: *mut $displacement,
                recvtypes: *mut i32,
                comm: *mut i32,
                $($info: *mut i32,)?
                $($request: *mut i32,)?
            ) -> i32 {
                // SAFETY: `comm`, `info`, `request` point to INTEGERs. By the standard,
                // `sendtypes` and `recvtypes` have one element for each block that the call sends or
                // receives; `sendtypes` is unused for MPI_IN_PLACE.
                // The program keeps all other arrays until the operation has completed.
                unsafe {
                    // C uses the datatypes after the call only if the call creates a request.
                    let stays = false $(| !$request.is_null())?;
                    let comm = input::<handle::Comm>(comm);
                    let (receive, send) = $lengths::<C>(comm);
                    let sendbuf = cells::buffer(sendbuf);
                    let sends = sendbuf as usize != IN_PLACE;
                    let sendtypes = match sends {
                        true => Types::new(sendtypes, send, stays),
                        false => Types::none(),
                    };
                    let recvtypes = Types::new(recvtypes, receive, stays);
                    $(let mut made = Made::new($request);)?
                    C::$c(
                        sendbuf,
                        if sends { sendcounts.cast() } else { null_mut() },
                        if sends { sdispls.cast() } else { null_mut() },
                        sendtypes.at,
                        cells::buffer(recvbuf),
                        recvcounts.cast(),
                        rdispls.cast(),
                        recvtypes.at,
                        comm,
                        $(input::<handle::Info>($info),)?
                        $({ _ = $request; made.place() },)?
                    )
                }
            }
        )*
    };
}

/// The request that a call creates. The drop stores its handle in the Fortran variable.
struct Made {
    handle: Ptr,
    number: *mut i32,
}

impl Made {
    /// # Safety
    /// `number` points to an INTEGER that outlives this value.
    unsafe fn new(number: *mut i32) -> Made {
        Made {
            handle: null_mut(),
            number,
        }
    }

    /// Returns the address at which C stores the handle.
    fn place(&mut self) -> Ptr {
        (&raw mut self.handle).cast()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: `number` points to an INTEGER (contract of `new`); a failed call leaves null.
        unsafe { output::<handle::Request>(self.number, self.handle) }
    }
}

/// Returns the number of receive blocks and of send blocks in a collective among all ranks.
/// The two numbers are equal.
fn both<C: Calls>(comm: Ptr) -> (usize, usize) {
    let ranks = ranks::<C>(comm);
    (ranks, ranks)
}

bodies! {
    alltoallw MPI_Alltoallw i32, i32, both;
    alltoallw_c MPI_Alltoallw_c i64, i64, both;
    neighbor_alltoallw MPI_Neighbor_alltoallw i32, i64, neighbors;
    neighbor_alltoallw_c MPI_Neighbor_alltoallw_c i64, i64, neighbors;
    ialltoallw MPI_Ialltoallw i32, i32, both => request;
    ialltoallw_c MPI_Ialltoallw_c i64, i64, both => request;
    ineighbor_alltoallw MPI_Ineighbor_alltoallw i32, i64, neighbors => request;
    ineighbor_alltoallw_c MPI_Ineighbor_alltoallw_c i64, i64, neighbors => request;
    alltoallw_init MPI_Alltoallw_init i32, i32, both, info => request;
    alltoallw_init_c MPI_Alltoallw_init_c i64, i64, both, info => request;
    neighbor_alltoallw_init MPI_Neighbor_alltoallw_init i32, i64, neighbors, info => request;
    neighbor_alltoallw_init_c MPI_Neighbor_alltoallw_init_c i64, i64, neighbors, info => request;
}
