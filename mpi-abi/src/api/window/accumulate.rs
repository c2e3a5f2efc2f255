//! Accumulate, get-accumulate, fetch-and-op and compare-and-swap (sections 12.3.4 and 12.3.5).
#![allow(unsafe_code)]

use super::{Part, requested};
use crate::abi::*;
use crate::api::args::{Out, RecvMem, SendMem};
use crate::error::{Failure, Outcome};
use crate::object::window::WinObject;
use crate::state;
use mpi_core::datatype::{Kind, Named, SendBuf};
use mpi_core::op::{Op, Predefined};
use mpi_core::request::Req;
use std::ffi::{c_int, c_void};

/// Returns the predefined operator and datatype for the fast path, or `None`.
fn plain(op: MPI_Op, datatype: MPI_Datatype) -> Option<(Predefined, Named)> {
    match Op::predefined(op.0)? {
        Op::Predefined(op) => Some((op, Named::from_handle(datatype.0)?)),
        Op::User(_) => None,
    }
}

#[inline(always)]
pub fn MPI_Accumulate_c(
    origin_addr: SendMem,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
) -> Outcome {
    let is_one =
        origin_addr.count() == 1 && target_count == 1 && origin_addr.datatype() == target_datatype;
    if is_one
        && op != MPI_NO_OP
        && origin_addr.is_on_host()
        && let Some((op, named)) = plain(op, target_datatype)
    {
        let (from, disp) = (origin_addr.address().cast(), target_disp as i64);
        let add = |object: &WinObject| {
            let nowhere = std::ptr::null_mut();
            let win = &object.win;
            // SAFETY: `origin_addr` holds one element by the contract of `SendMem::new`.
            // The old value is not requested.
            unsafe {
                win.accumulates()
                    .fetch_and_op_plain(from, nowhere, named, op, target_rank, disp)
            }
        };
        if state::with_win(win, add) {
            return Ok(());
        }
    }
    let is_row = target_count > 1
        && origin_addr.count() == target_count
        && origin_addr.datatype() == target_datatype;
    if is_row && accumulated_row(&origin_addr, (target_rank, target_disp), op, win) {
        return Ok(());
    }
    let part = || Part::new(target_rank, target_disp, target_count, target_datatype);
    accumulate(&origin_addr, part, op, win)
}

/// Accumulates several elements of one basic type, if the fast path accepts them.
#[inline(never)]
fn accumulated_row(
    origin: &SendMem,
    (rank, disp): (c_int, MPI_Aint),
    op: MPI_Op,
    win: MPI_Win,
) -> bool {
    let (Some((op, named)), Ok(count)) = (
        plain(op, origin.datatype()),
        usize::try_from(origin.count()),
    ) else {
        return false;
    };
    if op == Predefined::NoOp || !origin.is_on_host() {
        return false;
    }
    let (from, disp) = (origin.address().cast(), disp as i64);
    state::with_win(win, |object| {
        let accumulates = object.win.accumulates();
        // SAFETY: `origin` holds `count` elements by the contract of `SendMem::new`.
        // The elements of a basic type that the fast path accepts are contiguous.
        unsafe { accumulates.accumulate_plain(from, (count, named), op, rank, disp) }
    })
}

/// Accumulates elements of any datatype, on the general path.
#[inline(never)]
fn accumulate(
    origin: &SendMem,
    part: impl FnOnce() -> Result<Part, Failure>,
    op: MPI_Op,
    win: MPI_Win,
) -> Outcome {
    let object = state::win(win)?;
    let part = part()?;
    let origin = origin.buffer()?;
    let op = state::op(op)?;
    Ok(object
        .win
        .accumulates()
        .accumulate(&origin, part.there(), &op)?)
}

pub fn MPI_Raccumulate_c(
    origin_addr: SendMem,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
    request: Out<MPI_Request>,
) -> Outcome {
    state::win(win)?
        .win
        .passive()
        .check("MPI_Raccumulate", target_rank)?;
    MPI_Accumulate_c(
        origin_addr,
        target_rank,
        target_disp,
        target_count,
        target_datatype,
        op,
        win,
    )?;
    requested(None, request)
}

/// Starts a get-accumulate, with or without a request.
fn get_accumulate(
    origin: SendMem,
    result: RecvMem,
    part: &Part,
    op: MPI_Op,
    win: MPI_Win,
) -> Result<Option<Req>, Failure> {
    let object = state::win(win)?;
    // With MPI_NO_OP the origin arguments are ignored (section 12.3.4).
    let origin = match op {
        MPI_NO_OP => SendBuf::empty(),
        _ => origin.buffer()?,
    };
    let mut result = result.buffer()?;
    let op = state::op(op)?;
    let there = part.there();
    Ok(object
        .win
        .accumulates()
        .get_accumulate(&origin, &mut result, there, &op)?)
}

pub fn MPI_Get_accumulate_c(
    origin_addr: SendMem,
    result_addr: RecvMem,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
) -> Outcome {
    let reads_only = op == MPI_NO_OP;
    let is_one =
        result_addr.count() == 1 && target_count == 1 && result_addr.datatype() == target_datatype;
    let alike = reads_only || origin_addr.count() == 1 && origin_addr.datatype() == target_datatype;
    let is_predefined = plain(op, target_datatype).is_some();
    if is_predefined
        && is_one
        && alike
        && result_addr.is_on_host()
        && (reads_only || origin_addr.is_on_host())
    {
        return fetch_and_op(origin_addr, result_addr, target_rank, target_disp, op, win);
    }
    let part = Part::new(target_rank, target_disp, target_count, target_datatype)?;
    let req = get_accumulate(origin_addr, result_addr, &part, op, win)?;
    state::win(win)?.win.accumulates().give_up(req);
    Ok(())
}

pub fn MPI_Rget_accumulate_c(
    origin_addr: SendMem,
    result_addr: RecvMem,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
    request: Out<MPI_Request>,
) -> Outcome {
    state::win(win)?
        .win
        .passive()
        .check("MPI_Rget_accumulate", target_rank)?;
    let part = Part::new(target_rank, target_disp, target_count, target_datatype)?;
    let req = get_accumulate(origin_addr, result_addr, &part, op, win)?;
    requested(req, request)
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
    // SAFETY: MPI_Fetch_and_op requires of its caller that both addresses hold one element.
    // The origin address may be invalid if the operator ignores it.
    let (origin, result) = unsafe {
        (
            SendMem::new(origin_addr, 1, datatype),
            RecvMem::new(result_addr, 1, datatype),
        )
    };
    fetch_and_op(origin, result, target_rank, target_disp, op, win)
}

/// Fetches and updates one element of the datatype of `result`.
/// `origin` is one such element, or is ignored by the operator.
#[inline(always)]
fn fetch_and_op(
    origin: SendMem,
    result: RecvMem,
    target_rank: c_int,
    target_disp: MPI_Aint,
    op: MPI_Op,
    win: MPI_Win,
) -> Outcome {
    let (from, to, disp) = (
        origin.address().cast(),
        result.address().cast(),
        target_disp as i64,
    );
    let datatype = result.datatype();
    let there = result.is_on_host() && (op == MPI_NO_OP || origin.is_on_host());
    if there && let Some((op, named)) = plain(op, datatype) {
        let fetch = |object: &WinObject| {
            let win = &object.win;
            // SAFETY: both addresses hold one element (`SendMem::new`, `RecvMem::new`).
            // The operator may ignore the origin.
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
    let origin = match op {
        MPI_NO_OP => SendBuf::empty(),
        _ => origin.buffer()?,
    };
    let mut result = result.buffer()?;
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
    // SAFETY: MPI_Compare_and_swap requires one element at each of the addresses.
    let (origin_mem, compare_mem, result_mem) = unsafe {
        (
            SendMem::new(origin_addr, 1, datatype),
            SendMem::new(compare_addr, 1, datatype),
            RecvMem::new(result_addr, 1, datatype),
        )
    };
    let there = origin_mem.is_on_host() && compare_mem.is_on_host() && result_mem.is_on_host();
    if let (true, true, Some(named)) = (there, is_integer, named) {
        let size = named.info().size as usize;
        // SAFETY: MPI_Compare_and_swap requires one element at each of the addresses.
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
    let (origin, compare) = (origin_mem.buffer()?, compare_mem.buffer()?);
    let mut result = result_mem.buffer()?;
    let both = [&origin, &compare];
    Ok(object
        .win
        .accumulates()
        .compare_and_swap(both, &mut result, part.there())?)
}
