//! Raising of failures: calls the error handler of the failure's object, or ends the job.
//!
//! A failure names its object by handle ([`Target`]). This module looks up the object in [`state`].
#![allow(unsafe_code)]

use crate::abi::*;
use crate::abort::abort;
use crate::error::handler::{self, Serves, UserHandler};
use crate::error::{self, Failure, Target, codes, unread_errors};
use crate::functions;
use crate::phase;
use crate::state;
use crate::thrown::guarded;
use std::ffi::c_int;
use std::time::Duration;

/// Raises a failure of function `id` on its object, and returns the error code of the call.
#[cold]
pub fn raise(id: usize, target: Target, failure: Failure) -> c_int {
    codes::remember(
        failure.code(),
        sentence(functions::name(id), "", failure.message()),
    );
    let target = failure.target().unwrap_or(target);
    let (target, handler) = state::errhandler(target);
    let user = match handler {
        MPI_ERRORS_RETURN => {
            if let Target::File(_) = target {
                unread_errors::returned(id, &failure);
            }
            return failure.code();
        }
        MPI_ERRORS_ARE_FATAL | MPI_ERRORS_ABORT => fatal(id, target, &failure),
        other => handler::user(other),
    };
    invoke(user, id, target, &failure)
}

/// Calls the program's error handler with the object on which it was set.
fn invoke(user: Option<UserHandler>, id: usize, target: Target, failure: &Failure) -> c_int {
    let mut code = failure.code();
    match (user, target) {
        (Some(UserHandler::Comm(f)), Target::Comm(mut c)) => {
            let (object, code) = (&raw mut c, &raw mut code);
            // SAFETY: the program registered this function with the prototype for its handler kind.
            // The arguments are local variables that outlive the call.
            guarded((), move || unsafe { f(object, code) });
        }
        (Some(UserHandler::Win(f)), Target::Win(mut w)) => {
            let (object, code) = (&raw mut w, &raw mut code);
            // SAFETY: the program registered this function with the prototype for its handler kind.
            // The arguments are local variables that outlive the call.
            guarded((), move || unsafe { f(object, code) });
        }
        (Some(UserHandler::File(f)), Target::File(mut h)) => {
            let (object, code) = (&raw mut h, &raw mut code);
            // SAFETY: the program registered this function with the prototype for its handler kind.
            // The arguments are local variables that outlive the call.
            guarded((), move || unsafe { f(object, code) });
        }
        (Some(UserHandler::Session(f)), Target::Session(mut s)) => {
            let (object, code) = (&raw mut s, &raw mut code);
            // SAFETY: the program registered this function with the prototype for its handler kind.
            // The arguments are local variables that outlive the call.
            guarded((), move || unsafe { f(object, code) });
        }
        (Some(UserHandler::Contextual(Serves::Comm, f)), Target::Comm(c)) => {
            f.invoke(c.0, &mut code)
        }
        (Some(UserHandler::Contextual(Serves::Win, f)), Target::Win(w)) => f.invoke(w.0, &mut code),
        (Some(UserHandler::Contextual(Serves::File, f)), Target::File(h)) => {
            f.invoke(h.0, &mut code)
        }
        (Some(UserHandler::Contextual(Serves::Session, f)), Target::Session(s)) => {
            f.invoke(s.0, &mut code)
        }
        (Some(UserHandler::Contextual(Serves::Comm, f)), Target::New(_)) => {
            f.invoke(MPI_COMM_NULL.0, &mut code)
        }
        (Some(UserHandler::Contextual(Serves::Session, f)), Target::New(_)) => {
            f.invoke(MPI_SESSION_NULL.0, &mut code)
        }
        (Some(UserHandler::Comm(f)), Target::New(_)) => {
            let mut none = MPI_COMM_NULL;
            let (object, code) = (&raw mut none, &raw mut code);
            // SAFETY: the program registered this function with the prototype for its handler kind.
            // The arguments are local variables that outlive the call.
            guarded((), move || unsafe { f(object, code) });
        }
        (Some(UserHandler::Session(f)), Target::New(_)) => {
            let mut none = MPI_SESSION_NULL;
            let (object, code) = (&raw mut none, &raw mut code);
            // SAFETY: the program registered this function with the prototype for its handler kind.
            // The arguments are local variables that outlive the call.
            guarded((), move || unsafe { f(object, code) });
        }
        // `check_serves` and reference counts exclude a missing handler or one of another kind.
        _ => fatal(id, target, failure),
    }
    // The call returns the handler's code argument, even if it was changed (section 9.3).
    code
}

/// The time in which a launcher that ends the job has ended this rank, too.
const END_OF_JOB: Duration = Duration::from_millis(300);

/// Prints one line with the rank, the function and the reason, and ends the job.
///
/// A lost process is first left to the launcher: if it ends the job, because the process has died
/// or because the user has pressed Ctrl-C, its own report is the cause, and this rank prints nothing.
#[cold]
pub fn fatal(id: usize, target: Target, failure: &Failure) -> ! {
    if failure.code() == MPI_ERR_PROC_ABORTED && phase::launcher().is_some() {
        std::thread::sleep(END_OF_JOB);
    }
    let place = state::describe(target);
    let (rank, function) = (state::this_rank(), functions::name(id));
    let class = error::class_text(failure.code()).map_or("added error code", |(name, _)| name);
    let message = failure.message();
    let said = sentence(function, &place, message);
    printable::eprintln!("{rank}: {said} ({class})");
    abort(failure.code(), &format!("{function} failed"))
}

/// Returns the message of a failure after its function and object.
/// A message that begins with the function names its object as well, and stays alone.
fn sentence(function: &str, place: &str, message: &str) -> String {
    let plain = |name: &str| name.strip_suffix("_c").unwrap_or(name).to_owned();
    let first = message.split(' ').next().unwrap_or_default();
    match plain(first) == plain(function) {
        true => message.to_owned(),
        false => format!("{function}{place}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_function_once() {
        for (message, expected) in [
            ("rank 9 is not there", "MPI_Put_c on w: rank 9 is not there"),
            ("MPI_Put of rank 0 is long", "MPI_Put of rank 0 is long"),
            ("MPI_Put_c of rank 0 is long", "MPI_Put_c of rank 0 is long"),
            ("MPI_Puts", "MPI_Put_c on w: MPI_Puts"),
        ] {
            assert_eq!(sentence("MPI_Put_c", " on w", message), expected);
        }
    }
}
