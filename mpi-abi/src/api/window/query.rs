//! Window queries: name, group, shared memory segments.

#![allow(unsafe_code)]

use crate::abi::*;
use crate::api::args::{name, out, write_string};
use crate::api::groups;
use crate::error::{Failure, Outcome};
use crate::state;
use std::ffi::{c_char, c_int, c_void};

pub unsafe fn MPI_Win_set_name(win: MPI_Win, win_name: *const c_char) -> Outcome {
    let object = state::win(win)?;
    // SAFETY: `win_name` is null or NUL-terminated: the C binding of MPI_Win_set_name requires it of the caller.
    object.win.set_name(&unsafe { name(win_name, "win_name")? });
    Ok(())
}

pub unsafe fn MPI_Win_get_name(
    win: MPI_Win,
    win_name: *mut c_char,
    resultlen: *mut c_int,
) -> Outcome {
    // The name of MPI_WIN_NULL may be queried as well (section 7.8).
    let name = match win {
        MPI_WIN_NULL => "MPI_WIN_NULL".to_string(),
        _ => state::win(win)?.win.name(),
    };
    // SAFETY: `win_name` has MPI_MAX_OBJECT_NAME bytes and `resultlen` is writable: the C binding of MPI_Win_get_name requires it of the caller.
    unsafe { write_string(win_name, resultlen, &name, MPI_MAX_OBJECT_NAME, "win_name") }
}

pub unsafe fn MPI_Win_get_group(win: MPI_Win, group: *mut MPI_Group) -> Outcome {
    let members = state::win(win)?.win.group().clone();
    // SAFETY: `group` is null or writable: the C binding of MPI_Win_get_group requires it of the caller.
    unsafe { out(group, groups::register(members, None)?, "group") }
}

pub unsafe fn MPI_Win_shared_query_c(
    win: MPI_Win,
    rank: c_int,
    size: *mut MPI_Aint,
    disp_unit: *mut MPI_Aint,
    baseptr: *mut c_void,
) -> Outcome {
    let segment = state::win(win)?.win.memory().shared_segment(rank)?;
    // SAFETY: `size` and `disp_unit` are null or writable and `baseptr` is the address of a pointer: the C binding of MPI_Win_shared_query_c requires it of the caller.
    unsafe {
        out(size, segment.size as MPI_Aint, "size")?;
        out(disp_unit, segment.unit as MPI_Aint, "disp_unit")?;
        out(baseptr.cast(), segment.base, "baseptr")
    }
}

pub unsafe fn MPI_Win_shared_query(
    win: MPI_Win,
    rank: c_int,
    size: *mut MPI_Aint,
    disp_unit: *mut c_int,
    baseptr: *mut c_void,
) -> Outcome {
    let mut unit = 0;
    // SAFETY: `size` and `baseptr` are valid as the C binding of MPI_Win_shared_query requires of its caller; `unit` is a local.
    unsafe { MPI_Win_shared_query_c(win, rank, size, &mut unit, baseptr)? };
    let unit = c_int::try_from(unit).map_err(|_| {
        Failure::new(
            MPI_ERR_VALUE_TOO_LARGE,
            format!("the displacement unit of rank {rank} is {unit}, more than an int holds; MPI_Win_shared_query_c returns it"),
        )
    })?;
    // SAFETY: `disp_unit` is null or writable: the C binding of MPI_Win_shared_query requires it of the caller.
    unsafe { out(disp_unit, unit, "disp_unit") }
}
