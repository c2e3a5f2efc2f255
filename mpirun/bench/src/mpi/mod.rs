//! Bindings of the MPI functions that the benchmarks call, loaded at run time.
//!
//! All `unsafe` of `mpi-bench` is here: calls through C function pointers.
//! Their prototypes are those of the MPI standard, which are identical in every library.
//! Only the values of handles differ between libraries, so a table (`Handles`) contains them.
//! Handles are constants in the standard ABI (MPI 5.0, chapter 20).
//! In Open MPI handles are addresses of exported objects.
//!
//! Every public function is safe, since it completes the operations that it starts.
//! No request outlives the function or the closure that starts it, so buffers are free afterwards.

mod collectives;
mod duplicate;
mod files;
mod flights;
mod layouts;
mod library;
mod started;
mod threads;
mod windows;
mod with_counts;

pub use collectives::{Collectives, Combine};
pub use duplicate::Duplicate;
pub use files::{Calls, FileType, OpenFile};
pub use flights::Flights;
pub use layouts::Layout;
pub use library::{Library, LoadError};
pub use windows::{Access, Window};

use library::{Functions, Handles};
use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::ptr;

/// An MPI handle, which is a pointer both in the standard ABI and in Open MPI.
type Handle = *const c_void;

/// The error code that an MPI function has returned.
#[derive(Debug, Clone, Copy)]
pub struct MpiError {
    function: &'static str,
    code: c_int,
}

impl fmt::Display for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} returned error code {}", self.function, self.code)
    }
}

impl std::error::Error for MpiError {}

/// Converts a return code to a `Result`.
/// An error code occurs only with an error handler that returns.
/// The default handler, `MPI_ERRORS_ARE_FATAL`, ends the job.
fn check(function: &'static str, code: c_int) -> Result<(), MpiError> {
    if code == 0 {
        Ok(())
    } else {
        Err(MpiError { function, code })
    }
}

/// `MPI_ANY_SOURCE`, which is -1 both in the standard ABI and in Open MPI.
pub const ANY_SOURCE: i32 = -1;

/// `MPI_COMM_WORLD` between `MPI_Init` and `MPI_Finalize`.
pub struct World<'a> {
    library: &'a Library,
    rank: c_int,
    size: c_int,
    /// Whether the library has granted `MPI_THREAD_MULTIPLE`.
    threads: bool,
}

/// Converts a length to a C int; the command line limits sizes to the range of a C int.
fn count(len: usize) -> c_int {
    c_int::try_from(len).unwrap_or(c_int::MAX)
}

impl World<'_> {
    pub fn rank(&self) -> i32 {
        self.rank
    }

    pub fn size(&self) -> i32 {
        self.size
    }

    pub fn version(&self) -> String {
        self.library.version()
    }

    fn call(&self) -> &Functions {
        &self.library.call
    }

    fn handles(&self) -> &Handles {
        &self.library.handles
    }

    /// Returns the error as a sentence, with the library's text for the error code.
    pub fn describe(&self, error: &MpiError) -> String {
        // Longer than MPI_MAX_ERROR_STRING of every library.
        let mut text = [0 as c_char; 4096];
        let mut length = 0;
        // SAFETY: the buffer is longer than every text; `length` is a local variable.
        let code =
            unsafe { (self.call().error_string)(error.code, text.as_mut_ptr(), &raw mut length) };
        let bytes: Vec<u8> = text
            .iter()
            .take_while(|c| **c != 0)
            .map(|c| *c as u8)
            .collect();
        match (code, bytes.as_slice()) {
            (0, [_, ..]) => format!("{}: {}", error.function, String::from_utf8_lossy(&bytes)),
            _ => error.to_string(),
        }
    }

    pub fn barrier(&self) -> Result<(), MpiError> {
        // SAFETY: a `World` exists only between `MPI_Init_thread` and `MPI_Finalize`.
        check("MPI_Barrier", unsafe {
            (self.call().barrier)(self.handles().world)
        })
    }

    /// Aborts the whole job with `MPI_Abort`.
    pub fn abort(&self, code: i32) {
        // SAFETY: MPI is initialised while a `World` exists; the call ends this process or returns.
        unsafe { (self.call().abort)(self.handles().world, code) };
    }

    /// Ends this process immediately, without `MPI_Finalize` or exit handlers.
    pub fn exit_now(&self, code: i32) -> ! {
        // SAFETY: _exit does not return and touches no memory.
        unsafe { libc::_exit(code) }
    }

    pub fn send(&self, data: &[u8], to: i32, tag: i32) -> Result<(), MpiError> {
        let h = self.handles();
        // SAFETY: the buffer has `data.len()` bytes and is borrowed until the call returns.
        let code = unsafe {
            (self.call().send)(
                data.as_ptr().cast(),
                count(data.len()),
                h.char_,
                to,
                tag,
                h.world,
            )
        };
        check("MPI_Send", code)
    }

    pub fn recv(&self, data: &mut [u8], from: i32, tag: i32) -> Result<(), MpiError> {
        let (h, data_len) = (self.handles(), count(data.len()));
        // SAFETY: the buffer has `data_len` bytes and is exclusively borrowed; null is ignored.
        let code = unsafe {
            (self.call().recv)(
                data.as_mut_ptr().cast(),
                data_len,
                h.char_,
                from,
                tag,
                h.world,
                ptr::null_mut(),
            )
        };
        check("MPI_Recv", code)
    }

    /// Sends to one rank and receives from another by `MPI_Sendrecv`.
    pub fn send_and_receive(
        &self,
        (sent, to): (&[u8], i32),
        (received, from): (&mut [u8], i32),
    ) -> Result<(), MpiError> {
        let h = self.handles();
        let (sent_len, received_len) = (count(sent.len()), count(received.len()));
        let (ours, theirs) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: both buffers have the given lengths and are borrowed until the call returns.
        // A null status is MPI_STATUS_IGNORE.
        let code = unsafe {
            (self.call().sendrecv)(
                ours,
                sent_len,
                h.char_,
                to,
                1,
                theirs,
                received_len,
                h.char_,
                from,
                1,
                h.world,
                ptr::null_mut(),
            )
        };
        check("MPI_Sendrecv", code)
    }

    /// Broadcasts a number from rank 0.
    pub fn bcast_number(&self, value: u64) -> Result<u64, MpiError> {
        let mut bytes = value.to_ne_bytes();
        self.collectives().bcast(&mut bytes, 0)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    pub fn finalize(self) -> Result<(), MpiError> {
        // SAFETY: every method has completed its requests, and `self` is consumed.
        check("MPI_Finalize", unsafe { (self.call().finalize)() })
    }
}
