//! Dynamic process management (sections 11.7 to 11.10): spawn, ports, published names, join.

use super::args::Text;
use super::groups;
use super::intercomm::leader_error;
use crate::abi::*;
use crate::error::Failure;
use crate::info::{self, Hints};
use crate::object::Attached;
use crate::object::comm::CommObject;
use crate::registry::comm::register_some;
use mpi_core::comm::{Comm, LeaderError};
use mpi_core::dynamic::PortName;
use std::ffi::c_int;
use std::time::Duration;

pub mod join;
pub mod names;
pub mod parent;
pub mod ports;
pub mod spawn;

/// Checks a root argument: a rank of an intracommunicator.
fn root_of(comm: &CommObject, root: c_int) -> Result<u32, Failure> {
    if comm.comm.is_inter() {
        let why = format!("{} is an intercommunicator", comm.label());
        return Err(Failure::new(MPI_ERR_COMM, why));
    }
    // MPI_ROOT is not allowed: it is defined for collectives on intercommunicators.
    groups::member(comm.comm.group(), root, "root")
        .map_err(|wrong| Failure::new(MPI_ERR_ROOT, wrong.message()))
}

/// Parses a port name argument.
fn port_of(port: Text) -> Result<PortName, Failure> {
    let text = port.string(MPI_MAX_PORT_NAME, MPI_ERR_PORT, "port_name")?;
    PortName::parse(&text)
        .map_err(|error| Failure::new(MPI_ERR_PORT, format!("port_name is `{text}`: {error}")))
}

/// Converts the root's error into the error that the root sends to the members of its group.
fn or_leader_error<T>(of_root: Result<T, Failure>) -> Result<T, LeaderError> {
    of_root.map_err(|failure| leader_error(&failure))
}

/// Returns the timeout of a connection in seconds, from the info key `timeout`.
/// The default is unlimited.
fn patience(hints: &Hints) -> Result<Option<Duration>, Failure> {
    let Some(text) = hints.get("timeout") else {
        return Ok(None);
    };
    let seconds = text.trim().parse::<f64>().ok();
    let patience = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    patience.map(Some).ok_or_else(|| {
        let why = format!("the info key timeout is `{text}`, which is no number of seconds");
        Failure::new(MPI_ERR_INFO_VALUE, why)
    })
}

/// Returns the timeout in the root's info argument.
fn patience_of(info: MPI_Info) -> Result<Option<Duration>, Failure> {
    patience(&info::hints(info)?)
}

/// Registers a handle for an intercommunicator.
/// The new object inherits the error handler of `on`, the communicator of the call.
fn register(new: Comm, on: &CommObject) -> Result<MPI_Comm, Failure> {
    let attached = Attached::inheriting(&on.attached);
    register_some(Some(new), attached, on.session.clone())
}
