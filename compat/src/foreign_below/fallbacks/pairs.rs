//! Fallbacks for nonblocking send-receive: a send and a receive with one emulated request.

use super::Foreign;
use crate::backend;
use crate::family::Kind;
use crate::foreign_below::emulated_requests::packed::{self, Packed};
use crate::foreign_below::emulated_requests::{Children, make};
use std::any::Any;
use std::ffi::{c_int, c_void};

/// The arguments of the send or the receive: buffer, count, datatype, other rank, tag.
struct Side<F: Foreign>(*mut c_void, c_int, F::Below, c_int, c_int);

/// Starts the send and the receive. The emulated request has the status of the receive.
unsafe fn both<F: Foreign>(
    send: &Side<F>,
    receive: &Side<F>,
    comm: F::Below,
    kept: Option<Box<dyn Any + Send>>,
    request: *mut F::Below,
) -> c_int {
    let mut parts = [F::null(Kind::Request); 2];
    let [receiving, sending] = &mut parts;
    let Side(buffer, count, datatype, source, tag) = receive;
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let code =
            (backend::MPI_Irecv::<F>())(*buffer, *count, *datatype, *source, *tag, comm, receiving);
        if code != 0 {
            return code;
        }
        let Side(buffer, count, datatype, dest, tag) = send;
        let code =
            (backend::MPI_Isend::<F>())(*buffer, *count, *datatype, *dest, *tag, comm, sending);
        if code != 0 {
            // The send was not started, so the receive is cancelled.
            // If the receive has already matched a message, it completes normally.
            (backend::MPI_Cancel::<F>())(receiving);
            (backend::MPI_Request_free::<F>())(receiving);
            return code;
        }
        request.write(make::<F>(Box::new(Children::<F>::new(
            parts.to_vec(),
            0,
            kept,
        ))));
    }
    0
}

pub unsafe extern "C-unwind" fn MPI_Isendrecv<F: Foreign>(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: F::Below,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: c_int,
    recvtype: F::Below,
    source: c_int,
    recvtag: c_int,
    comm: F::Below,
    request: *mut F::Below,
) -> c_int {
    let send = Side::<F>(sendbuf.cast_mut(), sendcount, sendtype, dest, sendtag);
    let receive = Side::<F>(recvbuf, recvcount, recvtype, source, recvtag);
    // SAFETY: the buffers and `request` are the program's arguments, valid by the standard.
    unsafe { both::<F>(&send, &receive, comm, None, request) }
}

/// Packs the outgoing data before the receive, because the incoming data overwrite the buffer.
pub unsafe extern "C-unwind" fn MPI_Isendrecv_replace<F: Foreign>(
    buf: *mut c_void,
    count: c_int,
    datatype: F::Below,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: F::Below,
    request: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let size = match packed::size::<F>(count, datatype, comm) {
            Ok(size) => size,
            Err(code) => return code,
        };
        let mut packed = match Packed::new::<F>(buf, count, datatype, size, comm) {
            Ok(packed) => packed,
            Err(code) => return code,
        };
        let send = Side::<F>(
            packed.place(),
            packed.length(),
            Packed::datatype::<F>(),
            dest,
            sendtag,
        );
        let receive = Side::<F>(buf, count, datatype, source, recvtag);
        both::<F>(&send, &receive, comm, Some(Box::new(packed)), request)
    }
}
