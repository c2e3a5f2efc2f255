//! Window queries: name, group, shared memory segments.

use crate::abi::*;
use crate::api::args::{Out, Text, TextOut};
use crate::api::groups;
use crate::error::{Failure, Outcome};
use crate::state;
use std::ffi::{c_int, c_void};

pub fn MPI_Win_set_name(win: MPI_Win, win_name: Text) -> Outcome {
    let object = state::win(win)?;
    object.win.set_name(&win_name.name("win_name")?);
    Ok(())
}

pub fn MPI_Win_get_name(win: MPI_Win, win_name: TextOut, resultlen: Out<c_int>) -> Outcome {
    // The name of MPI_WIN_NULL can be queried too (section 7.8).
    let name = match win {
        MPI_WIN_NULL => "MPI_WIN_NULL".to_string(),
        _ => state::win(win)?.win.name(),
    };
    win_name.set_with_length(resultlen, &name, "win_name")
}

pub fn MPI_Win_get_group(win: MPI_Win, group: Out<MPI_Group>) -> Outcome {
    let members = state::win(win)?.win.group().clone();
    group.set(groups::register(members, None)?, "group")
}

pub fn MPI_Win_shared_query_c(
    win: MPI_Win,
    rank: c_int,
    size: Out<MPI_Aint>,
    disp_unit: Out<MPI_Aint>,
    baseptr: Out<*mut c_void>,
) -> Outcome {
    let segment = state::win(win)?.win.memory().shared_segment(rank)?;
    size.set(segment.size as MPI_Aint, "size")?;
    disp_unit.set(segment.unit as MPI_Aint, "disp_unit")?;
    baseptr.set(segment.base.cast(), "baseptr")
}

pub fn MPI_Win_shared_query(
    win: MPI_Win,
    rank: c_int,
    size: Out<MPI_Aint>,
    disp_unit: Out<c_int>,
    baseptr: Out<*mut c_void>,
) -> Outcome {
    let mut unit = 0;
    MPI_Win_shared_query_c(win, rank, size, Out::of(&mut unit), baseptr)?;
    let unit = c_int::try_from(unit).map_err(|_| {
        Failure::new(
            MPI_ERR_VALUE_TOO_LARGE,
            format!("the displacement unit of rank {rank} is {unit}, more than an int holds; MPI_Win_shared_query_c returns it"),
        )
    })?;
    disp_unit.set(unit, "disp_unit")
}
