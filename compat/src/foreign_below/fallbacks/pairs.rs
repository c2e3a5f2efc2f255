//! A send and a receive behind one request.

use super::Foreign;
use crate::below;
use crate::family::Kind;
use crate::foreign_below::own::{Children, make};
use std::any::Any;
use std::ffi::{c_int, c_void};

/// `MPI_PACKED` of the standard.
const MPI_PACKED: usize = 0x207;

/// A message, or room for one.
struct Side<F: Foreign>(*mut c_void, c_int, F::Below, c_int, c_int);

/// Both under way; the status is that of the receive.
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
    // SAFETY: arguments of the library below, which are what the standard demands.
    unsafe {
        let code =
            (below::MPI_Irecv::<F>())(*buffer, *count, *datatype, *source, *tag, comm, receiving);
        if code != 0 {
            return code;
        }
        let Side(buffer, count, datatype, dest, tag) = send;
        let code =
            (below::MPI_Isend::<F>())(*buffer, *count, *datatype, *dest, *tag, comm, sending);
        if code != 0 {
            // The receive is no longer wanted; a message that has come already has to be taken.
            (below::MPI_Cancel::<F>())(receiving);
            (below::MPI_Request_free::<F>())(receiving);
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

pub unsafe extern "C" fn MPI_Isendrecv<F: Foreign>(
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
    // SAFETY: passed on.
    unsafe { both::<F>(&send, &receive, comm, None, request) }
}

/// What is sent is packed first, since what comes takes its place.
pub unsafe extern "C" fn MPI_Isendrecv_replace<F: Foreign>(
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
    let (mut size, mut at) = (0, 0);
    // SAFETY: arguments of the library below, which are what the standard demands.
    unsafe {
        let code = (below::MPI_Pack_size::<F>())(count, datatype, comm, &raw mut size);
        if code != 0 {
            return code;
        }
        let mut packed = vec![0u8; usize::try_from(size).unwrap_or(0)];
        let place = packed.as_mut_ptr().cast::<c_void>();
        let code = (below::MPI_Pack::<F>())(buf, count, datatype, place, size, &raw mut at, comm);
        if code != 0 {
            return code;
        }
        let kind = F::handle_in(Kind::Datatype, MPI_PACKED);
        let send = Side::<F>(place, at, kind, dest, sendtag);
        let receive = Side::<F>(buf, count, datatype, source, recvtag);
        both::<F>(&send, &receive, comm, Some(Box::new(packed)), request)
    }
}
