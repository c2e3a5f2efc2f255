//! Collective operations whose blocks have datatypes of their own (`alltoallw`), over everybody and over neighbours.
//!
//! How long the arrays are is known from the communicator alone. The library below reads the arrays before it returns, also in
//! nonblocking and persistent forms, so that converted ones need not outlive the call.

use crate::convert::{Array, code_out, handles_in};
use crate::family::{Family, IN_PLACE, Kind};
use crate::standard;
use std::ffi::{c_int, c_void};

/// `MPI_GRAPH` and `MPI_CART` of the standard; a distributed graph is the third kind.
const CART: c_int = 211;
const GRAPH: c_int = 212;

/// The ranks that each rank of a communicator exchanges with: those of the other group where there is one.
unsafe fn everybody(comm: usize) -> (c_int, c_int) {
    let (mut inter, mut size) = (0, 0);
    unsafe {
        (standard::MPI_Comm_test_inter())(comm, &mut inter);
        if inter != 0 {
            (standard::MPI_Comm_remote_size())(comm, &mut size);
        } else {
            (standard::MPI_Comm_size())(comm, &mut size);
        }
    }
    (size, size)
}

/// Neighbours that a rank sends to, and those it receives from.
unsafe fn neighbours(comm: usize) -> (c_int, c_int) {
    let (mut topology, mut count) = (0, 0);
    unsafe {
        (standard::MPI_Topo_test())(comm, &mut topology);
        match topology {
            CART => {
                (standard::MPI_Cartdim_get())(comm, &mut count);
                (2 * count, 2 * count)
            }
            GRAPH => {
                let mut rank = 0;
                (standard::MPI_Comm_rank())(comm, &mut rank);
                (standard::MPI_Graph_neighbors_count())(comm, rank, &mut count);
                (count, count)
            }
            _ => {
                let (mut from, mut to, mut weighted) = (0, 0, 0);
                (standard::MPI_Dist_graph_neighbors_count())(
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
fn known(comm: usize) -> bool {
    comm != Kind::Comm.null() && comm != crate::family::NO_HANDLE
}

/// The datatypes of both sides; none on the sending side of what is done in place.
unsafe fn types<F: Family>(
    comm: usize,
    lengths: unsafe fn(usize) -> (c_int, c_int),
    sendbuf: *const c_void,
    sendtypes: *const F::Handle,
    recvtypes: *const F::Handle,
) -> (Array<usize>, Array<usize>) {
    let (send, receive) = match known(comm) {
        true => unsafe { lengths(comm) },
        false => (0, 0),
    };
    let send = if sendbuf.addr() == IN_PLACE { 0 } else { send };
    unsafe {
        (
            handles_in::<F>(Kind::Datatype, sendtypes, send),
            handles_in::<F>(Kind::Datatype, recvtypes, receive),
        )
    }
}

macro_rules! blocks {
    ($name:ident<F: Family>, $count:ty, $displacement:ty, $lengths:ident $(, info $info:ident)? $(, request $request:ident)?) => {
        pub unsafe fn $name<F: Family>(
            sendbuf: *const c_void,
            sendcounts: *const $count,
            sdispls: *const $displacement,
            sendtypes: *const F::Handle,
            recvbuf: *mut c_void,
            recvcounts: *const $count,
            rdispls: *const $displacement,
            recvtypes: *const F::Handle,
            comm: F::Handle,
            $($info: F::Handle,)?
            $($request: *mut F::Handle,)?
        ) -> c_int {
            unsafe {
                let comm = F::handle_in(Kind::Comm, comm);
                let sendbuf = F::buffer_in(sendbuf.cast_mut()).cast_const();
                let (sendtypes, recvtypes) =
                    types::<F>(comm, $lengths, sendbuf, sendtypes, recvtypes);
                $(let mut made = (Kind::Request.null(), $request);)?
                let code = (standard::$name())(
                    sendbuf,
                    sendcounts,
                    sdispls,
                    sendtypes.argument(),
                    F::buffer_in(recvbuf),
                    recvcounts,
                    rdispls,
                    recvtypes.argument(),
                    comm,
                    $(F::handle_in(Kind::Info, $info),)?
                    $(if $request.is_null() { std::ptr::null_mut() } else { &raw mut made.0 },)?
                );
                $(if !$request.is_null() { made.1.write(F::handle_out(Kind::Request, made.0)); })?
                code_out::<F>(code)
            }
        }
    };
}

blocks!(MPI_Alltoallw<F: Family>, c_int, c_int, everybody);
blocks!(MPI_Alltoallw_c<F: Family>, i64, isize, everybody);
blocks!(MPI_Ialltoallw<F: Family>, c_int, c_int, everybody, request request);
blocks!(MPI_Ialltoallw_c<F: Family>, i64, isize, everybody, request request);
blocks!(MPI_Alltoallw_init<F: Family>, c_int, c_int, everybody, info info, request request);
blocks!(MPI_Alltoallw_init_c<F: Family>, i64, isize, everybody, info info, request request);
blocks!(MPI_Neighbor_alltoallw<F: Family>, c_int, isize, neighbours);
blocks!(MPI_Neighbor_alltoallw_c<F: Family>, i64, isize, neighbours);
blocks!(MPI_Ineighbor_alltoallw<F: Family>, c_int, isize, neighbours, request request);
blocks!(MPI_Ineighbor_alltoallw_c<F: Family>, i64, isize, neighbours, request request);
blocks!(MPI_Neighbor_alltoallw_init<F: Family>, c_int, isize, neighbours, info info, request request);
blocks!(MPI_Neighbor_alltoallw_init_c<F: Family>, i64, isize, neighbours, info info, request request);
