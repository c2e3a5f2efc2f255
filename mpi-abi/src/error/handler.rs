//! Registry of error handlers (section 9.3).
//!
//! A failure is reported to the handler of the object that the call is made on: the parent's where a communicator is created.
//! A new communicator inherits the handler that its parent has *at creation* (section 9.3, "newly created"); a handler that is set on
//! `MPI_COMM_WORLD` later does not affect it. MPICH lets a communicator whose handler was never set follow `MPI_COMM_WORLD`'s, on which
//! four of its own tests rely (`*_nullarg` of its `errors/comm`); the standard says otherwise, so this library does not do it.
//! A call without an object raises its error on `MPI_COMM_SELF`.
//!
//! Handlers are reference counted: each object holds one reference, and so does each handle that the program has obtained.
//! Error handlers may be created and used from any thread before initialization, so the registry has its own mutex, which is
//! never held while a handler runs.

use super::{Contextual, Failure, Target};
use crate::abi::*;
use crate::handle::{Kind, Table, wrong};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A handler created by the program, by the kind of object it serves.
#[derive(Clone, Debug)]
pub enum UserHandler {
    Comm(MPI_Comm_errhandler_function),
    Win(MPI_Win_errhandler_function),
    File(MPI_File_errhandler_function),
    Session(MPI_Session_errhandler_function),
    /// A handler of a program of another ABI.
    Contextual(Serves, Contextual),
}

/// A kind of object that has an error handler.
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

/// Registers a handler of the program with one reference.
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

/// Checks that a handler may serve an object of the kind of `target`.
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

/// Returns the program's handler behind a handle.
pub(crate) fn user(handler: MPI_Errhandler) -> Option<UserHandler> {
    handlers().get(handler.0).map(|entry| entry.handler.clone())
}
