//! Ports, and connections of two groups over a port (section 11.9).

use super::{or_leader_error, patience_of, port_of, register, root_of};
use crate::abi::*;
use crate::api::args::{Out, Text, TextOut};
use crate::error::{Failure, Outcome};
use crate::{info, state};
use std::ffi::c_int;

pub fn MPI_Open_port(info: MPI_Info, port_name: TextOut) -> Outcome {
    info::hints(info)?;
    let port = state::engine()?.ports().open()?.to_string();
    port_name.set(&port, "port_name").map(|_| ())
}

pub fn MPI_Close_port(port_name: Text) -> Outcome {
    let port = port_of(port_name)?;
    match state::engine()?.ports().close(&port) {
        true => Ok(()),
        false => Err(Failure::new(
            MPI_ERR_PORT,
            format!(
                "port_name is `{port}`, which this process has not opened, or has closed already"
            ),
        )),
    }
}

pub fn MPI_Comm_accept(
    port_name: Text,
    info: MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    newcomm: Out<MPI_Comm>,
) -> Outcome {
    let object = state::comm(comm)?;
    let root = root_of(&object, root)?;
    // The port and the info are significant only at the root.
    let port = (object.comm.rank() == root).then(|| {
        info::hints(info)?;
        port_of(port_name)
    });
    let accepted = object
        .comm
        .ports()
        .accept(root, port.map(or_leader_error), MPI_ERR_PORT);
    let new = state::engine()?.block_on(accepted)?;
    newcomm.set(register(new, &object)?, "newcomm")
}

pub fn MPI_Comm_connect(
    port_name: Text,
    info: MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    newcomm: Out<MPI_Comm>,
) -> Outcome {
    let object = state::comm(comm)?;
    let root = root_of(&object, root)?;
    let asked = (object.comm.rank() == root).then(|| {
        let patience = patience_of(info)?;
        Ok((port_of(port_name)?, patience))
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
    newcomm.set(register(new, &object)?, "newcomm")
}
