//! User-defined reduction operators, and local reductions (section 6.9).

use super::args::{out, read, recv_buf, send_buf};
use super::collective::alias_check;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::handle::{FIRST_DYNAMIC, Kind, wrong};
use crate::registry::datatype::{handle_of, remove};
use crate::state::{self, state};
use crate::thrown::guarded;
use mpi_core::datatype::Datatype;
use mpi_core::op::Op;
use std::ffi::{c_int, c_void};

/// Gives a new operator a handle.
///
/// # Safety
/// `op` is an output argument of the caller.
pub(crate) unsafe fn register(new: Op, op: *mut MPI_Op) -> Outcome {
    let handle = state().tables().ops().borrow_mut().insert(new);
    let handle =
        handle.ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many operators"))?;
    // SAFETY: `op` is null or writable: `# Safety` of this function.
    unsafe { out(op, MPI_Op(handle), "op") }
}

/// Calls a callback with a handle of a datatype.
pub(crate) fn with_handle(datatype: &Datatype, call: impl FnOnce(MPI_Datatype)) {
    // If no handle is left, the callback gets the null handle.
    let (handle, temporary) = handle_of(datatype).unwrap_or((MPI_DATATYPE_NULL, false));
    call(handle);
    if temporary {
        // It was registered just above; if the callback has freed it, nothing is left to do.
        let _ = remove(handle);
    }
}

fn no_function() -> Failure {
    Failure::new(MPI_ERR_ARG, "user_fn is a null pointer")
}

pub unsafe fn MPI_Op_create(
    user_fn: Option<MPI_User_function>,
    commute: c_int,
    op: *mut MPI_Op,
) -> Outcome {
    let function = user_fn.ok_or_else(no_function)?;
    let call = move |input: *const u8, inout: *mut u8, len: i64, datatype: &Datatype| {
        with_handle(datatype, |mut handle| {
            // A reduction of more elements than an int holds takes several calls.
            let (mut at, mut left) = (0i64, len);
            while left > 0 {
                let mut part = c_int::try_from(left).unwrap_or(c_int::MAX);
                let offset = (at * datatype.extent()) as isize;
                let input = input.cast_mut().wrapping_offset(offset).cast();
                let inout = inout.wrapping_offset(offset).cast();
                let (part, handle) = (&raw mut part, &raw mut handle);
                // SAFETY: the program registered this function as a reduction function; the engine's buffers hold that many elements,
                // and a conforming function does not change the input.
                guarded((), move || unsafe { function(input, inout, part, handle) });
                let done = i64::from(c_int::try_from(left).unwrap_or(c_int::MAX));
                at += done;
                left -= done;
            }
        });
    };
    // SAFETY: `op` is valid as the C binding of MPI_Op_create requires of its caller.
    unsafe { register(Op::user(call, commute != 0), op) }
}

pub unsafe fn MPI_Op_create_c(
    user_fn: Option<MPI_User_function_c>,
    commute: c_int,
    op: *mut MPI_Op,
) -> Outcome {
    let function = user_fn.ok_or_else(no_function)?;
    let call = move |input: *const u8, inout: *mut u8, mut len: i64, datatype: &Datatype| {
        with_handle(datatype, |mut handle| {
            let (input, inout) = (input.cast_mut().cast(), inout.cast());
            let (len, handle) = (&raw mut len, &raw mut handle);
            // SAFETY: the program registered this function as a large-count reduction function; the engine's buffers hold `len` elements.
            guarded((), move || unsafe { function(input, inout, len, handle) });
        });
    };
    // SAFETY: `op` is valid as the C binding of MPI_Op_create_c requires of its caller.
    unsafe { register(Op::user(call, commute != 0), op) }
}

pub unsafe fn MPI_Op_free(op: *mut MPI_Op) -> Outcome {
    // SAFETY: `op` is null or readable: the C binding of MPI_Op_free requires it of the caller.
    let handle = unsafe { read(op, "op")? };
    if handle.0 < FIRST_DYNAMIC {
        let predefined = state::op(handle)?;
        return Err(Failure::new(
            MPI_ERR_OP,
            format!("{} is predefined and cannot be freed", predefined.name()),
        ));
    }
    let removed = state().tables().ops().borrow_mut().remove(handle.0);
    removed.ok_or_else(|| wrong(Kind::Op, handle.0))?;
    // SAFETY: `op` is null or writable: the C binding of MPI_Op_free requires it of the caller.
    unsafe { out(op, MPI_OP_NULL, "op") }
}

pub unsafe fn MPI_Op_commutative(op: MPI_Op, commute: *mut c_int) -> Outcome {
    let commutes = state::op(op)?.is_commutative();
    // SAFETY: `commute` is null or writable: the C binding of MPI_Op_commutative requires it of the caller.
    unsafe { out(commute, commutes.into(), "commute") }
}

pub unsafe fn MPI_Reduce_local_c(
    inbuf: *const c_void,
    inoutbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Outcome {
    let op = state::op(op)?;
    // SAFETY: `inbuf` and `inoutbuf` hold `count` elements: the C binding of MPI_Reduce_local_c requires it of the caller.
    let (input, mut inout) = unsafe {
        (
            send_buf(inbuf, count, datatype)?,
            recv_buf(inoutbuf, count, datatype)?,
        )
    };
    let shared = inbuf == inoutbuf.cast_const() && !inbuf.is_null() && input.bytes() > 0;
    if shared {
        return Err(alias_check::without_another_form("inoutbuf", "inbuf"));
    }
    Ok(op.apply(&input, &mut inout)?)
}
