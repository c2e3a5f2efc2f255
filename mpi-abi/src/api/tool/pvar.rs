//! Performance variables (section 15.3.7).
//!
//! All variables can be read at any time, and none can be written.
//! Counters can be started, stopped and reset.

use super::{int, look_up, null, result, text, wanted};
use crate::abi::*;
use crate::api::args::{InOut, Out, SizedText, Text, Untyped};
use crate::error::{Failure, Outcome};
use crate::tool::enumeration::Enumeration;
use crate::tool::pvar::{self, Change, PVARS, Pvar};
use crate::tool::{at, known};
use std::ffi::{c_int, c_void};

pub fn MPI_T_pvar_get_num(num_pvar: Out<c_int>) -> Outcome {
    known()?;
    result(num_pvar, int(PVARS.len()), "num_pvar")
}

pub fn MPI_T_pvar_get_info(
    pvar_index: c_int,
    name: SizedText,
    verbosity: Out<c_int>,
    var_class: Out<c_int>,
    datatype: Out<MPI_Datatype>,
    enumtype: Out<MPI_T_enum>,
    desc: SizedText,
    bind: Out<c_int>,
    readonly: Out<c_int>,
    continuous: Out<c_int>,
    atomic: Out<c_int>,
) -> Outcome {
    known()?;
    let variable = at(PVARS, pvar_index, "performance variables")?;
    text(name, variable.name);
    text(desc, variable.help);
    wanted(verbosity, MPI_T_VERBOSITY_TUNER_BASIC);
    wanted(var_class, variable.class);
    wanted(datatype, variable.datatype());
    let items = variable.items().map(Enumeration::handle);
    wanted(enumtype, items.unwrap_or(MPI_T_ENUM_NULL));
    wanted(bind, variable.bound().constant());
    // No variable can be written, and those that change all the time cannot be reset (15.3.7).
    wanted(readonly, variable.is_continuous().into());
    wanted(continuous, variable.is_continuous().into());
    wanted(atomic, 0);
    Ok(())
}

pub fn MPI_T_pvar_get_index(name: Text, var_class: c_int, pvar_index: Out<c_int>) -> Outcome {
    known()?;
    // The search is for name and class: a variable of another class does not match.
    let names = PVARS
        .iter()
        .map(|variable| match variable.class == var_class {
            true => variable.name,
            false => "",
        });
    look_up(name, names, "performance variable", pvar_index)
}

pub fn MPI_T_pvar_session_create(session: Out<MPI_T_pvar_session>) -> Outcome {
    known()?;
    if session.is_null() {
        return Err(null("session"));
    }
    result(session, pvar::begin_session(), "session")
}

pub fn MPI_T_pvar_session_free(session: InOut<MPI_T_pvar_session>) -> Outcome {
    known()?;
    let freed = session.peek().ok_or_else(|| null("session"))?;
    pvar::end_session(freed)?;
    result(session.out(), MPI_T_PVAR_SESSION_NULL, "session")
}

pub fn MPI_T_pvar_handle_alloc(
    session: MPI_T_pvar_session,
    pvar_index: c_int,
    obj_handle: Untyped,
    handle: Out<MPI_T_pvar_handle>,
    count: Out<c_int>,
) -> Outcome {
    known()?;
    let variable = at(PVARS, pvar_index, "performance variables")?;
    if handle.is_null() {
        return Err(null("handle"));
    }
    let object = variable.bound().object(obj_handle.handle())?;
    let (made, values) = pvar::allocate(session, pvar_index as usize, object)?;
    result(count, int(values), "count")?;
    result(handle, made, "handle")
}

pub fn MPI_T_pvar_handle_free(
    session: MPI_T_pvar_session,
    handle: InOut<MPI_T_pvar_handle>,
) -> Outcome {
    known()?;
    let freed = handle.peek().ok_or_else(|| null("handle"))?;
    pvar::release(session, freed)?;
    result(handle.out(), MPI_T_PVAR_HANDLE_NULL, "handle")
}

/// Starts, stops or resets a variable.
/// With MPI_T_PVAR_ALL_HANDLES, variables that do not support the operation are skipped (15.3.7).
fn change(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    change: Change,
    (class, why): (c_int, &str),
) -> Outcome {
    known()?;
    for handle in pvar::meant(session, handle)? {
        let variable = pvar::find(session, handle)?;
        if variable.is_continuous() {
            return Err(Failure::new(class, format!("{} {why}", variable.name)));
        }
        pvar::change(session, handle, change)?;
    }
    Ok(())
}

const ALWAYS: (c_int, &str) = (
    MPI_T_ERR_PVAR_NO_STARTSTOP,
    "is kept all the time and cannot be started or stopped",
);
const READ_ONLY: &str = "can only be read";

pub fn MPI_T_pvar_start(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Outcome {
    change(session, handle, Change::Start, ALWAYS)
}

pub fn MPI_T_pvar_stop(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Outcome {
    change(session, handle, Change::Stop, ALWAYS)
}

pub fn MPI_T_pvar_read(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    buf: Untyped,
) -> Outcome {
    known()?;
    let values = pvar::read(session, handle)?;
    let datatype = pvar::find(session, handle)?.datatype();
    let stored = match (datatype, values.as_slice()) {
        (MPI_INT, [item]) => buf.put_int(*item as c_int),
        _ => buf.put_words(values.into_iter()),
    };
    match stored {
        true => Ok(()),
        false => Err(null("buf")),
    }
}

pub fn MPI_T_pvar_write(
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

pub fn MPI_T_pvar_reset(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Outcome {
    change(
        session,
        handle,
        Change::Reset,
        (MPI_T_ERR_PVAR_NO_WRITE, READ_ONLY),
    )
}

pub fn MPI_T_pvar_readreset(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    _buf: Untyped,
) -> Outcome {
    known()?;
    let Pvar { name, .. } = pvar::find(session, handle)?;
    Err(Failure::new(
        MPI_T_ERR_PVAR_NO_ATOMIC,
        format!("{name} cannot be read and reset in one step"),
    ))
}
