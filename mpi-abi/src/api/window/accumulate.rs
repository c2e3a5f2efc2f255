//! Accumulate, get-accumulate, fetch-and-op and compare-and-swap (sections 12.3.4 and 12.3.5).

#![allow(unsafe_code)]

use super::{Part, requested};
use crate::abi::*;
use crate::api::args::{recv_buf, send_buf};
use crate::error::{Failure, Outcome};
use crate::object::window::WinObject;
use crate::state;
use mpi_core::datatype::{Kind, Named, SendBuf};
use mpi_core::op::{Op, Predefined};
use mpi_core::request::Req;
use std::ffi::{c_int, c_void};

/// Returns a predefined operator and a predefined datatype, for the fast path.
fn plain(op: MPI_Op, datatype: MPI_Datatype) -> Option<(Predefined, Named)> {
    match Op::predefined(op.0)? {
        Op::Predefined(op) => Some((op, Named::from_handle(datatype.0)?)),
        Op::User(_) => None,
    }
}

pub unsafe fn MPI_Accumulate_c(
    origin_addr: *const c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
) -> Outcome {
    let is_one = origin_count == 1 && target_count == 1 && origin_datatype == target_datatype;
    if is_one
        && op != MPI_NO_OP
        && !origin_addr.is_null()
        && let Some((op, named)) = plain(op, target_datatype)
    {
        let (from, disp) = (origin_addr.cast(), target_disp as i64);
        let add = |object: &WinObject| {
            let nowhere = std::ptr::null_mut();
            let win = &object.win;
            // SAFETY: `origin_addr` holds an element as the C binding of MPI_Accumulate_c requires of its caller; the old value is not requested.
            unsafe {
                win.accumulates()
                    .fetch_and_op_plain(from, nowhere, named, op, target_rank, disp)
            }
        };
        if state::with_win(win, add) {
            return Ok(());
        }
    }
    let object = state::win(win)?;
    let part = Part::new(target_rank, target_disp, target_count, target_datatype)?;
    // SAFETY: `origin_addr` is valid as the C binding of MPI_Accumulate_c requires of its caller.
    let origin = unsafe { send_buf(origin_addr, origin_count, origin_datatype)? };
    let op = state::op(op)?;
    Ok(object
        .win
        .accumulates()
        .accumulate(&origin, part.there(), &op)?)
}

pub unsafe fn MPI_Raccumulate_c(
    origin_addr: *const c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Outcome {
    state::win(win)?
        .win
        .passive()
        .check("MPI_Raccumulate", target_rank)?;
    // SAFETY: `origin_addr` and `request` are valid as the C binding of MPI_Raccumulate_c requires of its caller; the origin may be reused when the call returns.
    unsafe {
        MPI_Accumulate_c(
            origin_addr,
            origin_count,
            origin_datatype,
            target_rank,
            target_disp,
            target_count,
            target_datatype,
            op,
            win,
        )?;
        requested(None, request)
    }
}

/// Starts a get-accumulate, with or without request.
///
/// # Safety
/// The buffers are the caller's and valid until the access is complete.
unsafe fn get_accumulate(
    origin: (*const c_void, MPI_Count, MPI_Datatype),
    result: (*mut c_void, MPI_Count, MPI_Datatype),
    part: &Part,
    op: MPI_Op,
    win: MPI_Win,
) -> Result<Option<Req>, Failure> {
    let object = state::win(win)?;
    // SAFETY: `origin` and `result` are valid by the `# Safety` contract of this function.
    let (origin, mut result) = unsafe {
        // With MPI_NO_OP all origin arguments are ignored (section 12.3.4).
        let origin = match op {
            MPI_NO_OP => SendBuf::empty(),
            _ => send_buf(origin.0, origin.1, origin.2)?,
        };
        (origin, recv_buf(result.0, result.1, result.2)?)
    };
    let op = state::op(op)?;
    let there = part.there();
    Ok(object
        .win
        .accumulates()
        .get_accumulate(&origin, &mut result, there, &op)?)
}

pub unsafe fn MPI_Get_accumulate_c(
    origin_addr: *const c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    result_addr: *mut c_void,
    result_count: MPI_Count,
    result_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
) -> Outcome {
    let reads_only = op == MPI_NO_OP;
    let is_one = result_count == 1 && target_count == 1 && result_datatype == target_datatype;
    let alike = reads_only || origin_count == 1 && origin_datatype == target_datatype;
    let is_predefined = plain(op, target_datatype).is_some();
    if is_predefined
        && is_one
        && alike
        && !result_addr.is_null()
        && (reads_only || !origin_addr.is_null())
    {
        // SAFETY: `origin_addr` and `result_addr` are valid as the C binding of MPI_Get_accumulate_c requires of its caller.
        unsafe {
            return MPI_Fetch_and_op(
                origin_addr,
                result_addr,
                target_datatype,
                target_rank,
                target_disp,
                op,
                win,
            );
        }
    }
    let part = Part::new(target_rank, target_disp, target_count, target_datatype)?;
    let origin = (origin_addr, origin_count, origin_datatype);
    let result = (result_addr, result_count, result_datatype);
    // SAFETY: the buffers in `origin` and `result` are valid as the C binding of MPI_Get_accumulate_c requires of its caller.
    let req = unsafe { get_accumulate(origin, result, &part, op, win)? };
    state::win(win)?.win.accumulates().give_up(req);
    Ok(())
}

pub unsafe fn MPI_Rget_accumulate_c(
    origin_addr: *const c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    result_addr: *mut c_void,
    result_count: MPI_Count,
    result_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Outcome {
    state::win(win)?
        .win
        .passive()
        .check("MPI_Rget_accumulate", target_rank)?;
    let part = Part::new(target_rank, target_disp, target_count, target_datatype)?;
    let origin = (origin_addr, origin_count, origin_datatype);
    let result = (result_addr, result_count, result_datatype);
    // SAFETY: the buffers in `origin` and `result`, and `request`, are valid as the C binding of MPI_Rget_accumulate_c requires of its caller.
    unsafe {
        let req = get_accumulate(origin, result, &part, op, win)?;
        requested(req, request)
    }
}

pub unsafe fn MPI_Fetch_and_op(
    origin_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    op: MPI_Op,
    win: MPI_Win,
) -> Outcome {
    let (from, to, disp) = (origin_addr.cast(), result_addr.cast(), target_disp as i64);
    let there = !result_addr.is_null() && (op == MPI_NO_OP || !origin_addr.is_null());
    if there && let Some((op, named)) = plain(op, datatype) {
        let fetch = |object: &WinObject| {
            let win = &object.win;
            // SAFETY: `origin_addr` and `result_addr` hold an element: the C binding of MPI_Fetch_and_op requires it of the caller.
            unsafe {
                win.accumulates()
                    .fetch_and_op_plain(from, to, named, op, target_rank, disp)
            }
        };
        if state::with_win(win, fetch) {
            return Ok(());
        }
    }
    let object = state::win(win)?;
    let part = Part::new(target_rank, target_disp, 1, datatype)?;
    // SAFETY: `origin_addr` and `result_addr` are valid as the C binding of MPI_Fetch_and_op requires of its caller.
    let (origin, mut result) = unsafe {
        let origin = match op {
            MPI_NO_OP => SendBuf::empty(),
            _ => send_buf(origin_addr, 1, datatype)?,
        };
        (origin, recv_buf(result_addr, 1, datatype)?)
    };
    let op = state::op(op)?;
    Ok(object
        .win
        .accumulates()
        .fetch_and_op(&origin, &mut result, part.there(), &op)?)
}

pub unsafe fn MPI_Compare_and_swap(
    origin_addr: *const c_void,
    compare_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    win: MPI_Win,
) -> Outcome {
    let named = Named::from_handle(datatype.0);
    let is_integer = named.is_some_and(|named| {
        matches!(
            named.info().kind,
            Kind::CInteger(_) | Kind::FInteger(_) | Kind::Multi(_)
        )
    });
    let there = !origin_addr.is_null() && !compare_addr.is_null() && !result_addr.is_null();
    if let (true, true, Some(named)) = (there, is_integer, named) {
        let size = named.info().size as usize;
        // SAFETY: `origin_addr`, `compare_addr` and `result_addr` are valid as the C binding of MPI_Compare_and_swap requires of its caller.
        let (origin, compare, result) = unsafe {
            (
                std::slice::from_raw_parts(origin_addr.cast(), size),
                std::slice::from_raw_parts(compare_addr.cast(), size),
                std::slice::from_raw_parts_mut(result_addr.cast(), size),
            )
        };
        let disp = target_disp as i64;
        let both = [origin, compare];
        let swap = |object: &WinObject| {
            let win = &object.win;
            win.accumulates()
                .compare_and_swap_plain(named, both, result, target_rank, disp)
        };
        if state::with_win(win, swap) {
            return Ok(());
        }
    }
    let object = state::win(win)?;
    let part = Part::new(target_rank, target_disp, 1, datatype)?;
    // SAFETY: `origin_addr`, `compare_addr` and `result_addr` are valid as the C binding of MPI_Compare_and_swap requires of its caller.
    let (origin, compare, mut result) = unsafe {
        (
            send_buf(origin_addr, 1, datatype)?,
            send_buf(compare_addr, 1, datatype)?,
            recv_buf(result_addr, 1, datatype)?,
        )
    };
    let both = [&origin, &compare];
    Ok(object
        .win
        .accumulates()
        .compare_and_swap(both, &mut result, part.there())?)
}
