//! Put and get (sections 12.3.1 to 12.3.3 and 12.3.5).

#![allow(unsafe_code)]

use super::{Part, requested};
use crate::abi::*;
use crate::api::args::{plain_data, plain_room, recv_buf, send_buf};
use crate::error::Outcome;
use crate::state;
use std::ffi::{c_int, c_void};

pub unsafe fn MPI_Put_c(
    origin_addr: *const c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
) -> Outcome {
    if origin_datatype == target_datatype && origin_count == target_count {
        // SAFETY: `origin_addr` is valid as the C binding of MPI_Put_c requires of its caller.
        let data = unsafe { plain_data(origin_addr, origin_count, origin_datatype) };
        let disp = target_disp as i64;
        let put =
            |data| state::with_win(win, |w| w.win.accesses().put_plain(data, target_rank, disp));
        if data.is_some_and(put) {
            return Ok(());
        }
    }
    let object = state::win(win)?;
    let part = Part::new(target_rank, target_disp, target_count, target_datatype)?;
    // SAFETY: `origin_addr` is valid as the C binding of MPI_Put_c requires of its caller.
    let origin = unsafe { send_buf(origin_addr, origin_count, origin_datatype)? };
    Ok(object.win.accesses().put(&origin, part.there())?)
}

pub unsafe fn MPI_Get_c(
    origin_addr: *mut c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
) -> Outcome {
    if origin_datatype == target_datatype && origin_count == target_count {
        // SAFETY: `origin_addr` is valid as the C binding of MPI_Get_c requires of its caller.
        let room = unsafe { plain_room(origin_addr, origin_count, origin_datatype) };
        let disp = target_disp as i64;
        let get = |room: &mut [u8]| {
            state::with_win(win, |w| w.win.accesses().get_plain(room, target_rank, disp))
        };
        if room.is_some_and(|room| room.with(get)) {
            return Ok(());
        }
    }
    let object = state::win(win)?;
    let part = Part::new(target_rank, target_disp, target_count, target_datatype)?;
    // SAFETY: `origin_addr` is valid as the C binding of MPI_Get_c requires of its caller.
    let mut origin = unsafe { recv_buf(origin_addr, origin_count, origin_datatype)? };
    let req = object.win.accesses().get(&mut origin, part.there())?;
    object.win.accumulates().give_up(req);
    Ok(())
}

pub unsafe fn MPI_Rput_c(
    origin_addr: *const c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Outcome {
    let object = state::win(win)?;
    object.win.passive().check("MPI_Rput", target_rank)?;
    // SAFETY: `origin_addr` and `request` are valid as the C binding of MPI_Rput_c requires of its caller; the origin may be reused when the call returns.
    unsafe {
        MPI_Put_c(
            origin_addr,
            origin_count,
            origin_datatype,
            target_rank,
            target_disp,
            target_count,
            target_datatype,
            win,
        )?;
        requested(None, request)
    }
}

pub unsafe fn MPI_Rget_c(
    origin_addr: *mut c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Outcome {
    let object = state::win(win)?;
    object.win.passive().check("MPI_Rget", target_rank)?;
    let part = Part::new(target_rank, target_disp, target_count, target_datatype)?;
    // SAFETY: `origin_addr` and `request` are valid as the C binding of MPI_Rget_c requires of its caller.
    unsafe {
        let mut origin = recv_buf(origin_addr, origin_count, origin_datatype)?;
        let req = object.win.accesses().get(&mut origin, part.there())?;
        requested(req, request)
    }
}
