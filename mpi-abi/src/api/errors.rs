//! Error classes, codes and texts (section 9.4 and 9.5) and the making of error handlers (section 9.3).

use super::args::{out, string, write_string};
use crate::abi::*;
use crate::error::handler::{self, UserHandler};
use crate::error::{Failure, Outcome, codes};
use std::ffi::{c_char, c_int};

pub unsafe fn MPI_Error_string(
    errorcode: c_int,
    string: *mut c_char,
    resultlen: *mut c_int,
) -> Outcome {
    let text = codes::text(errorcode)?;
    // SAFETY: the caller promises room for MPI_MAX_ERROR_STRING characters.
    unsafe { write_string(string, resultlen, &text, MPI_MAX_ERROR_STRING, "string") }
}

pub unsafe fn MPI_Error_class(errorcode: c_int, errorclass: *mut c_int) -> Outcome {
    // SAFETY: an output argument of the caller.
    unsafe { out(errorclass, codes::class(errorcode)?, "errorclass") }
}

pub unsafe fn MPI_Add_error_class(errorclass: *mut c_int) -> Outcome {
    // SAFETY: an output argument of the caller.
    unsafe { out(errorclass, codes::add(None)?, "errorclass") }
}

pub unsafe fn MPI_Remove_error_class(errorclass: c_int) -> Outcome {
    codes::remove_class(errorclass)
}

pub unsafe fn MPI_Add_error_code(errorclass: c_int, errorcode: *mut c_int) -> Outcome {
    // SAFETY: an output argument of the caller.
    unsafe { out(errorcode, codes::add(Some(errorclass))?, "errorcode") }
}

pub unsafe fn MPI_Remove_error_code(errorcode: c_int) -> Outcome {
    codes::remove_code(errorcode)
}

pub unsafe fn MPI_Add_error_string(errorcode: c_int, text: *const c_char) -> Outcome {
    // SAFETY: a string of the caller.
    let text = unsafe { string(text, MPI_MAX_ERROR_STRING, MPI_ERR_ARG, "string")? };
    codes::set_text(errorcode, Some(text))
}

pub unsafe fn MPI_Remove_error_string(errorcode: c_int) -> Outcome {
    codes::set_text(errorcode, None)
}

/// Makes a handler of a function that must be there.
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
    // SAFETY: passed on.
    unsafe { out(errhandler, handler::create(kind(function))?, "errhandler") }
}

pub unsafe fn MPI_Comm_create_errhandler(
    comm_errhandler_fn: Option<MPI_Comm_errhandler_function>,
    errhandler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: an output argument of the caller.
    unsafe { create(comm_errhandler_fn, UserHandler::Comm, errhandler) }
}

pub unsafe fn MPI_Win_create_errhandler(
    win_errhandler_fn: Option<MPI_Win_errhandler_function>,
    errhandler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: an output argument of the caller.
    unsafe { create(win_errhandler_fn, UserHandler::Win, errhandler) }
}

pub unsafe fn MPI_File_create_errhandler(
    file_errhandler_fn: Option<MPI_File_errhandler_function>,
    errhandler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: an output argument of the caller.
    unsafe { create(file_errhandler_fn, UserHandler::File, errhandler) }
}

pub unsafe fn MPI_Session_create_errhandler(
    session_errhandler_fn: Option<MPI_Session_errhandler_function>,
    errhandler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: an output argument of the caller.
    unsafe { create(session_errhandler_fn, UserHandler::Session, errhandler) }
}

pub unsafe fn MPI_Errhandler_free(errhandler: *mut MPI_Errhandler) -> Outcome {
    // SAFETY: an argument of the caller that is read and written.
    let handle = unsafe { super::args::read(errhandler, "errhandler")? };
    handler::release(handle)?;
    // SAFETY: as above.
    unsafe { out(errhandler, MPI_ERRHANDLER_NULL, "errhandler") }
}
