//! How the program's C streams are buffered: `mpirun --stream-buffering`.
//!
//! A program whose standard output is a pipe buffers it fully, so what it prints reaches mpirun late.
//! The C library lets a stream's buffering be changed while nothing is in its buffer; initialization flushes it first.

use mpi_base::param::{Level, Param, ParamError, Params};
use std::ffi::c_int;
use std::ptr;

/// What `mpirun --stream-buffering` sets.
pub static STREAM_BUFFERING: Param<i32> = Param::new(
    "mpi",
    "base",
    "stream_buffering",
    "-1",
    Level::USER,
    "Buffering of a C program's stdout and stderr from MPI_Init on: 0 none, 1 by lines, 2 full, -1 as the C library chose",
);

/// The buffering that is asked for, in the C library's terms.
fn mode(params: &Params) -> Result<Option<c_int>, ParamError> {
    Ok(match params.get(&STREAM_BUFFERING)? {
        0 => Some(libc::_IONBF),
        1 => Some(libc::_IOLBF),
        2 => Some(libc::_IOFBF),
        _ => None,
    })
}

/// Sets the buffering of both streams, if a parameter asks for it.
pub fn set_buffering(params: &Params) -> Result<(), ParamError> {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
        static stderr: *mut libc::FILE;
    }
    let Some(mode) = mode(params)? else {
        return Ok(());
    };
    // SAFETY: the C library defines both pointers before any code of the program runs.
    for stream in unsafe { [stdout, stderr] } {
        // SAFETY: the stream is the C library's own; the null buffer asks it to allocate one, which it owns.
        // A stream that refuses keeps the buffering it has.
        unsafe {
            libc::fflush(stream);
            libc::setvbuf(stream, ptr::null_mut(), mode, 64 << 10);
        }
    }
    Ok(())
}
