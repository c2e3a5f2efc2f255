//! Control variables (section 15.3.6): the library's parameters, which are read-only.

use super::{int, look_up, null, result, text, wanted};
use crate::abi::*;
use crate::api::args::{InOut, Out, SizedText, Text, Untyped};
use crate::error::{Failure, Outcome};
use crate::tool::{Variable, at, known, no_handle};
use std::ffi::{c_int, c_void};

pub fn MPI_T_cvar_get_num(num_cvar: Out<c_int>) -> Outcome {
    let len = int(known()?.variables.len());
    result(num_cvar, len, "num_cvar")
}

pub fn MPI_T_cvar_get_info(
    cvar_index: c_int,
    name: SizedText,
    verbosity: Out<c_int>,
    datatype: Out<MPI_Datatype>,
    enumtype: Out<MPI_T_enum>,
    desc: SizedText,
    bind: Out<c_int>,
    scope: Out<c_int>,
) -> Outcome {
    let variable = at(&known()?.variables, cvar_index, "control variables")?;
    text(name, &variable.name);
    text(desc, variable.help);
    wanted(verbosity, variable.verbosity);
    wanted(datatype, MPI_CHAR);
    wanted(enumtype, MPI_T_ENUM_NULL);
    wanted(bind, MPI_T_BIND_NO_OBJECT);
    wanted(scope, MPI_T_SCOPE_CONSTANT);
    Ok(())
}

pub fn MPI_T_cvar_get_index(name: Text, cvar_index: Out<c_int>) -> Outcome {
    let names = known()?.variables.iter().map(|v| v.name.as_str());
    look_up(name, names, "control variable", cvar_index)
}

pub fn MPI_T_cvar_handle_alloc(
    cvar_index: c_int,
    _obj_handle: Untyped,
    handle: Out<MPI_T_cvar_handle>,
    count: Out<c_int>,
) -> Outcome {
    let variable = at(&known()?.variables, cvar_index, "control variables")?;
    let made = MPI_T_cvar_handle(cvar_index as usize + 1);
    result(handle, made, "handle")?;
    result(count, int(variable.value.len() + 1), "count")
}

/// Returns the variable of a handle.
fn variable(handle: MPI_T_cvar_handle) -> Result<&'static Variable, Failure> {
    let index = handle.0.checked_sub(1);
    let found = index.and_then(|i| known().ok()?.variables.get(i));
    found.ok_or_else(|| no_handle(handle.0))
}

pub fn MPI_T_cvar_handle_free(handle: InOut<MPI_T_cvar_handle>) -> Outcome {
    known()?;
    let freed = handle.peek().ok_or_else(|| null("handle"))?;
    variable(freed)?;
    result(handle.out(), MPI_T_CVAR_HANDLE_NULL, "handle")
}

pub fn MPI_T_cvar_read(handle: MPI_T_cvar_handle, buf: Untyped) -> Outcome {
    known()?;
    // The value has the length that MPI_T_cvar_handle_alloc has reported to the tool.
    let value = [variable(handle)?.value.as_bytes(), b"\0"].concat();
    match buf.put_bytes(&value) {
        true => Ok(()),
        false => Err(null("buf")),
    }
}

pub fn MPI_T_cvar_write(handle: MPI_T_cvar_handle, _buf: *const c_void) -> Outcome {
    known()?;
    let name = &variable(handle)?.name;
    Err(Failure::new(
        MPI_T_ERR_CVAR_SET_NEVER,
        format!("{name} is read when the library starts and cannot be set afterwards"),
    ))
}
