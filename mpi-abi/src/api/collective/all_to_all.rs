//! All-to-all operations: data go to every member (sections 6.7 and 6.8).

use super::blocks::{blocks, received_blocks, sent_blocks, typed_blocks};
use super::{Plan, Planned};
use crate::abi::*;
use crate::api::args::{IntoI64, recv_buf};
use crate::state;
use mpi_core::coll::Call;
use std::ffi::c_void;

pub unsafe fn plan_Allgather(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Allgather requires of its caller.
    let (send, recv) = unsafe {
        (
            comm.sent(sendbuf, sendcount, sendtype)?,
            recv_buf(recvbuf, recvcount.wide(), recvtype)?,
        )
    };
    let call = Call::Allgather { send, recv };
    Plan::of(comm, call)
}

pub unsafe fn plan_Allgatherv(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl IntoI64,
    displs: *const impl IntoI64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    // SAFETY: `sendbuf`, `recvbuf`, `recvcounts` and `displs` are valid as the C binding of MPI_Allgatherv requires of its caller.
    let (send, recv) = unsafe {
        let recv = received_blocks(
            recvbuf,
            blocks(comm.blocks(), recvcounts, displs, recvtype)?,
        )?;
        (comm.sent(sendbuf, sendcount, sendtype)?, recv)
    };
    let call = Call::Allgatherv { send, recv };
    Plan::of(comm, call)
}

pub unsafe fn plan_Alltoall(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Alltoall requires of its caller.
    let (send, recv) = unsafe {
        (
            comm.sent(sendbuf, sendcount, sendtype)?,
            recv_buf(recvbuf, recvcount.wide(), recvtype)?,
        )
    };
    let call = Call::Alltoall { send, recv };
    Plan::of(comm, call)
}

pub unsafe fn plan_Alltoallv(
    sendbuf: *const c_void,
    sendcounts: *const impl IntoI64,
    sdispls: *const impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl IntoI64,
    rdispls: *const impl IntoI64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let n = comm.blocks();
    // SAFETY: `sendbuf`, `sendcounts`, `sdispls`, `recvbuf`, `recvcounts` and `rdispls` are valid as the C binding of MPI_Alltoallv requires of its caller.
    let (send, recv) = unsafe {
        let send = match comm.in_place(sendbuf)? {
            true => None,
            false => Some(sent_blocks(
                sendbuf,
                blocks(n, sendcounts, sdispls, sendtype)?,
            )?),
        };
        (
            send,
            received_blocks(recvbuf, blocks(n, recvcounts, rdispls, recvtype)?)?,
        )
    };
    let call = Call::Alltoallv { send, recv };
    Plan::of(comm, call)
}

pub unsafe fn plan_Alltoallw(
    sendbuf: *const c_void,
    sendcounts: *const impl IntoI64,
    sdispls: *const impl IntoI64,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl IntoI64,
    rdispls: *const impl IntoI64,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let n = comm.blocks();
    // SAFETY: `sendbuf`, `sendcounts`, `sdispls`, `sendtypes`, `recvbuf`, `recvcounts`, `rdispls` and `recvtypes` are valid as the C binding of MPI_Alltoallw requires of its caller.
    let (send, recv) = unsafe {
        let send = match comm.in_place(sendbuf)? {
            true => None,
            false => Some(sent_blocks(
                sendbuf,
                typed_blocks(n, sendcounts, sdispls, sendtypes)?,
            )?),
        };
        (
            send,
            received_blocks(recvbuf, typed_blocks(n, recvcounts, rdispls, recvtypes)?)?,
        )
    };
    let call = Call::Alltoallw { send, recv };
    Plan::of(comm, call)
}
