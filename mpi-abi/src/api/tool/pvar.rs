//! Performance variables (section 15.3.7): all of them can be read at any time, and none can be started, stopped or written.

use super::{int, look_up, result, text, wanted};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::tool::pvar::{self, PVARS, Pvar};
use crate::tool::{at, known};
use std::ffi::{c_char, c_int, c_void};

pub unsafe fn MPI_T_pvar_get_num(num_pvar: *mut c_int) -> Outcome {
    known()?;
    // SAFETY: `num_pvar` is valid as the C binding of MPI_T_pvar_get_num requires of its caller.
    unsafe { result(num_pvar, int(PVARS.len()), "num_pvar") }
}

pub unsafe fn MPI_T_pvar_get_info(
    pvar_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    var_class: *mut c_int,
    datatype: *mut MPI_Datatype,
    enumtype: *mut MPI_T_enum,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
    readonly: *mut c_int,
    continuous: *mut c_int,
    atomic: *mut c_int,
) -> Outcome {
    known()?;
    let variable = at(PVARS, pvar_index, "performance variables")?;
    // SAFETY: all pointers are null or writable, `name` and `desc` for the lengths in `name_len` and `desc_len`: the C binding of MPI_T_pvar_get_info requires it of the caller.
    unsafe {
        text(name, name_len, variable.name);
        text(desc, desc_len, variable.help);
        wanted(verbosity, MPI_T_VERBOSITY_TUNER_BASIC);
        wanted(var_class, variable.class);
        wanted(datatype, MPI_UNSIGNED_LONG_LONG);
        wanted(enumtype, MPI_T_ENUM_NULL);
        wanted(bind, MPI_T_BIND_NO_OBJECT);
        wanted(readonly, 1);
        wanted(continuous, 1);
        wanted(atomic, 0);
    }
    Ok(())
}

pub unsafe fn MPI_T_pvar_get_index(
    name: *const c_char,
    var_class: c_int,
    pvar_index: *mut c_int,
) -> Outcome {
    known()?;
    // A name with another class is unknown.
    let names = PVARS
        .iter()
        .map(|variable| match variable.class == var_class {
            true => variable.name,
            false => "",
        });
    // SAFETY: `name` and `pvar_index` are valid as the C binding of MPI_T_pvar_get_index requires of its caller.
    unsafe { look_up(name, names, "performance variable", pvar_index) }
}

pub unsafe fn MPI_T_pvar_session_create(session: *mut MPI_T_pvar_session) -> Outcome {
    known()?;
    if session.is_null() {
        return Err(Failure::new(MPI_T_ERR_INVALID, "session is a null pointer"));
    }
    // SAFETY: `session` is valid as the C binding of MPI_T_pvar_session_create requires of its caller.
    unsafe { result(session, pvar::begin_session(), "session") }
}

pub unsafe fn MPI_T_pvar_session_free(session: *mut MPI_T_pvar_session) -> Outcome {
    known()?;
    if session.is_null() {
        return Err(Failure::new(MPI_T_ERR_INVALID, "session is a null pointer"));
    }
    // SAFETY: `session` is not null, so readable and writable: the C binding of MPI_T_pvar_session_free requires it of the caller.
    unsafe {
        pvar::end_session(session.read())?;
        session.write(MPI_T_PVAR_SESSION_NULL);
    }
    Ok(())
}

pub unsafe fn MPI_T_pvar_handle_alloc(
    session: MPI_T_pvar_session,
    pvar_index: c_int,
    _obj_handle: *mut c_void,
    handle: *mut MPI_T_pvar_handle,
    count: *mut c_int,
) -> Outcome {
    known()?;
    at(PVARS, pvar_index, "performance variables")?;
    if handle.is_null() {
        return Err(Failure::new(MPI_T_ERR_INVALID, "handle is a null pointer"));
    }
    // SAFETY: `handle` and `count` are valid as the C binding of MPI_T_pvar_handle_alloc requires of its caller.
    unsafe {
        result(count, 1, "count")?;
        result(
            handle,
            pvar::allocate(session, pvar_index as usize)?,
            "handle",
        )
    }
}

pub unsafe fn MPI_T_pvar_handle_free(
    session: MPI_T_pvar_session,
    handle: *mut MPI_T_pvar_handle,
) -> Outcome {
    known()?;
    if handle.is_null() {
        return Err(Failure::new(MPI_T_ERR_INVALID, "handle is a null pointer"));
    }
    // SAFETY: `handle` is not null, so readable and writable: the C binding of MPI_T_pvar_handle_free requires it of the caller.
    unsafe {
        pvar::release(session, handle.read())?;
        handle.write(MPI_T_PVAR_HANDLE_NULL);
    }
    Ok(())
}

/// The failure of changing a variable; for all handles it succeeds, since it skips variables that cannot be changed, which are all (section 15.3.7).
fn unchangeable(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    class: c_int,
    why: &str,
) -> Outcome {
    known()?;
    if pvar::means_all(session, handle)? {
        return Ok(());
    }
    let Pvar { name, .. } = pvar::find(session, handle)?;
    Err(Failure::new(class, format!("{name} {why}")))
}

const ALWAYS: &str = "is kept all the time and cannot be started or stopped";
const READ_ONLY: &str = "can only be read";

pub unsafe fn MPI_T_pvar_start(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Outcome {
    unchangeable(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP, ALWAYS)
}

pub unsafe fn MPI_T_pvar_stop(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Outcome {
    unchangeable(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP, ALWAYS)
}

pub unsafe fn MPI_T_pvar_read(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    buf: *mut c_void,
) -> Outcome {
    known()?;
    let value = pvar::find(session, handle)?.value();
    // SAFETY: `buf` is null or writable for one element of the variable's type: the C binding of MPI_T_pvar_read requires it of the caller.
    unsafe { result(buf.cast::<u64>(), value, "buf") }
}

pub unsafe fn MPI_T_pvar_write(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    _buf: *const c_void,
) -> Outcome {
    known()?;
    let Pvar { name, .. } = pvar::find(session, handle)?;
    Err(Failure::new(
        MPI_T_ERR_PVAR_NO_WRITE,
        format!("{name} {READ_ONLY}"),
    ))
}

pub unsafe fn MPI_T_pvar_reset(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Outcome {
    unchangeable(session, handle, MPI_T_ERR_PVAR_NO_WRITE, READ_ONLY)
}

pub unsafe fn MPI_T_pvar_readreset(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    _buf: *mut c_void,
) -> Outcome {
    known()?;
    let Pvar { name, .. } = pvar::find(session, handle)?;
    Err(Failure::new(
        MPI_T_ERR_PVAR_NO_WRITE,
        format!("{name} {READ_ONLY}"),
    ))
}
