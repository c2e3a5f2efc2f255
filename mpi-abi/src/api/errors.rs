//! Error classes, codes and texts (sections 9.4 and 9.5), and error handlers (9.3).

use super::args::{InOut, Out, Text, TextOut};
use crate::abi::*;
use crate::error::handler::{self, UserHandler};
use crate::error::{Failure, Outcome, Target, codes, unread_errors};
use crate::object::Attached;
use crate::raise;
use crate::state::{self, state};
use std::ffi::c_int;

pub fn MPI_Error_string(errorcode: c_int, string: TextOut, resultlen: Out<c_int>) -> Outcome {
    unread_errors::note_read(errorcode);
    let text = codes::text(errorcode)?;
    string.set_with_length(resultlen, &text, "string")
}

pub fn MPI_Error_class(errorcode: c_int, errorclass: Out<c_int>) -> Outcome {
    unread_errors::note_read(errorcode);
    errorclass.set(codes::class(errorcode)?, "errorclass")
}

pub fn MPI_Add_error_class(errorclass: Out<c_int>) -> Outcome {
    errorclass.set(codes::add(None)?, "errorclass")
}

pub fn MPI_Remove_error_class(errorclass: c_int) -> Outcome {
    codes::remove_class(errorclass)
}

pub fn MPI_Add_error_code(errorclass: c_int, errorcode: Out<c_int>) -> Outcome {
    errorcode.set(codes::add(Some(errorclass))?, "errorcode")
}

pub fn MPI_Remove_error_code(errorcode: c_int) -> Outcome {
    codes::remove_code(errorcode)
}

pub fn MPI_Add_error_string(errorcode: c_int, text: Text) -> Outcome {
    let text = text.string(MPI_MAX_ERROR_STRING, MPI_ERR_ARG, "string")?;
    codes::set_text(errorcode, Some(text))
}

pub fn MPI_Remove_error_string(errorcode: c_int) -> Outcome {
    codes::set_text(errorcode, None)
}

/// Registers an error handler from a callback. A null callback is an error.
fn create<F>(
    function: Option<F>,
    kind: fn(F) -> UserHandler,
    errhandler: Out<MPI_Errhandler>,
) -> Outcome {
    let function = function
        .ok_or_else(|| Failure::new(MPI_ERR_ARG, "the error handler function is a null pointer"))?;
    errhandler.set(handler::create(kind(function))?, "errhandler")
}

pub fn MPI_Comm_create_errhandler(
    comm_errhandler_fn: Option<MPI_Comm_errhandler_function>,
    errhandler: Out<MPI_Errhandler>,
) -> Outcome {
    create(comm_errhandler_fn, UserHandler::Comm, errhandler)
}

pub fn MPI_Win_create_errhandler(
    win_errhandler_fn: Option<MPI_Win_errhandler_function>,
    errhandler: Out<MPI_Errhandler>,
) -> Outcome {
    create(win_errhandler_fn, UserHandler::Win, errhandler)
}

pub fn MPI_File_create_errhandler(
    file_errhandler_fn: Option<MPI_File_errhandler_function>,
    errhandler: Out<MPI_Errhandler>,
) -> Outcome {
    create(file_errhandler_fn, UserHandler::File, errhandler)
}

pub fn MPI_Session_create_errhandler(
    session_errhandler_fn: Option<MPI_Session_errhandler_function>,
    errhandler: Out<MPI_Errhandler>,
) -> Outcome {
    create(session_errhandler_fn, UserHandler::Session, errhandler)
}

pub fn MPI_Errhandler_free(errhandler: InOut<MPI_Errhandler>) -> Outcome {
    let handle = errhandler.get("errhandler")?;
    handler::release(handle)?;
    errhandler.set(MPI_ERRHANDLER_NULL, "errhandler")
}

/// Returns an object's error handler, and adds a reference, which the program must free.
fn hand_out(found: MPI_Errhandler, errhandler: Out<MPI_Errhandler>) -> Outcome {
    handler::retain(found)?;
    errhandler.set(found, "errhandler")
}

pub fn MPI_Comm_set_errhandler(comm: MPI_Comm, errhandler: MPI_Errhandler) -> Outcome {
    let object = state::comm(comm)?;
    handler::check_serves(errhandler, Target::Comm(comm))?;
    object.attached.set_errhandler(errhandler)
}

pub fn MPI_Comm_get_errhandler(comm: MPI_Comm, errhandler: Out<MPI_Errhandler>) -> Outcome {
    hand_out(state::comm(comm)?.attached.errhandler(), errhandler)
}

pub fn MPI_Comm_call_errhandler(comm: MPI_Comm, errorcode: c_int) -> Outcome {
    state::comm(comm)?;
    called("MPI_Comm_call_errhandler", Target::Comm(comm), errorcode)
}

pub fn MPI_Win_set_errhandler(win: MPI_Win, errhandler: MPI_Errhandler) -> Outcome {
    let object = state::win(win)?;
    handler::check_serves(errhandler, Target::Win(win))?;
    object.attached.set_errhandler(errhandler)
}

pub fn MPI_Win_get_errhandler(win: MPI_Win, errhandler: Out<MPI_Errhandler>) -> Outcome {
    hand_out(state::win(win)?.attached.errhandler(), errhandler)
}

pub fn MPI_Win_call_errhandler(win: MPI_Win, errorcode: c_int) -> Outcome {
    state::win(win)?;
    called("MPI_Win_call_errhandler", Target::Win(win), errorcode)
}

pub fn MPI_Session_set_errhandler(session: MPI_Session, errhandler: MPI_Errhandler) -> Outcome {
    let object = state::session(session)?;
    handler::check_serves(errhandler, Target::Session(session))?;
    object.attached.set_errhandler(errhandler)
}

pub fn MPI_Session_get_errhandler(
    session: MPI_Session,
    errhandler: Out<MPI_Errhandler>,
) -> Outcome {
    hand_out(state::session(session)?.attached.errhandler(), errhandler)
}

pub fn MPI_Session_call_errhandler(session: MPI_Session, error_code: c_int) -> Outcome {
    state::session(session)?;
    let target = Target::Session(session);
    called("MPI_Session_call_errhandler", target, error_code)
}

/// Calls `act` with the state attached to a file, such as its error handler.
/// `MPI_FILE_NULL` also has this state: new files inherit its error handler.
fn on_file<R>(file: MPI_File, act: impl FnOnce(&Attached) -> R) -> Result<R, Failure> {
    match file {
        MPI_FILE_NULL => Ok(act(state().program().no_file())),
        other => Ok(act(&state::file(other)?.attached)),
    }
}

pub fn MPI_File_set_errhandler(file: MPI_File, errhandler: MPI_Errhandler) -> Outcome {
    on_file(file, |_| ())?;
    handler::check_serves(errhandler, Target::File(file))?;
    on_file(file, |attached| attached.set_errhandler(errhandler))?
}

pub fn MPI_File_get_errhandler(file: MPI_File, errhandler: Out<MPI_Errhandler>) -> Outcome {
    hand_out(on_file(file, Attached::errhandler)?, errhandler)
}

pub fn MPI_File_call_errhandler(fh: MPI_File, errorcode: c_int) -> Outcome {
    on_file(fh, |_| ())?;
    called("MPI_File_call_errhandler", Target::File(fh), errorcode)
}

/// Implements `MPI_Comm_call_errhandler` and its variants.
/// Returns if the handler returns (section 9.3.4).
fn called(function: &str, target: Target, errorcode: c_int) -> Outcome {
    let text = codes::text(errorcode)?;
    let failure = Failure::new(errorcode, format!("the program reports {text}"));
    raise::raise(crate::functions::id_of(function), target, failure);
    Ok(())
}
