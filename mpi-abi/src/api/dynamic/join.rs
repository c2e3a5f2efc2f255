//! `MPI_Comm_join` (section 11.10.5): connects two processes that share a socket.
//!
//! The two processes exchange port names over the socket, each of MPI_MAX_PORT_NAME bytes.
//! The process with the lower name accepts, the other process connects.
#![allow(unsafe_code)]

use super::{or_leader_error, register};
use crate::abi::*;
use crate::api::args::Out;
use crate::error::{Failure, Outcome};
use crate::state;
use mpi_core::Engine;
use mpi_core::dynamic::PortName;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::ffi::c_int;
use std::future::poll_fn;
use std::task::Poll;

const RECORD: usize = MPI_MAX_PORT_NAME as usize;

fn failed(why: impl std::fmt::Display) -> Failure {
    Failure::new(MPI_ERR_ARG, format!("the socket of MPI_Comm_join: {why}"))
}

/// Writes this process's record (its port name) to the socket, and reads the peer's record.
/// The engine progresses during the exchange, because the peer may wait for its messages.
async fn exchange(
    engine: &Engine,
    socket: BorrowedFd<'_>,
    ours: &[u8],
) -> Result<Vec<u8>, Failure> {
    // The socket is no event source of the engine, so the engine must keep polling.
    let _awake = engine.operations().poll_always();
    let (mut written, mut theirs) = (0, Vec::new());
    poll_fn(|_| {
        while written < ours.len() {
            match send(
                socket,
                &ours[written..],
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            ) {
                Ok(more) => written += more,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Poll::Ready(Err(failed(error))),
            }
        }
        while theirs.len() < RECORD {
            let mut bytes = [0; RECORD];
            let missing = RECORD - theirs.len();
            match recv(socket, &mut bytes[..missing], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Poll::Ready(Err(failed("the other end has closed it"))),
                Ok((_, more)) => theirs.extend_from_slice(&bytes[..more]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Poll::Ready(Err(failed(error))),
            }
        }
        match written == ours.len() && theirs.len() == RECORD {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    })
    .await?;
    Ok(theirs)
}

pub fn MPI_Comm_join(fd: c_int, intercomm: Out<MPI_Comm>) -> Outcome {
    if fd < 0 {
        return Err(failed(format!("fd is {fd}")));
    }
    // SAFETY: the program keeps its socket open during the call (section 11.10.5).
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    let (engine, object) = (state::engine()?, state::comm(MPI_COMM_SELF)?);
    let ours = engine.ports().open()?;
    let mut record = ours.to_string().into_bytes();
    record.resize(RECORD, 0);
    let met = engine.block_on(async {
        let theirs = exchange(&engine, socket, &record).await?;
        let end = theirs.iter().position(|byte| *byte == 0);
        let text = String::from_utf8_lossy(&theirs[..end.unwrap_or(RECORD)]);
        let theirs = PortName::parse(&text).map_err(failed)?;
        if theirs == ours {
            return Err(failed("both ends are this call's own"));
        }
        let comm = &object.comm;
        let joined = match ours.to_string() < theirs.to_string() {
            true => {
                comm.ports()
                    .accept(0, Some(or_leader_error(Ok(ours.clone()))), MPI_ERR_PORT)
                    .await
            }
            false => {
                comm.ports()
                    .connect(0, Some(or_leader_error(Ok(theirs))), None, MPI_ERR_PORT)
                    .await
            }
        };
        Ok(joined?)
    });
    engine.ports().close(&ours);
    intercomm.set(register(met?, &object)?, "intercomm")
}
