//! Put and get (sections 12.3.1 to 12.3.3 and 12.3.5).

use super::{Part, requested};
use crate::abi::*;
use crate::api::args::{Out, RecvMem, SendMem};
use crate::error::{Failure, Outcome};
use crate::state;
use std::ffi::c_int;

#[inline(always)]
pub fn MPI_Put_c(
    origin_addr: SendMem,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
) -> Outcome {
    if origin_addr.datatype() == target_datatype && origin_addr.count() == target_count {
        let data = origin_addr.plain();
        let disp = target_disp as i64;
        let put =
            |data| state::with_win(win, |w| w.win.accesses().put_plain(data, target_rank, disp));
        if data.is_some_and(put) {
            return Ok(());
        }
    }
    let part = || Part::new(target_rank, target_disp, target_count, target_datatype);
    put(&origin_addr, part, win)
}

/// Puts elements of any datatype, on the general path.
#[inline(never)]
fn put(origin: &SendMem, part: impl FnOnce() -> Result<Part, Failure>, win: MPI_Win) -> Outcome {
    let object = state::win(win)?;
    let part = part()?;
    let origin = origin.buffer()?;
    Ok(object.win.accesses().put(&origin, part.there())?)
}

#[inline(always)]
pub fn MPI_Get_c(
    origin_addr: RecvMem,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
) -> Outcome {
    if origin_addr.datatype() == target_datatype && origin_addr.count() == target_count {
        let dest = origin_addr.plain();
        let disp = target_disp as i64;
        let get = |dest: &mut [u8]| {
            state::with_win(win, |w| w.win.accesses().get_plain(dest, target_rank, disp))
        };
        if dest.is_some_and(|dest| dest.with(get)) {
            return Ok(());
        }
    }
    let part = || Part::new(target_rank, target_disp, target_count, target_datatype);
    get(&origin_addr, part, win)
}

/// Gets elements of any datatype, on the general path.
#[inline(never)]
fn get(origin: &RecvMem, part: impl FnOnce() -> Result<Part, Failure>, win: MPI_Win) -> Outcome {
    let object = state::win(win)?;
    let part = part()?;
    let mut origin = origin.buffer()?;
    let req = object.win.accesses().get(&mut origin, part.there())?;
    object.win.accumulates().give_up(req);
    Ok(())
}

pub fn MPI_Rput_c(
    origin_addr: SendMem,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
    request: Out<MPI_Request>,
) -> Outcome {
    let object = state::win(win)?;
    object.win.passive().check("MPI_Rput", target_rank)?;
    MPI_Put_c(
        origin_addr,
        target_rank,
        target_disp,
        target_count,
        target_datatype,
        win,
    )?;
    requested(None, request)
}

pub fn MPI_Rget_c(
    origin_addr: RecvMem,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
    request: Out<MPI_Request>,
) -> Outcome {
    let object = state::win(win)?;
    object.win.passive().check("MPI_Rget", target_rank)?;
    let part = Part::new(target_rank, target_disp, target_count, target_datatype)?;
    let mut origin = origin_addr.buffer()?;
    let req = (object.win.accesses()).get_on_request(&mut origin, part.there())?;
    requested(req, request)
}
