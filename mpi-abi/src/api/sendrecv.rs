//! Send-receive calls: blocking, nonblocking, and in place (section 3.11).

use super::args::{Out, RecvMem, SendMem};
use super::completion::{landed, set_received};
use super::p2p::{check_recv_tag, check_tag, outgoing_message};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::object::comm::CommObject;
use crate::object::request::RequestObject;
use crate::registry::request::{of_both_halves, register};
use crate::state;
use mpi_core::datatype::{RecvBuf, Scratch, SendBuf};
use mpi_core::pml::Mode;
use mpi_core::pml::Sent;
use mpi_core::request::{Req, Status};
use std::ffi::c_int;
use std::rc::Rc;

/// A send-receive in progress: the receive, and the send if it did not complete immediately.
struct Exchange {
    comm: Rc<CommObject>,
    receive: Req,
    send: Option<Req>,
}

impl Exchange {
    /// Starts the receive first, then the send: the peer's message then finds a posted receive.
    fn start(
        comm: Rc<CommObject>,
        (outgoing, dest, sendtag): (SendBuf, c_int, c_int),
        (incoming, source, recvtag): (RecvBuf, c_int, c_int),
    ) -> Result<Exchange, Failure> {
        let receive = comm.comm.p2p().irecv(incoming, source, recvtag)?;
        let send = match comm
            .comm
            .p2p()
            .isend(outgoing, dest, sendtag, Mode::Standard)
        {
            Ok(Sent::Done) => None,
            Ok(Sent::Pending(req)) => Some(req),
            Err(e) => {
                comm.comm.engine().pml().termination().abandon(&receive);
                return Err(e.into());
            }
        };
        Ok(Exchange {
            comm,
            receive,
            send,
        })
    }

    /// Waits for the send and the receive.
    fn wait(self) -> Result<Status, mpi_core::Error> {
        let engine = self.comm.comm.engine();
        let received = engine.wait(&self.receive);
        let sent = self.send.as_ref().map_or(Ok(()), |send| {
            engine.wait(send)?;
            Ok(())
        });
        of_both_halves(received, sent)
    }

    /// Registers one request handle for the send and the receive.
    fn register(self) -> Result<MPI_Request, Failure> {
        register(RequestObject::Running {
            req: self.receive,
            also: self.send,
            comm: Some(self.comm),
        })
    }
}

/// Starts a send-receive with separate buffers.
fn exchange(
    sendbuf: SendMem,
    dest: c_int,
    sendtag: c_int,
    recvbuf: RecvMem,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
) -> Result<Exchange, Failure> {
    let (comm, outgoing) = outgoing_message(sendbuf, sendtag, comm)?;
    check_recv_tag(recvtag)?;
    let incoming = recvbuf.message_buffer()?;
    Exchange::start(comm, (outgoing, dest, sendtag), (incoming, source, recvtag))
}

/// Carries out a send-receive of short data of predefined types without requests.
/// Returns `None` without effect if the message cannot be sent without waiting, or if a rank, tag, count or datatype is wrong.
#[inline]
fn exchange_at_once(
    (sendbuf, dest, sendtag): (SendMem, c_int, c_int),
    (recvbuf, source, recvtag): (RecvMem, c_int, c_int),
    comm: &CommObject,
) -> Option<Result<Status, mpi_core::Error>> {
    let (outgoing, incoming) = (sendbuf.plain()?, recvbuf.plain()?);
    if sendtag < 0 || check_recv_tag(recvtag).is_err() {
        return None;
    }
    let (outgoing, incoming) = ((outgoing, dest, sendtag), (incoming, source, recvtag));
    comm.comm.p2p().try_exchange(outgoing, incoming)
}

/// Starts a send-receive in one buffer, after copying the data to send.
fn exchange_in_place(
    buf: RecvMem,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
) -> Result<Exchange, Failure> {
    let comm = state::comm(comm)?;
    check_recv_tag(recvtag)?;
    let buf = buf.buffer()?;
    check_tag(sendtag)?;
    let copy = Scratch::packed(buf.bytes())?;
    if let Some(bytes) = copy.all().contiguous() {
        buf.as_send().pack_at(0, bytes);
    }
    Exchange::start(
        comm,
        (copy.all().as_send(), dest, sendtag),
        (buf, source, recvtag),
    )
}

pub fn MPI_Sendrecv_c(
    sendbuf: SendMem,
    dest: c_int,
    sendtag: c_int,
    recvbuf: RecvMem,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: Out<MPI_Status>,
) -> Outcome {
    if let Some(received) = exchange_at_once(
        (sendbuf, dest, sendtag),
        (recvbuf, source, recvtag),
        &*state::comm(comm)?,
    ) {
        return set_received(status, received);
    }
    let exchange = exchange(sendbuf, dest, sendtag, recvbuf, source, recvtag, comm)?;
    set_received(status, landed(exchange.wait()))
}

pub fn MPI_Isendrecv_c(
    sendbuf: SendMem,
    dest: c_int,
    sendtag: c_int,
    recvbuf: RecvMem,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    let exchange = exchange(sendbuf, dest, sendtag, recvbuf, source, recvtag, comm)?;
    request.set(exchange.register()?, "request")
}

pub fn MPI_Sendrecv_replace_c(
    buf: RecvMem,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: Out<MPI_Status>,
) -> Outcome {
    let exchange = exchange_in_place(buf, dest, sendtag, source, recvtag, comm)?;
    set_received(status, exchange.wait())
}

pub fn MPI_Isendrecv_replace_c(
    buf: RecvMem,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    let exchange = exchange_in_place(buf, dest, sendtag, source, recvtag, comm)?;
    request.set(exchange.register()?, "request")
}
