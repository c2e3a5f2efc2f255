//! Registry of error handlers (section 9.3).
//!
//! A failure is raised on the object of the call; at creation of a communicator, on the parent.
//! A new communicator inherits its parent's handler *at creation* (section 9.3, "newly created").
//! A handler set on `MPI_COMM_WORLD` later does not affect the new communicator.
//! In MPICH a communicator without its own handler uses the current one of `MPI_COMM_WORLD`.
//! Four MPICH tests (`*_nullarg` of `errors/comm`) require MPICH's rule, not the standard's.
//! A call without an object raises its errors on `MPI_COMM_SELF`.
//!
//! Handlers are reference counted: one reference per object and per handle of the program.
//! Error handlers can be created and used by any thread before initialization.
//! So the registry has its own mutex, which is never held while a handler runs.

use super::{Contextual, Failure, Target};
use crate::abi::*;
use crate::handle::{Kind, Table, exhausted, wrong};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An error handler created by the program. Each kind of object has its own function type.
#[derive(Clone, Debug)]
pub enum UserHandler {
    Comm(MPI_Comm_errhandler_function),
    Win(MPI_Win_errhandler_function),
    File(MPI_File_errhandler_function),
    Session(MPI_Session_errhandler_function),
    /// An error handler of a program that uses another ABI.
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

/// Registers an error handler of the program, with one reference.
pub fn create(handler: UserHandler) -> Result<MPI_Errhandler, Failure> {
    handlers()
        .insert(Entry {
            handler,
            references: 1,
        })
        .map(MPI_Errhandler)
        .ok_or_else(|| exhausted("error handlers"))
}

/// Adds a reference to an error handler.
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

/// Drops a reference to an error handler, and removes it with the last reference.
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

/// Checks that an error handler was created for the object kind of `target`.
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
