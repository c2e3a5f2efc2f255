//! Error handlers (section 9.3): their registry, and what happens when a call fails.
//!
//! The handler that hears of a failure is that of the object that the call is made on: of the parent where a communicator is made.
//! A new communicator inherits the handler that its parent has *then* (section 9.3, "newly created"); a handler that is set on
//! `MPI_COMM_WORLD` later does not reach it. MPICH lets a communicator whose handler was never set follow `MPI_COMM_WORLD`'s, on which
//! four of its own tests rely (`*_nullarg` of its `errors/comm`); that is not what the standard says, so it is not done here.
//! A call without an object raises its error on `MPI_COMM_SELF`.
//!
//! An object holds the handle of its error handler and counts as one reference to it; so does each handle the program got.
//! Error handlers may be made and used from any thread before initialization, so the registry has its own mutex, which is
//! never held while a handler runs.
#![allow(unsafe_code)]

use super::{Failure, codes, unseen};
use crate::abi::*;
use crate::call::{self, Target};
use crate::handle::{Kind, Table, wrong};
use crate::other_abis::Contextual;
use crate::state;
use std::ffi::c_int;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A handler that the program made, by the kind of object it serves.
#[derive(Clone, Debug)]
pub enum UserHandler {
    Comm(MPI_Comm_errhandler_function),
    Win(MPI_Win_errhandler_function),
    File(MPI_File_errhandler_function),
    Session(MPI_Session_errhandler_function),
    /// One of a program of another ABI.
    Contextual(Serves, Contextual),
}

/// A kind of object that error handlers serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    Comm,
    Win,
    File,
    Session,
}

#[derive(Debug)]
struct Entry {
    handler: UserHandler,
    references: usize,
}

static HANDLERS: Mutex<Table<Entry>> = Mutex::new(Table::new(Kind::Errhandler));

fn handlers() -> MutexGuard<'static, Table<Entry>> {
    HANDLERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_predefined(handler: MPI_Errhandler) -> bool {
    [MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT, MPI_ERRORS_RETURN].contains(&handler)
}

/// Registers a handler of the program, with one reference.
pub fn create(handler: UserHandler) -> Result<MPI_Errhandler, Failure> {
    handlers()
        .insert(Entry {
            handler,
            references: 1,
        })
        .map(MPI_Errhandler)
        .ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many error handlers"))
}

/// Adds a reference.
pub fn retain(handler: MPI_Errhandler) -> Result<(), Failure> {
    if is_predefined(handler) {
        return Ok(());
    }
    match handlers().get_mut(handler.0) {
        Some(entry) => {
            entry.references += 1;
            Ok(())
        }
        None => Err(wrong(Kind::Errhandler, handler.0)),
    }
}

/// Drops a reference; the last one removes the handler.
pub fn release(handler: MPI_Errhandler) -> Result<(), Failure> {
    if is_predefined(handler) {
        return Ok(());
    }
    let mut table = handlers();
    let Some(entry) = table.get_mut(handler.0) else {
        return Err(wrong(Kind::Errhandler, handler.0));
    };
    entry.references -= 1;
    if entry.references == 0 {
        table.remove(handler.0);
    }
    Ok(())
}

/// Whether a handler may serve an object of the kind of `target`.
pub fn check_serves(handler: MPI_Errhandler, target: Target) -> Result<(), Failure> {
    if is_predefined(handler) {
        return Ok(());
    }
    let table = handlers();
    let Some(entry) = table.get(handler.0) else {
        return Err(wrong(Kind::Errhandler, handler.0));
    };
    let fits = matches!(
        (&entry.handler, target),
        (UserHandler::Comm(_), Target::Comm(_))
            | (UserHandler::Win(_), Target::Win(_))
            | (UserHandler::File(_), Target::File(_))
            | (UserHandler::Session(_), Target::Session(_))
            | (UserHandler::Contextual(Serves::Comm, _), Target::Comm(_))
            | (UserHandler::Contextual(Serves::Win, _), Target::Win(_))
            | (UserHandler::Contextual(Serves::File, _), Target::File(_))
            | (
                UserHandler::Contextual(Serves::Session, _),
                Target::Session(_)
            )
    );
    if fits {
        Ok(())
    } else {
        Err(Failure::new(
            MPI_ERR_ERRHANDLER,
            "the error handler was made for another kind of object",
        ))
    }
}

/// Takes a failure of function `id` to the error handler of the object it concerns, and returns the code the call returns.
#[cold]
pub fn raise(id: usize, target: Target, failure: Failure) -> c_int {
    codes::remember(
        failure.code(),
        format!("{}: {}", call::name(id), failure.message()),
    );
    let target = failure.target().unwrap_or(target);
    let (target, handler) = state::errhandler(target);
    let user = match handler {
        MPI_ERRORS_RETURN => {
            if let Target::File(_) = target {
                unseen::returned(id, &failure);
            }
            return failure.code();
        }
        MPI_ERRORS_ARE_FATAL | MPI_ERRORS_ABORT => fatal(id, target, &failure),
        other => handlers().get(other.0).map(|e| e.handler.clone()),
    };
    invoke(user, id, target, &failure)
}

/// Calls the handler of the program on the object it was set on.
fn invoke(user: Option<UserHandler>, id: usize, target: Target, failure: &Failure) -> c_int {
    let mut code = failure.code();
    match (user, target) {
        // SAFETY: the program promised that its function takes these arguments; they are locals that outlive the call.
        (Some(UserHandler::Comm(f)), Target::Comm(mut c)) => unsafe { f(&mut c, &mut code) },
        // SAFETY: the program promised that its function takes these arguments; they are locals that outlive the call.
        (Some(UserHandler::Win(f)), Target::Win(mut w)) => unsafe { f(&mut w, &mut code) },
        // SAFETY: the program promised that its function takes these arguments; they are locals that outlive the call.
        (Some(UserHandler::File(f)), Target::File(mut h)) => unsafe { f(&mut h, &mut code) },
        // SAFETY: the program promised that its function takes these arguments; they are locals that outlive the call.
        (Some(UserHandler::Session(f)), Target::Session(mut s)) => unsafe { f(&mut s, &mut code) },
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
            // SAFETY: as above.
            unsafe { f(&mut none, &mut code) }
        }
        (Some(UserHandler::Session(f)), Target::New(_)) => {
            let mut none = MPI_SESSION_NULL;
            // SAFETY: as above.
            unsafe { f(&mut none, &mut code) }
        }
        // The object's handler has gone or is of another kind, which `check_serves` and the reference counts exclude.
        _ => fatal(id, target, failure),
    }
    // The second argument is the code that the call returns (section 9.3), also where the handler has changed it.
    code
}

/// Prints one line that says which process failed where and why, and ends the job.
#[cold]
pub fn fatal(id: usize, target: Target, failure: &Failure) -> ! {
    let place = state::describe(target);
    let (who, function) = (state::who_am_i(), call::name(id));
    let class = super::class_text(failure.code()).map_or("added error code", |(name, _)| name);
    // In one piece, since others may say something at the same moment; no process reads it when standard error is closed.
    let line = format!(
        "{who}: {function}{place}: {} ({class})\n",
        failure.message()
    );
    let _ = std::io::stderr().write_all(line.as_bytes());
    crate::init::abort(failure.code(), &format!("{function} failed"))
}
