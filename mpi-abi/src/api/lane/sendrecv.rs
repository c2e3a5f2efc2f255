//! Send-receive calls in lanes.

use super::p2p::{data, land, memory, start, with_twin};
use crate::abi::*;
use crate::api::args::{Out, RecvMem, SendMem};
use crate::api::completion::set_received;
use crate::api::p2p::{check_recv_tag, check_tag};
use crate::error::{Failure, Outcome};
use crate::lanes::{self, Address, Object, Pending, Twin};
use crate::registry::request::of_both_halves;
use mpi_core::datatype::RecvBytes;
use mpi_core::pml::{Mode, Sent};
use mpi_core::request::Req;
use std::borrow::Cow;
use std::ffi::c_int;

/// The peers and tags of a send-receive.
#[derive(Clone, Copy)]
struct Peers {
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
}

impl Peers {
    /// Starts the receive first, then the send: the peer's message then finds a posted receive.
    fn start(
        self,
        twin: &Twin,
        data: &[u8],
        bytes: RecvBytes,
    ) -> Result<(Req, Option<Req>), Failure> {
        twin.check_dest(self.dest)?;
        let receive = twin.irecv(bytes, self.source, self.recvtag)?;
        match twin.isend(data, self.dest, self.sendtag, Mode::Standard) {
            Ok(Sent::Done) => Ok((receive, None)),
            Ok(Sent::Pending(send)) => Ok((receive, Some(send))),
            Err(failure) => {
                twin.engine().pml().termination().abandon(&receive);
                Err(failure)
            }
        }
    }
}

/// Checks the tags, and runs `f` with the lane of a communicator; `None` if the call belongs to lane 0.
fn in_lane(
    comm: MPI_Comm,
    (dest, sendtag): (c_int, c_int),
    (source, recvtag): (c_int, c_int),
    f: impl FnOnce(Address, Peers) -> Outcome,
) -> Option<Outcome> {
    lanes::of_comm(comm).map(|at| {
        check_tag(sendtag)?;
        check_recv_tag(recvtag)?;
        let peers = Peers {
            dest,
            sendtag,
            source,
            recvtag,
        };
        f(at, peers)
    })
}

/// Returns a copy of the data in a buffer that is also the receive buffer.
fn copied(buf: RecvMem) -> Result<Vec<u8>, Failure> {
    Ok(data(buf.sent())?.into_owned())
}

/// Sends `data` and receives into `recvbuf`, and waits for both.
fn exchange(
    (call, at): (&'static str, Address),
    comm: MPI_Comm,
    peers: Peers,
    data: &[u8],
    recvbuf: RecvMem,
    status: Out<MPI_Status>,
) -> Outcome {
    let (bytes, landing) = memory(recvbuf)?;
    let received = with_twin(at, comm, |_, twin| {
        let (receive, send) = peers.start(twin, data, bytes)?;
        let received = twin.wait(call, &receive);
        let sent = send.map_or(Ok(()), |send| twin.wait(call, &send).map(drop));
        Ok(of_both_halves(received, sent))
    })?;
    land(landing, &received);
    set_received(status, received)
}

/// Starts a send of `data` and a receive into `recvbuf` as one request.
fn begin(
    at: Address,
    comm: MPI_Comm,
    peers: Peers,
    data: Cow<'_, [u8]>,
    recvbuf: RecvMem,
    request: Out<MPI_Request>,
) -> Outcome {
    let (bytes, landing) = memory(recvbuf)?;
    start(at, comm, request, |contents, twin| {
        contents.check_room()?;
        let (receive, send) = peers.start(twin, &data, bytes)?;
        let pending = Pending {
            receive: Some(receive),
            send,
            data: match data {
                Cow::Owned(data) => data,
                Cow::Borrowed(_) => Vec::new(),
            },
            landing,
        };
        contents.register(Object::Once(pending, twin.clone()))
    })
}

pub fn lane_Sendrecv_c(
    sendbuf: SendMem,
    dest: c_int,
    sendtag: c_int,
    recvbuf: RecvMem,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    in_lane(comm, (dest, sendtag), (source, recvtag), |at, peers| {
        let call = ("MPI_Sendrecv", at);
        exchange(call, comm, peers, &data(sendbuf)?, recvbuf, status)
    })
}

pub fn lane_Isendrecv_c(
    sendbuf: SendMem,
    dest: c_int,
    sendtag: c_int,
    recvbuf: RecvMem,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    in_lane(comm, (dest, sendtag), (source, recvtag), |at, peers| {
        begin(at, comm, peers, data(sendbuf)?, recvbuf, request)
    })
}

pub fn lane_Sendrecv_replace_c(
    buf: RecvMem,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    in_lane(comm, (dest, sendtag), (source, recvtag), |at, peers| {
        let call = ("MPI_Sendrecv_replace", at);
        exchange(call, comm, peers, &copied(buf)?, buf, status)
    })
}

pub fn lane_Isendrecv_replace_c(
    buf: RecvMem,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    in_lane(comm, (dest, sendtag), (source, recvtag), |at, peers| {
        begin(at, comm, peers, Cow::Owned(copied(buf)?), buf, request)
    })
}
