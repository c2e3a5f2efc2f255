//! Send-receive: blocking, nonblocking, and with one buffer for both (section 3.11).

use super::args::{out, recv_buf};
use super::completion::set_received;
use super::p2p::{check_recv_tag, check_tag, incoming, outgoing};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::object::comm::CommObject;
use crate::object::request::RequestObject;
use crate::registry::request::{of_both_halves, register};
use mpi_core::datatype::{RecvBuf, Scratch, SendBuf};
use mpi_core::pml::Mode;
use mpi_core::pml::Sent;
use mpi_core::request::{Req, Status};
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// A send-receive in progress: the receive, and the send unless it completed at once.
struct Exchange {
    comm: Rc<CommObject>,
    receive: Req,
    send: Option<Req>,
}

impl Exchange {
    /// Starts both; posts the receive first, so that the peer's message is not unexpected.
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
                comm.comm.engine().pml().abandon(&receive);
                return Err(e.into());
            }
        };
        Ok(Exchange {
            comm,
            receive,
            send,
        })
    }

    /// Waits for both halves.
    fn wait(self) -> Result<Status, mpi_core::Error> {
        let engine = self.comm.comm.engine();
        let received = engine.wait(&self.receive);
        let sent = self.send.as_ref().map_or(Ok(()), |send| {
            engine.wait(send)?;
            Ok(())
        });
        of_both_halves(received, sent)
    }

    /// Returns a handle for both halves.
    fn register(self) -> Result<MPI_Request, Failure> {
        register(RequestObject::Running {
            req: self.receive,
            also: self.send,
            comm: Some(self.comm),
        })
    }
}

/// Starts an exchange with two buffers.
///
/// # Safety
/// As [`send_buf`](crate::api::args::send_buf) and [`recv_buf`].
unsafe fn exchange(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
) -> Result<Exchange, Failure> {
    // SAFETY: `sendbuf` and `recvbuf` are valid by the `# Safety` contract of this function.
    unsafe {
        let (comm, outgoing) = outgoing(sendbuf, sendcount, sendtype, sendtag, comm)?;
        check_recv_tag(recvtag)?;
        let incoming = recv_buf(recvbuf, recvcount, recvtype)?;
        Exchange::start(comm, (outgoing, dest, sendtag), (incoming, source, recvtag))
    }
}

/// Starts an exchange in one buffer; the data to send are copied first.
///
/// # Safety
/// As [`recv_buf`].
unsafe fn exchange_in_place(
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
) -> Result<Exchange, Failure> {
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    let (comm, buf) = unsafe { incoming(buf, count, datatype, recvtag, comm)? };
    check_tag(sendtag)?;
    let copy = Scratch::bytes(buf.bytes())?;
    if let Some(bytes) = copy.all().contiguous() {
        buf.as_send().pack_at(0, bytes);
    }
    Exchange::start(
        comm,
        (copy.all().as_send(), dest, sendtag),
        (buf, source, recvtag),
    )
}

pub unsafe fn MPI_Sendrecv_c(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `sendbuf`, `recvbuf` and `status` are valid as the C binding of MPI_Sendrecv_c requires of its caller.
    unsafe {
        let exchange = exchange(
            sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
            recvtag, comm,
        )?;
        set_received(status, exchange.wait())
    }
}

pub unsafe fn MPI_Isendrecv_c(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `sendbuf`, `recvbuf` and `request` are valid as the C binding of MPI_Isendrecv_c requires of its caller.
    unsafe {
        let exchange = exchange(
            sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
            recvtag, comm,
        )?;
        out(request, exchange.register()?, "request")
    }
}

pub unsafe fn MPI_Sendrecv_replace_c(
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_Sendrecv_replace_c requires of its caller.
    unsafe {
        let exchange =
            exchange_in_place(buf, count, datatype, dest, sendtag, source, recvtag, comm)?;
        set_received(status, exchange.wait())
    }
}

pub unsafe fn MPI_Isendrecv_replace_c(
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_Isendrecv_replace_c requires of its caller.
    unsafe {
        let exchange =
            exchange_in_place(buf, count, datatype, dest, sendtag, source, recvtag, comm)?;
        out(request, exchange.register()?, "request")
    }
}
