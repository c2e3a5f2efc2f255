//! Fallbacks for attaching, detaching and flushing the buffers of communicators and sessions.
//!
//! [`crate::foreign_below::emulated_requests::buffers`] emulates the buffers.

use super::Foreign;
use crate::backend::{self, slot};
use crate::foreign_below::emulated_requests::buffers::{self, Owner};
use crate::foreign_below::emulated_requests::{Children, make};
use crate::foreign_below::interposed::put;
use crate::foreign_below::refusal::{fail, fail_at_self};
use crate::foreign_below::standard::class;
use std::ffi::{c_int, c_void};

/// Raises an error on `MPI_COMM_SELF`: the backend has no error handler for this session.
unsafe fn fail_of_session<F: Foreign>(_session: F::Below, class: c_int) -> c_int {
    // SAFETY: MPI is initialized, since the session exists.
    unsafe { fail_at_self::<F>(class) }
}

/// Defines the functions for buffers of one owner type. `$fail` raises the errors of the functions.
macro_rules! functions {
    ($($owner:ident $fail:ident:
        $attach:ident<F: Foreign> $detach:ident<F: Foreign>
        $flush:ident<F: Foreign> $iflush:ident<F: Foreign>;)*) => { $(
        pub unsafe extern "C-unwind" fn $attach<F: Foreign>(
            object: F::Below,
            buffer: *mut c_void,
            size: c_int,
        ) -> c_int {
            let owner = Owner::$owner(F::request_number(object));
            match buffers::attach::<F>(owner, buffer, size.into()) {
                Ok(()) => 0,
                // SAFETY: the object is an argument of the program, valid by the standard.
                Err(class) => unsafe { $fail::<F>(object, class) },
            }
        }

        pub unsafe extern "C-unwind" fn $detach<F: Foreign>(
            object: F::Below,
            address: *mut c_void,
            size: *mut c_int,
        ) -> c_int {
            let owner = Owner::$owner(F::request_number(object));
            // SAFETY: the output arguments are the program's, valid by the standard.
            unsafe {
                let Some((known, bytes)) = buffers::detach::<F>(owner) else {
                    return $fail::<F>(object, class::BUFFER);
                };
                address.cast::<*mut c_void>().write_unaligned(known);
                size.write(c_int::try_from(bytes).unwrap_or(c_int::MAX));
            }
            0
        }

        pub unsafe extern "C-unwind" fn $flush<F: Foreign>(object: F::Below) -> c_int {
            // SAFETY: the object is an argument of the program, valid by the standard.
            // So MPI is initialized.
            unsafe { buffers::flush::<F>(Owner::$owner(F::request_number(object))) };
            0
        }

        pub unsafe extern "C-unwind" fn $iflush<F: Foreign>(
            object: F::Below,
            request: *mut F::Below,
        ) -> c_int {
            let owner = Owner::$owner(F::request_number(object));
            // SAFETY: this is an output argument of the program, valid by the standard.
            unsafe { request.write(buffers::flush_request::<F>(owner)) };
            0
        }
    )* };
}

functions! {
    Comm fail:
        MPI_Comm_attach_buffer<F: Foreign> MPI_Comm_detach_buffer<F: Foreign>
        MPI_Comm_flush_buffer<F: Foreign> MPI_Comm_iflush_buffer<F: Foreign>;
    Session fail_of_session:
        MPI_Session_attach_buffer<F: Foreign> MPI_Session_detach_buffer<F: Foreign>
        MPI_Session_flush_buffer<F: Foreign> MPI_Session_iflush_buffer<F: Foreign>;
}

/// Flushes the process's buffer, which may be emulated.
/// The backend's buffer is detached, which waits for the buffer's messages, and attached again.
pub unsafe extern "C-unwind" fn MPI_Buffer_flush<F: Foreign>() -> c_int {
    let (mut buffer, mut size): (*mut c_void, c_int) = (std::ptr::null_mut(), 0);
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if buffers::has_process_buffer::<F>() {
            buffers::flush::<F>(Owner::Process);
            return 0;
        }
        let code = (backend::MPI_Buffer_detach::<F>())((&raw mut buffer).cast(), &raw mut size);
        match code {
            0 => (backend::MPI_Buffer_attach::<F>())(buffer, size),
            code => code,
        }
    }
}

pub unsafe extern "C-unwind" fn MPI_Buffer_iflush<F: Foreign>(request: *mut F::Below) -> c_int {
    // SAFETY: this is an output argument of the program, valid by the standard.
    // The program calls this function only in initialized MPI.
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

/// Routes buffered sends with large counts through those with `int` counts, which are interposed.
/// The backend's own functions with large counts are replaced, too.
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
