//! User-defined reduction operators, and local reductions (section 6.9).
#![allow(unsafe_code)]

use super::args::{InOut, Out, RecvMem, SendMem};
use super::collective::alias_check;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::handle::{FIRST_DYNAMIC, Kind, exhausted, wrong};
use crate::registry::datatype::{handle_of, remove};
use crate::state::{self, state};
use crate::thrown::guarded;
use mpi_core::datatype::Datatype;
use mpi_core::op::Op;
use std::ffi::c_int;

/// Registers a handle for a new operator.
pub(crate) fn register(new: Op, op: Out<MPI_Op>) -> Outcome {
    let handle = state().tables().ops().borrow_mut().insert(new);
    let handle = handle.ok_or_else(|| exhausted("operators"))?;
    op.set(MPI_Op(handle), "op")
}

/// Calls `call` with a handle of a datatype, which is valid during the call.
pub(crate) fn with_handle(datatype: &Datatype, call: impl FnOnce(MPI_Datatype)) {
    // If no handle is free, the callback gets MPI_DATATYPE_NULL.
    let (handle, temporary) = handle_of(datatype).unwrap_or((MPI_DATATYPE_NULL, false));
    call(handle);
    if temporary {
        // The handle is temporary. `remove` fails only if the callback has already freed it.
        let _ = remove(handle);
    }
}

fn no_function() -> Failure {
    Failure::new(MPI_ERR_ARG, "user_fn is a null pointer")
}

pub fn MPI_Op_create(
    user_fn: Option<MPI_User_function>,
    commute: c_int,
    op: Out<MPI_Op>,
) -> Outcome {
    let function = user_fn.ok_or_else(no_function)?;
    let call = move |input: *const u8, inout: *mut u8, len: i64, datatype: &Datatype| {
        with_handle(datatype, |mut handle| {
            // The callback's length is an int, so a reduction of more elements takes several calls.
            let (mut at, mut left) = (0i64, len);
            while left > 0 {
                let mut part = c_int::try_from(left).unwrap_or(c_int::MAX);
                let offset = (at * datatype.extent()) as isize;
                let input = input.cast_mut().wrapping_offset(offset).cast();
                let inout = inout.wrapping_offset(offset).cast();
                let (part, handle) = (&raw mut part, &raw mut handle);
                // SAFETY: the program registered this function as a reduction function.
                // The engine's buffers hold `part` elements.
                // A conforming function only reads the input.
                guarded((), move || unsafe { function(input, inout, part, handle) });
                let done = i64::from(c_int::try_from(left).unwrap_or(c_int::MAX));
                at += done;
                left -= done;
            }
        });
    };
    register(Op::user(call, commute != 0), op)
}

pub fn MPI_Op_create_c(
    user_fn: Option<MPI_User_function_c>,
    commute: c_int,
    op: Out<MPI_Op>,
) -> Outcome {
    let function = user_fn.ok_or_else(no_function)?;
    let call = move |input: *const u8, inout: *mut u8, mut len: i64, datatype: &Datatype| {
        with_handle(datatype, |mut handle| {
            let (input, inout) = (input.cast_mut().cast(), inout.cast());
            let (len, handle) = (&raw mut len, &raw mut handle);
            // SAFETY: the program registered this function as a large-count reduction function.
            // The engine's buffers hold `len` elements.
            guarded((), move || unsafe { function(input, inout, len, handle) });
        });
    };
    register(Op::user(call, commute != 0), op)
}

pub fn MPI_Op_free(op: InOut<MPI_Op>) -> Outcome {
    let handle = op.get("op")?;
    if handle.0 < FIRST_DYNAMIC {
        let predefined = state::op(handle)?;
        return Err(Failure::new(
            MPI_ERR_OP,
            format!("{} is predefined and cannot be freed", predefined.name()),
        ));
    }
    let removed = state().tables().ops().borrow_mut().remove(handle.0);
    removed.ok_or_else(|| wrong(Kind::Op, handle.0))?;
    op.set(MPI_OP_NULL, "op")
}

pub fn MPI_Op_commutative(op: MPI_Op, commute: Out<c_int>) -> Outcome {
    let commutes = state::op(op)?.is_commutative();
    commute.set(commutes.into(), "commute")
}

pub fn MPI_Reduce_local_c(inbuf: SendMem, inoutbuf: RecvMem, op: MPI_Op) -> Outcome {
    let op = combining(op)?;
    let (input, mut inout) = (inbuf.buffer()?, inoutbuf.buffer()?);
    let address = inbuf.address();
    let shared =
        address == inoutbuf.address().cast_const() && !address.is_null() && input.bytes() > 0;
    if shared {
        return Err(alias_check::without_another_form("inoutbuf", "inbuf"));
    }
    Ok(op.apply(&input, &mut inout)?)
}

/// Returns the operator of a reduction.
#[inline]
pub fn combining(op: MPI_Op) -> Result<Op, Failure> {
    if op == MPI_NO_OP || op == MPI_REPLACE {
        return Err(only_for_windows(op));
    }
    state::op(op)
}

#[cold]
fn only_for_windows(op: MPI_Op) -> Failure {
    let name = match op {
        MPI_NO_OP => "MPI_NO_OP",
        _ => "MPI_REPLACE",
    };
    let text =
        format!("{name} is for one-sided communication and not for reductions (section 12.3.4)");
    Failure::new(MPI_ERR_OP, text)
}
