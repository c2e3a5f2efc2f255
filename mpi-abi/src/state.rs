//! What is process-wide: the one place below which everything is a value.

use crate::abi::*;
use crate::call::Target;
use std::ffi::c_int;

/// What a call holds while it runs.
#[derive(Debug)]
pub struct Inside(());

/// Notes that function `id` runs.
#[inline]
pub fn enter(_id: usize) -> Inside {
    Inside(())
}

/// The error handler of an object, and the object it was found on.
///
/// A failure that concerns no object, or one whose handle is wrong, is raised on `MPI_COMM_SELF`.
pub fn errhandler(_target: Target) -> (Target, MPI_Errhandler) {
    (Target::Comm(MPI_COMM_SELF), MPI_ERRORS_ARE_FATAL)
}

/// ` on MPI_COMM_WORLD`, or nothing.
pub fn describe(_target: Target) -> String {
    String::new()
}

/// `rank 3 on node7`.
pub fn who_am_i() -> String {
    format!("process {}", std::process::id())
}

/// Ends the job.
pub fn abort(code: c_int) -> ! {
    std::process::exit(code.clamp(1, 255))
}

/// The name of this machine.
pub fn host_name() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the buffer is a local of the length given, whose last byte stays zero.
    let failed = unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let name = std::ffi::CStr::from_bytes_until_nul(&buffer);
    match (failed, name) {
        (0, Ok(name)) if !name.is_empty() => name.to_string_lossy().into_owned(),
        _ => "localhost".to_string(),
    }
}
