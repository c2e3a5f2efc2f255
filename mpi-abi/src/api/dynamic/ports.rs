//! Ports, and connecting two groups through one (section 11.9).

use super::{or_leader_error, patience_of, port_of, register, root_of};
use crate::abi::*;
use crate::api::args::{out, write_string};
use crate::error::{Failure, Outcome};
use crate::{info, state};
use std::ffi::{c_char, c_int};

pub unsafe fn MPI_Open_port(info: MPI_Info, port_name: *mut c_char) -> Outcome {
    info::hints(info)?;
    let port = state::engine()?.open_port()?.to_string();
    let mut ignored = 0;
    // SAFETY: `port_name` has MPI_MAX_PORT_NAME bytes: the C binding of MPI_Open_port requires it of the caller.
    unsafe {
        write_string(
            port_name,
            &mut ignored,
            &port,
            MPI_MAX_PORT_NAME,
            "port_name",
        )
    }
}

pub unsafe fn MPI_Close_port(port_name: *const c_char) -> Outcome {
    // SAFETY: `port_name` is valid as the C binding of MPI_Close_port requires of its caller.
    let port = unsafe { port_of(port_name)? };
    match state::engine()?.close_port(&port) {
        true => Ok(()),
        false => Err(Failure::new(
            MPI_ERR_PORT,
            format!(
                "port_name is `{port}`, which this process has not opened, or has closed already"
            ),
        )),
    }
}

pub unsafe fn MPI_Comm_accept(
    port_name: *const c_char,
    info: MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
) -> Outcome {
    let object = state::comm(comm)?;
    let root = root_of(&object, root)?;
    // The port and the info are significant only at the root.
    let port = (object.comm.rank() == root).then(|| {
        info::hints(info)?;
        // SAFETY: `port_name` is valid as the C binding of MPI_Comm_accept requires of its caller.
        unsafe { port_of(port_name) }
    });
    let accepted = object
        .comm
        .ports()
        .accept(root, port.map(or_leader_error), MPI_ERR_PORT);
    let new = state::engine()?.block_on(accepted)?;
    // SAFETY: `newcomm` is null or writable: the C binding of MPI_Comm_accept requires it of the caller.
    unsafe { out(newcomm, register(new, &object)?, "newcomm") }
}

pub unsafe fn MPI_Comm_connect(
    port_name: *const c_char,
    info: MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
) -> Outcome {
    let object = state::comm(comm)?;
    let root = root_of(&object, root)?;
    let asked = (object.comm.rank() == root).then(|| {
        let patience = patience_of(info)?;
        // SAFETY: `port_name` is valid as the C binding of MPI_Comm_connect requires of its caller.
        Ok((unsafe { port_of(port_name)? }, patience))
    });
    let (port, patience) = match asked {
        None => (None, None),
        Some(Err(failure)) => (Some(Err(failure)), None),
        Some(Ok((port, patience))) => (Some(Ok(port)), patience),
    };
    let connected =
        object
            .comm
            .ports()
            .connect(root, port.map(or_leader_error), patience, MPI_ERR_PORT);
    let new = state::engine()?.block_on(connected)?;
    // SAFETY: `newcomm` is null or writable: the C binding of MPI_Comm_connect requires it of the caller.
    unsafe { out(newcomm, register(new, &object)?, "newcomm") }
}
