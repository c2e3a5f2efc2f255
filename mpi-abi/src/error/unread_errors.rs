//! Warning at `MPI_Finalize` about file errors whose codes the program has ignored.
//!
//! The default error handler of files returns errors (MPI 5.0, section 14.7).
//! So a program that ignores return codes continues after a failure.
//! With [`WARN_UNREAD_ERRORS`], a rank prints a warning if its program has ignored file errors.
//! The warning has the first error and the number of the other errors.
//! The default is off: the library cannot see that a program handles an error by comparing the
//! return code with `MPI_SUCCESS`, and would warn falsely.
//! A missing file in `MPI_File_delete` is not reported: programs delete files that may not exist.
//! A failure of another rank in a collective call is not reported here, since that rank reports it.

use super::{Failure, class_text};
use crate::abi::{MPI_ERR_NO_SUCH_FILE, MPI_SUCCESS};
use crate::functions;
use mpi_base::param::{Level, Param};
use mpi_core::io::file::ELSEWHERE;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Enables the warning about ignored file errors.
pub static WARN_UNREAD_ERRORS: Param<bool> = Param::new(
    "io",
    "base",
    "tell_unseen_errors",
    "false",
    Level::USER,
    "Whether a rank warns at MPI_Finalize about errors of calls on files whose class and text the program never asked for",
);

/// The first ignored error, and the number of ignored errors.
struct UnreadErrors {
    first: String,
    count: usize,
}

static UNREAD_ERRORS: Mutex<Option<UnreadErrors>> = Mutex::new(None);

fn unread_errors() -> MutexGuard<'static, Option<UnreadErrors>> {
    UNREAD_ERRORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records that function `id` has returned a file error.
#[cold]
pub fn returned(id: usize, failure: &Failure) {
    let function = functions::name(id);
    let missing = failure.code() == MPI_ERR_NO_SUCH_FILE && function == "MPI_File_delete";
    if missing || failure.message().contains(ELSEWHERE) {
        return;
    }
    let mut unread_errors = unread_errors();
    match &mut *unread_errors {
        Some(known) => known.count += 1,
        None => {
            let class = class_text(failure.code()).map_or("an added error code", |(name, _)| name);
            *unread_errors = Some(UnreadErrors {
                first: format!("{function} returned {class}: {}", failure.message()),
                count: 1,
            });
        }
    }
}

/// Forgets the ignored errors, since the program has queried the class or text of an error code.
pub fn note_read(code: i32) {
    if code != MPI_SUCCESS {
        *unread_errors() = None;
    }
}

/// Prints the warning of this rank, if `wanted` and an error was ignored.
pub fn warn(rank: &str, wanted: bool) {
    let Some(UnreadErrors { first, count }) = unread_errors().take() else {
        return;
    };
    if !wanted {
        return;
    }
    let more = match count {
        1 => String::new(),
        count => format!(" (and {} more of files)", count - 1),
    };
    printable::eprintln!(
        "{rank}: an error was returned{more} whose class and text the program never asked for: {first}"
    );
}
