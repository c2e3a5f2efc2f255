//! Error classes, codes and texts (sections 9.4 and 9.5) and creation of error handlers (section 9.3).

use super::args::{out, string, write_string};
use crate::abi::*;
use crate::error::handler::{self, UserHandler};
use crate::error::{Failure, Outcome, Target, codes, unread_errors};
use crate::object::Attached;
use crate::raise;
use crate::state::{self, state};
use std::ffi::{c_char, c_int};

pub unsafe fn MPI_Error_string(
    errorcode: c_int,
    string: *mut c_char,
    resultlen: *mut c_int,
) -> Outcome {
    unread_errors::note_read(errorcode);
    let text = codes::text(errorcode)?;
    // SAFETY: `string` has MPI_MAX_ERROR_STRING bytes and `resultlen` is writable: the C binding of MPI_Error_string requires it of the caller.
    unsafe { write_string(string, resultlen, &text, MPI_MAX_ERROR_STRING, "string") }
}

pub unsafe fn MPI_Error_class(errorcode: c_int, errorclass: *mut c_int) -> Outcome {
    unread_errors::note_read(errorcode);
    // SAFETY: `errorclass` is null or writable: the C binding of MPI_Error_class requires it of the caller.
    unsafe { out(errorclass, codes::class(errorcode)?, "errorclass") }
}

pub unsafe fn MPI_Add_error_class(errorclass: *mut c_int) -> Outcome {
    // SAFETY: `errorclass` is null or writable: the C binding of MPI_Add_error_class requires it of the caller.
    unsafe { out(errorclass, codes::add(None)?, "errorclass") }
}

pub unsafe fn MPI_Remove_error_class(errorclass: c_int) -> Outcome {
    codes::remove_class(errorclass)
}

pub unsafe fn MPI_Add_error_code(errorclass: c_int, errorcode: *mut c_int) -> Outcome {
    // SAFETY: `errorcode` is null or writable: the C binding of MPI_Add_error_code requires it of the caller.
    unsafe { out(errorcode, codes::add(Some(errorclass))?, "errorcode") }
}

pub unsafe fn MPI_Remove_error_code(errorcode: c_int) -> Outcome {
    codes::remove_code(errorcode)
}

pub unsafe fn MPI_Add_error_string(errorcode: c_int, text: *const c_char) -> Outcome {
    // SAFETY: `text` is null or NUL-terminated: the C binding of MPI_Add_error_string requires it of the caller.
    let text = unsafe { string(text, MPI_MAX_ERROR_STRING, MPI_ERR_ARG, "string")? };
    codes::set_text(errorcode, Some(text))
}

pub unsafe fn MPI_Remove_error_string(errorcode: c_int) -> Outcome {
    codes::set_text(errorcode, None)
}

/// Creates a handler from a function pointer, which must not be null.
///
/// # Safety
/// `errhandler` is an output argument of the caller.
unsafe fn create<F>(
    function: Option<F>,
    kind: fn(F) -> UserHandler,
    errhandler: *mut MPI_Errhandler,
) -> Outcome {
    let function = function
        .ok_or_else(|| Failure::new(MPI_ERR_ARG, "the error handler function is a null pointer"))?;
    // SAFETY: `errhandler` is null or writable: `# Safety` of this function.
    unsafe { out(errhandler, handler::create(kind(function))?, "errhandler") }
}

pub unsafe fn MPI_Comm_create_errhandler(
    comm_errhandler_fn: Option<MPI_Comm_errhandler_function>,
    errhandler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: `comm_errhandler_fn` and `errhandler` are valid as the C binding of MPI_Comm_create_errhandler requires of its caller.
    unsafe { create(comm_errhandler_fn, UserHandler::Comm, errhandler) }
}

pub unsafe fn MPI_Win_create_errhandler(
    win_errhandler_fn: Option<MPI_Win_errhandler_function>,
    errhandler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: `win_errhandler_fn` and `errhandler` are valid as the C binding of MPI_Win_create_errhandler requires of its caller.
    unsafe { create(win_errhandler_fn, UserHandler::Win, errhandler) }
}

pub unsafe fn MPI_File_create_errhandler(
    file_errhandler_fn: Option<MPI_File_errhandler_function>,
    errhandler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: `file_errhandler_fn` and `errhandler` are valid as the C binding of MPI_File_create_errhandler requires of its caller.
    unsafe { create(file_errhandler_fn, UserHandler::File, errhandler) }
}

pub unsafe fn MPI_Session_create_errhandler(
    session_errhandler_fn: Option<MPI_Session_errhandler_function>,
    errhandler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: `session_errhandler_fn` and `errhandler` are valid as the C binding of MPI_Session_create_errhandler requires of its caller.
    unsafe { create(session_errhandler_fn, UserHandler::Session, errhandler) }
}

pub unsafe fn MPI_Errhandler_free(errhandler: *mut MPI_Errhandler) -> Outcome {
    // SAFETY: `errhandler` is valid as the C binding of MPI_Errhandler_free requires of its caller.
    let handle = unsafe { super::args::read(errhandler, "errhandler")? };
    handler::release(handle)?;
    // SAFETY: `errhandler` is null or writable: the C binding of MPI_Errhandler_free requires it of the caller.
    unsafe { out(errhandler, MPI_ERRHANDLER_NULL, "errhandler") }
}

/// Returns the handler of an object with a reference for the program.
///
/// # Safety
/// `errhandler` is an output argument of the caller.
unsafe fn hand_out(found: MPI_Errhandler, errhandler: *mut MPI_Errhandler) -> Outcome {
    handler::retain(found)?;
    // SAFETY: `errhandler` is null or writable: `# Safety` of this function.
    unsafe { out(errhandler, found, "errhandler") }
}

pub unsafe fn MPI_Comm_set_errhandler(comm: MPI_Comm, errhandler: MPI_Errhandler) -> Outcome {
    let object = state::comm(comm)?;
    handler::check_serves(errhandler, Target::Comm(comm))?;
    object.attached.set_errhandler(errhandler)
}

pub unsafe fn MPI_Comm_get_errhandler(comm: MPI_Comm, errhandler: *mut MPI_Errhandler) -> Outcome {
    // SAFETY: `errhandler` is valid as the C binding of MPI_Comm_get_errhandler requires of its caller.
    unsafe { hand_out(state::comm(comm)?.attached.errhandler(), errhandler) }
}

pub unsafe fn MPI_Comm_call_errhandler(comm: MPI_Comm, errorcode: c_int) -> Outcome {
    state::comm(comm)?;
    called("MPI_Comm_call_errhandler", Target::Comm(comm), errorcode)
}

pub unsafe fn MPI_Win_set_errhandler(win: MPI_Win, errhandler: MPI_Errhandler) -> Outcome {
    let object = state::win(win)?;
    handler::check_serves(errhandler, Target::Win(win))?;
    object.attached.set_errhandler(errhandler)
}

pub unsafe fn MPI_Win_get_errhandler(win: MPI_Win, errhandler: *mut MPI_Errhandler) -> Outcome {
    // SAFETY: `errhandler` is valid as the C binding of MPI_Win_get_errhandler requires of its caller.
    unsafe { hand_out(state::win(win)?.attached.errhandler(), errhandler) }
}

pub unsafe fn MPI_Win_call_errhandler(win: MPI_Win, errorcode: c_int) -> Outcome {
    state::win(win)?;
    called("MPI_Win_call_errhandler", Target::Win(win), errorcode)
}

pub unsafe fn MPI_Session_set_errhandler(
    session: MPI_Session,
    errhandler: MPI_Errhandler,
) -> Outcome {
    let object = state::session(session)?;
    handler::check_serves(errhandler, Target::Session(session))?;
    object.attached.set_errhandler(errhandler)
}

pub unsafe fn MPI_Session_get_errhandler(
    session: MPI_Session,
    errhandler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: `errhandler` is valid as the C binding of MPI_Session_get_errhandler requires of its caller.
    unsafe { hand_out(state::session(session)?.attached.errhandler(), errhandler) }
}

pub unsafe fn MPI_Session_call_errhandler(session: MPI_Session, error_code: c_int) -> Outcome {
    state::session(session)?;
    let target = Target::Session(session);
    called("MPI_Session_call_errhandler", target, error_code)
}

/// Calls `act` with the members of a file, or of `MPI_FILE_NULL`, whose handler new files inherit.
fn on_file<R>(file: MPI_File, act: impl FnOnce(&Attached) -> R) -> Result<R, Failure> {
    match file {
        MPI_FILE_NULL => Ok(act(state().program().no_file())),
        other => Ok(act(&state::file(other)?.attached)),
    }
}

pub unsafe fn MPI_File_set_errhandler(file: MPI_File, errhandler: MPI_Errhandler) -> Outcome {
    on_file(file, |_| ())?;
    handler::check_serves(errhandler, Target::File(file))?;
    on_file(file, |attached| attached.set_errhandler(errhandler))?
}

pub unsafe fn MPI_File_get_errhandler(file: MPI_File, errhandler: *mut MPI_Errhandler) -> Outcome {
    // SAFETY: `errhandler` is valid as the C binding of MPI_File_get_errhandler requires of its caller.
    unsafe { hand_out(on_file(file, Attached::errhandler)?, errhandler) }
}

pub unsafe fn MPI_File_call_errhandler(fh: MPI_File, errorcode: c_int) -> Outcome {
    on_file(fh, |_| ())?;
    called("MPI_File_call_errhandler", Target::File(fh), errorcode)
}

/// Calls the handler of an object; the call succeeds if the handler returns (section 9.3.4).
fn called(function: &str, target: Target, errorcode: c_int) -> Outcome {
    let text = codes::text(errorcode)?;
    let failure = Failure::new(errorcode, format!("the program reports {text}"));
    raise::raise(crate::functions::id_of(function), target, failure);
    Ok(())
}
