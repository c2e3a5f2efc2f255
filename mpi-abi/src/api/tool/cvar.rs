//! Control variables (section 15.3.6): the library's parameters, read only.

use super::{int, look_up, result, text, wanted};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::tool::{Variable, at, known, no_handle};
use std::ffi::{c_char, c_int, c_void};

pub unsafe fn MPI_T_cvar_get_num(num_cvar: *mut c_int) -> Outcome {
    let len = int(known()?.variables.len());
    // SAFETY: `num_cvar` is valid as the C binding of MPI_T_cvar_get_num requires of its caller.
    unsafe { result(num_cvar, len, "num_cvar") }
}

pub unsafe fn MPI_T_cvar_get_info(
    cvar_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    datatype: *mut MPI_Datatype,
    enumtype: *mut MPI_T_enum,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
    scope: *mut c_int,
) -> Outcome {
    let variable = at(&known()?.variables, cvar_index, "control variables")?;
    // SAFETY: all pointers are null or writable, `name` and `desc` for the lengths in `name_len` and `desc_len`: the C binding of MPI_T_cvar_get_info requires it of the caller.
    unsafe {
        text(name, name_len, &variable.name);
        text(desc, desc_len, variable.help);
        wanted(verbosity, variable.verbosity);
        wanted(datatype, MPI_CHAR);
        wanted(enumtype, MPI_T_ENUM_NULL);
        wanted(bind, MPI_T_BIND_NO_OBJECT);
        wanted(scope, MPI_T_SCOPE_CONSTANT);
    }
    Ok(())
}

pub unsafe fn MPI_T_cvar_get_index(name: *const c_char, cvar_index: *mut c_int) -> Outcome {
    let names = known()?.variables.iter().map(|v| v.name.as_str());
    // SAFETY: `name` and `cvar_index` are valid as the C binding of MPI_T_cvar_get_index requires of its caller.
    unsafe { look_up(name, names, "control variable", cvar_index) }
}

pub unsafe fn MPI_T_cvar_handle_alloc(
    cvar_index: c_int,
    _obj_handle: *mut c_void,
    handle: *mut MPI_T_cvar_handle,
    count: *mut c_int,
) -> Outcome {
    let variable = at(&known()?.variables, cvar_index, "control variables")?;
    let made = MPI_T_cvar_handle(cvar_index as usize + 1);
    // SAFETY: `handle` and `count` are valid as the C binding of MPI_T_cvar_handle_alloc requires of its caller.
    unsafe {
        result(handle, made, "handle")?;
        result(count, int(variable.value.len() + 1), "count")
    }
}

/// Returns the variable of a handle.
fn variable(handle: MPI_T_cvar_handle) -> Result<&'static Variable, Failure> {
    let index = handle.0.checked_sub(1);
    let found = index.and_then(|i| known().ok()?.variables.get(i));
    found.ok_or_else(|| no_handle(handle.0))
}

pub unsafe fn MPI_T_cvar_handle_free(handle: *mut MPI_T_cvar_handle) -> Outcome {
    known()?;
    if handle.is_null() {
        return Err(Failure::new(MPI_T_ERR_INVALID, "handle is a null pointer"));
    }
    // SAFETY: `handle` is not null, so readable and writable: the C binding of MPI_T_cvar_handle_free requires it of the caller.
    unsafe {
        variable(handle.read())?;
        handle.write(MPI_T_CVAR_HANDLE_NULL);
    }
    Ok(())
}

pub unsafe fn MPI_T_cvar_read(handle: MPI_T_cvar_handle, buf: *mut c_void) -> Outcome {
    known()?;
    let value = &variable(handle)?.value;
    if buf.is_null() {
        return Err(Failure::new(MPI_T_ERR_INVALID, "buf is a null pointer"));
    }
    let to: *mut c_char = buf.cast();
    // SAFETY: `buf` has the number of characters that the handle's count reports, which is that of the text with its NUL: the C binding of MPI_T_cvar_read requires it of the caller.
    unsafe {
        to.copy_from_nonoverlapping(value.as_ptr().cast(), value.len());
        to.add(value.len()).write(0);
    }
    Ok(())
}

pub unsafe fn MPI_T_cvar_write(handle: MPI_T_cvar_handle, _buf: *const c_void) -> Outcome {
    known()?;
    let name = &variable(handle)?.name;
    Err(Failure::new(
        MPI_T_ERR_CVAR_SET_NEVER,
        format!("{name} is read when the library starts and cannot be set afterwards"),
    ))
}
