//! Partitioned communication (chapter 4).
//!
//! Several threads may mark partitions as ready concurrently; each call is short.
#![allow(unsafe_code)]

use super::args::{InArray, Out, RecvMem, SendMem, length};
use super::p2p::check_tag;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::info;
use crate::registry::request::{persistent, with_partitioned};
use crate::state;
use mpi_core::request::{Operation, Partitioned, PartitionedRecv, PartitionedSend};
use std::ffi::{c_int, c_void};

/// Checks the partitions of a message.
/// Returns the number of partitions, the elements per partition, and the total number of elements.
fn shape(partitions: c_int, count: MPI_Count) -> Result<(u32, i64, i64), Failure> {
    let number = u32::try_from(partitions).ok().filter(|n| *n > 0);
    let number = number.ok_or_else(|| {
        let sentence = format!("partitions is {partitions}, but there must be one at least");
        Failure::new(MPI_ERR_ARG, sentence)
    })?;
    let all = count.checked_mul(i64::from(number)).ok_or_else(|| {
        let sentence = format!("{partitions} partitions of {count} elements are too many");
        Failure::new(MPI_ERR_COUNT, sentence)
    })?;
    Ok((number, count, all))
}

pub unsafe fn MPI_Psend_init(
    buf: *const c_void,
    partitions: c_int,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    info: MPI_Info,
    request: *mut MPI_Request,
) -> Outcome {
    let object = state::comm(comm)?;
    check_tag(tag)?;
    info::hints(info)?;
    let (partitions, each, all) = shape(partitions, count)?;
    // SAFETY: MPI_Psend_init requires of its caller that `buf` has `all` elements.
    // MPI_Psend_init also requires that `request` is writable.
    let (buf, request) = unsafe { (SendMem::new(buf, all, datatype), Out::new(request)) };
    let buf = buf.partitions_buffer(each)?;
    let send = PartitionedSend::new(&object.comm, buf, (partitions, each), dest, tag)?;
    let operation = Operation::Partitioned(Partitioned::Send(send));
    request.set(persistent(&object, operation)?, "request")
}

pub unsafe fn MPI_Precv_init(
    buf: *mut c_void,
    partitions: c_int,
    count: MPI_Count,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    info: MPI_Info,
    request: *mut MPI_Request,
) -> Outcome {
    let object = state::comm(comm)?;
    // Wildcards are not allowed in partitioned communication (section 4.2.2).
    check_tag(tag)?;
    if source == MPI_ANY_SOURCE {
        return Err(Failure::new(
            MPI_ERR_RANK,
            "source is MPI_ANY_SOURCE, which partitioned receives do not have",
        ));
    }
    info::hints(info)?;
    let (partitions, each, all) = shape(partitions, count)?;
    // SAFETY: MPI_Precv_init requires of its caller that `buf` has `all` elements.
    // MPI_Precv_init also requires that `request` is writable.
    let (buf, request) = unsafe { (RecvMem::new(buf, all, datatype), Out::new(request)) };
    let buf = buf.message_buffer()?;
    let recv = PartitionedRecv::new(&object.comm, buf, (partitions, each), source, tag)?;
    let operation = Operation::Partitioned(Partitioned::Recv(recv, None));
    request.set(persistent(&object, operation)?, "request")
}

/// Marks partitions of a send as ready.
fn ready(partitions: impl Iterator<Item = c_int>, request: MPI_Request) -> Outcome {
    with_partitioned(request, |partitioned, staged| match partitioned {
        Partitioned::Send(send) => {
            for partition in partitions {
                if let (Some(views), Some(elements)) = (staged, send.elements(partition.into())) {
                    views.fill_elements(&elements)?;
                }
                send.ready(partition.into())?;
            }
            Ok(())
        }
        Partitioned::Recv(..) => Err(Failure::new(
            MPI_ERR_REQUEST,
            "the request is a partitioned receive, and only what is sent can be marked as ready",
        )),
    })
}

pub fn MPI_Pready(partition: c_int, request: MPI_Request) -> Outcome {
    ready(std::iter::once(partition), request)
}

pub fn MPI_Pready_range(
    partition_low: c_int,
    partition_high: c_int,
    request: MPI_Request,
) -> Outcome {
    ready(partition_low..=partition_high, request)
}

pub fn MPI_Pready_list(
    len: c_int,
    array_of_partitions: InArray<c_int>,
    request: MPI_Request,
) -> Outcome {
    length(len, "length")?;
    let list = array_of_partitions.get("array_of_partitions")?;
    ready(list.iter().copied(), request)
}

pub fn MPI_Parrived(request: MPI_Request, partition: c_int, flag: Out<c_int>) -> Outcome {
    // For MPI_REQUEST_NULL the flag is true (section 4.2.2).
    if request == MPI_REQUEST_NULL {
        return flag.set(1, "flag");
    }
    let arrived = || {
        with_partitioned(request, |partitioned, staged| match partitioned {
            Partitioned::Recv(recv, _) => {
                let is_here = recv.arrived(partition.into())?;
                let elements = recv.elements(partition.into()).filter(|_| is_here);
                if let (Some(views), Some(elements)) = (staged, elements) {
                    views.land_elements(&elements, recv.bytes())?;
                }
                Ok(is_here)
            }
            Partitioned::Send(_) => Err(Failure::new(
                MPI_ERR_REQUEST,
                "the request is a partitioned send, and only what is received can arrive",
            )),
        })
    };
    let here = arrived()? || {
        state::engine()?.poll_once();
        arrived()?
    };
    flag.set(here.into(), "flag")
}
