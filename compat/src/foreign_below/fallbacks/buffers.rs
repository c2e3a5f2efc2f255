//! Buffers of communicators and sessions, whose messages are in [`crate::foreign_below::own::buffers`].

use super::Foreign;
use crate::below::{self, slot};
use crate::foreign_below::own::buffers::{self, Owner};
use crate::foreign_below::own::{Children, fail, fail_at_self, make, put};
use std::ffi::{c_int, c_void};

/// `MPI_ERR_BUFFER` of the standard.
const BUFFER: c_int = 1;

fn comm_of<F: Foreign>(comm: F::Below) -> Owner {
    Owner::Comm(F::request_number(comm))
}

fn session_of<F: Foreign>(session: F::Below) -> Owner {
    Owner::Session(F::request_number(session))
}

unsafe fn detach<F: Foreign>(
    owner: Owner,
    address: *mut c_void,
    size: *mut c_int,
) -> Result<(), c_int> {
    // SAFETY: output arguments of the caller.
    unsafe {
        let (known, bytes) = buffers::detach::<F>(owner).ok_or(BUFFER)?;
        address.cast::<*mut c_void>().write_unaligned(known);
        size.write(c_int::try_from(bytes).unwrap_or(c_int::MAX));
    }
    Ok(())
}

pub unsafe extern "C" fn MPI_Comm_attach_buffer<F: Foreign>(
    comm: F::Below,
    buffer: *mut c_void,
    size: c_int,
) -> c_int {
    match buffers::attach::<F>(comm_of::<F>(comm), buffer, size.into()) {
        Ok(()) => 0,
        // SAFETY: a communicator of the library below.
        Err(class) => unsafe { fail::<F>(comm, class) },
    }
}

pub unsafe extern "C" fn MPI_Comm_detach_buffer<F: Foreign>(
    comm: F::Below,
    buffer: *mut c_void,
    size: *mut c_int,
) -> c_int {
    // SAFETY: passed on.
    unsafe {
        match detach::<F>(comm_of::<F>(comm), buffer, size) {
            Ok(()) => 0,
            Err(class) => fail::<F>(comm, class),
        }
    }
}

pub unsafe extern "C" fn MPI_Comm_flush_buffer<F: Foreign>(comm: F::Below) -> c_int {
    // SAFETY: passed on.
    unsafe { buffers::flush::<F>(comm_of::<F>(comm)) };
    0
}

pub unsafe extern "C" fn MPI_Comm_iflush_buffer<F: Foreign>(
    comm: F::Below,
    request: *mut F::Below,
) -> c_int {
    // SAFETY: an output argument of the caller.
    unsafe { request.write(buffers::flush_request::<F>(comm_of::<F>(comm))) };
    0
}

pub unsafe extern "C" fn MPI_Session_attach_buffer<F: Foreign>(
    session: F::Below,
    buffer: *mut c_void,
    size: c_int,
) -> c_int {
    match buffers::attach::<F>(session_of::<F>(session), buffer, size.into()) {
        Ok(()) => 0,
        // SAFETY: passed on.
        Err(class) => unsafe { fail_at_self::<F>(class) },
    }
}

pub unsafe extern "C" fn MPI_Session_detach_buffer<F: Foreign>(
    session: F::Below,
    buffer: *mut c_void,
    size: *mut c_int,
) -> c_int {
    // SAFETY: passed on.
    unsafe {
        match detach::<F>(session_of::<F>(session), buffer, size) {
            Ok(()) => 0,
            Err(class) => fail_at_self::<F>(class),
        }
    }
}

pub unsafe extern "C" fn MPI_Session_flush_buffer<F: Foreign>(session: F::Below) -> c_int {
    // SAFETY: passed on.
    unsafe { buffers::flush::<F>(session_of::<F>(session)) };
    0
}

pub unsafe extern "C" fn MPI_Session_iflush_buffer<F: Foreign>(
    session: F::Below,
    request: *mut F::Below,
) -> c_int {
    // SAFETY: an output argument of the caller.
    unsafe { request.write(buffers::flush_request::<F>(session_of::<F>(session))) };
    0
}

/// Of the library's own buffer, detaching waits until the messages are on their way.
pub unsafe extern "C" fn MPI_Buffer_flush<F: Foreign>() -> c_int {
    let (mut buffer, mut size): (*mut c_void, c_int) = (std::ptr::null_mut(), 0);
    // SAFETY: arguments of the library below, which are what the standard demands.
    unsafe {
        if buffers::has_process_buffer::<F>() {
            buffers::flush::<F>(Owner::Process);
            return 0;
        }
        let code = (below::MPI_Buffer_detach::<F>())((&raw mut buffer).cast(), &raw mut size);
        match code {
            0 => (below::MPI_Buffer_attach::<F>())(buffer, size),
            code => code,
        }
    }
}

pub unsafe extern "C" fn MPI_Buffer_iflush<F: Foreign>(request: *mut F::Below) -> c_int {
    // SAFETY: an output argument of the caller; the rest is passed on.
    unsafe {
        if buffers::has_process_buffer::<F>() {
            request.write(buffers::flush_request::<F>(Owner::Process));
            return 0;
        }
        let code = MPI_Buffer_flush::<F>();
        if code == 0 {
            request.write(make::<F>(Box::new(Children::<F>::new(Vec::new(), 0, None))));
        }
        code
    }
}

/// Buffered sends with large counts become those with small ones, also where the library has them.
pub fn narrow_buffered_sends<F: Foreign>() {
    let table = super::table::<F>();
    for id in [
        slot::MPI_Bsend_c,
        slot::MPI_Ibsend_c,
        slot::MPI_Bsend_init_c,
    ] {
        if let Some(function) = table.get(id) {
            put(id, *function);
        }
    }
}
