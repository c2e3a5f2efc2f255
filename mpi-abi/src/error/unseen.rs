//! Warning at `MPI_Finalize` about file errors that the program ignored.
//!
//! The default handler of files returns errors (MPI 5.0, section 14.7), so a program that ignores return codes continues after
//! a failure. If [`TELL_UNSEEN`] is set, such a rank prints one line at `MPI_Finalize`: the first error, and the number of others.
//! It is off by default: a program that compares the code with `MPI_SUCCESS` has handled the error, which the library cannot detect.
//! Two errors are not reported: a missing name in `MPI_File_delete`, since programs delete files that may not exist before they create them,
//! and a failure of another rank that also ends a collective call here, since that rank reports it.

use super::{Failure, class_text};
use crate::abi::{MPI_ERR_NO_SUCH_FILE, MPI_SUCCESS};
use crate::{functions, state};
use mpi_base::param::{Level, Param};
use mpi_core::io::file::ELSEWHERE;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Enables the warning.
pub static TELL_UNSEEN: Param<bool> = Param::new(
    "io",
    "base",
    "tell_unseen_errors",
    "false",
    Level::USER,
    "Whether a rank says at MPI_Finalize that a call on a file returned an error whose class and text the program never asked for",
);

/// The first ignored error, and the number of all.
struct Unseen {
    first: String,
    count: usize,
}

static UNSEEN: Mutex<Option<Unseen>> = Mutex::new(None);

fn unseen() -> MutexGuard<'static, Option<Unseen>> {
    UNSEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records that function `id` returned an error of a file.
#[cold]
pub fn returned(id: usize, failure: &Failure) {
    let function = functions::name(id);
    let missing = failure.code() == MPI_ERR_NO_SUCH_FILE && function == "MPI_File_delete";
    if missing || failure.message().contains(ELSEWHERE) {
        return;
    }
    let mut unseen = unseen();
    match &mut *unseen {
        Some(known) => known.count += 1,
        None => {
            let class = class_text(failure.code()).map_or("an added error code", |(name, _)| name);
            *unseen = Some(Unseen {
                first: format!("{function} returned {class}: {}", failure.message()),
                count: 1,
            });
        }
    }
}

/// Records that the program asked for the class or text of an error code.
pub fn looks_at(code: i32) {
    if code != MPI_SUCCESS {
        *unseen() = None;
    }
}

/// Prints the warning, if `wanted` and an error was ignored.
pub fn tell(wanted: bool) {
    let Some(Unseen { first, count }) = unseen().take() else {
        return;
    };
    if !wanted {
        return;
    }
    let more = match count {
        1 => String::new(),
        count => format!(" (and {} more of files)", count - 1),
    };
    let who = state::this_rank();
    printable::eprintln!(
        "{who}: an error was returned{more} whose class and text the program never asked for: {first}"
    );
}
