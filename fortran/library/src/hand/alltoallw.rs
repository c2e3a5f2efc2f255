//! The alltoallw family: arrays of datatypes whose length the communicator knows.
#![allow(unsafe_code)]
// The procedures have the arguments of the standard.
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

/// The number of ranks to which each rank of a communicator sends.
unsafe fn ranks<C: Calls>(comm: Ptr) -> usize {
    let (mut is_inter, mut size) = (0i32, 0i32);
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

/// The number of neighbors that send, and of those that receive.
unsafe fn neighbors<C: Calls>(comm: Ptr) -> (usize, usize) {
    let (mut of, mut receive, mut send, mut weighted) = (0i32, 0i32, 0i32, 0i32);
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

/// Keeps an array for as long as the process lives, once for each content: operations in progress refer to it.
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

/// The datatypes for C.
unsafe fn types(numbers: *const i32, count: usize) -> Vec<Ptr> {
    unsafe { Many::<handle::Datatype>::input(numbers, count).into_vec() }
}

macro_rules! blocking {
    ($($name:ident $c:ident $int:ty, $displacement:ty, $lengths:ident;)*) => {
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
            ) -> i32 {
                unsafe {
                    let comm = input::<handle::Comm>(comm);
                    let (receive, send) = $lengths::<C>(comm);
                    let sendbuf = cells::buffer(sendbuf);
                    let sends = sendbuf as usize != IN_PLACE;
                    let sendtypes = if sends { types(sendtypes, send) } else { Vec::new() };
                    let recvtypes = types(recvtypes, receive);
                    C::$c(
                        sendbuf,
                        if sends { sendcounts.cast() } else { null_mut() },
                        if sends { sdispls.cast() } else { null_mut() },
                        if sends { sendtypes.as_ptr() as Ptr } else { null_mut() },
                        cells::buffer(recvbuf),
                        recvcounts.cast(),
                        rdispls.cast(),
                        recvtypes.as_ptr() as Ptr,
                        comm,
                    )
                }
            }
        )*
    };
}

/// Ranks that receive and that send, for the collectives of a whole communicator.
unsafe fn both<C: Calls>(comm: Ptr) -> (usize, usize) {
    let ranks = unsafe { ranks::<C>(comm) };
    (ranks, ranks)
}

blocking! {
    alltoallw MPI_Alltoallw i32, i32, both;
    alltoallw_c MPI_Alltoallw_c i64, i64, both;
    neighbor_alltoallw MPI_Neighbor_alltoallw i32, i64, neighbors;
    neighbor_alltoallw_c MPI_Neighbor_alltoallw_c i64, i64, neighbors;
}

macro_rules! nonblocking {
    ($($name:ident $c:ident $int:ty, $displacement:ty, $lengths:ident $(, $info:ident)?;)*) => {
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
                request: *mut i32,
            ) -> i32 {
                unsafe {
                    let comm = input::<handle::Comm>(comm);
                    let (receive, send) = $lengths::<C>(comm);
                    let sendbuf = cells::buffer(sendbuf);
                    let sends = sendbuf as usize != IN_PLACE;
                    let mut made: Ptr = null_mut();
                    let outcome = C::$c(
                        sendbuf,
                        if sends { sendcounts.cast() } else { null_mut() },
                        if sends { sdispls.cast() } else { null_mut() },
                        if sends { kept(types(sendtypes, send)) } else { null_mut() },
                        cells::buffer(recvbuf),
                        recvcounts.cast(),
                        rdispls.cast(),
                        kept(types(recvtypes, receive)),
                        comm,
                        $(input::<handle::Info>($info),)?
                        (&raw mut made).cast(),
                    );
                    output::<handle::Request>(request, made);
                    outcome
                }
            }
        )*
    };
}

nonblocking! {
    ialltoallw MPI_Ialltoallw i32, i32, both;
    ialltoallw_c MPI_Ialltoallw_c i64, i64, both;
    ineighbor_alltoallw MPI_Ineighbor_alltoallw i32, i64, neighbors;
    ineighbor_alltoallw_c MPI_Ineighbor_alltoallw_c i64, i64, neighbors;
    alltoallw_init MPI_Alltoallw_init i32, i32, both, info;
    alltoallw_init_c MPI_Alltoallw_init_c i64, i64, both, info;
    neighbor_alltoallw_init MPI_Neighbor_alltoallw_init i32, i64, neighbors, info;
    neighbor_alltoallw_init_c MPI_Neighbor_alltoallw_init_c i64, i64, neighbors, info;
}
