//! Collectives with a datatype per block (`alltoallw`), among all ranks and among neighbours.
//!
//! The number of datatypes depends on the communicator.
//! The backend reads the arrays before it returns, even for nonblocking and persistent operations.
//! So converted arrays need not outlive the call.
#![allow(unsafe_code)]

use crate::convert::{Array, HandleOut, ShortArray, code_out, handles_in, of};
use crate::family::{IN_PLACE, Kind, OnStandard};
use crate::{backend, blocks};
use std::ffi::{c_int, c_void};

/// Converts the arrays of send and receive datatypes. In place, there are no send datatypes.
unsafe fn types<'a, F: OnStandard>(
    shorts: &'a mut (ShortArray<usize>, ShortArray<usize>),
    comm: usize,
    lengths: unsafe fn(usize) -> (c_int, c_int),
    sendbuf: *const c_void,
    sendtypes: *const F::Handle,
    recvtypes: *const F::Handle,
) -> (Array<'a, usize>, Array<'a, usize>) {
    let (send, receive) = match blocks::known::<F>(comm) {
        // SAFETY: the MPI standard requires that the program passes valid arguments.
        true => unsafe { lengths(comm) },
        false => (0, 0),
    };
    let send = if sendbuf.addr() == IN_PLACE { 0 } else { send };
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        (
            handles_in::<F>(&mut shorts.0, Kind::Datatype, sendtypes, send),
            handles_in::<F>(&mut shorts.1, Kind::Datatype, recvtypes, receive),
        )
    }
}

macro_rules! blocks {
    ($name:ident<F: OnStandard>, $count:ty, $displacement:ty, $lengths:ident $(, info $info:ident)? $(, request $request:ident)?) => {
        pub unsafe fn $name<F: OnStandard>(
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
            // SAFETY: the MPI standard requires that the program passes valid arguments.
            unsafe {
                let comm = F::handle_in(Kind::Comm, comm);
                let sendbuf = F::buffer_in(sendbuf.cast_mut()).cast_const();
                let mut shorts = (ShortArray::new(), ShortArray::new());
                let (sendtypes, recvtypes) =
                    types::<F>(&mut shorts, comm, blocks::$lengths::<F>, sendbuf, sendtypes, recvtypes);
                $(let mut made = HandleOut::<F, of::Request>::new($request);)?
                let code = (backend::$name::<F>())(
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
                    $({ let _ = $request; made.argument() },)?
                );
                code_out::<F>(code)
            }
        }
    };
}

blocks!(MPI_Alltoallw<F: OnStandard>, c_int, c_int, all_ranks);
blocks!(MPI_Alltoallw_c<F: OnStandard>, i64, isize, all_ranks);
blocks!(MPI_Ialltoallw<F: OnStandard>, c_int, c_int, all_ranks, request request);
blocks!(MPI_Ialltoallw_c<F: OnStandard>, i64, isize, all_ranks, request request);
blocks!(MPI_Alltoallw_init<F: OnStandard>, c_int, c_int, all_ranks, info info, request request);
blocks!(MPI_Alltoallw_init_c<F: OnStandard>, i64, isize, all_ranks, info info, request request);
blocks!(MPI_Neighbor_alltoallw<F: OnStandard>, c_int, isize, neighbours);
blocks!(MPI_Neighbor_alltoallw_c<F: OnStandard>, i64, isize, neighbours);
blocks!(MPI_Ineighbor_alltoallw<F: OnStandard>, c_int, isize, neighbours, request request);
blocks!(MPI_Ineighbor_alltoallw_c<F: OnStandard>, i64, isize, neighbours, request request);
blocks!(MPI_Neighbor_alltoallw_init<F: OnStandard>, c_int, isize, neighbours, info info, request request);
blocks!(MPI_Neighbor_alltoallw_init_c<F: OnStandard>, i64, isize, neighbours, info info, request request);
