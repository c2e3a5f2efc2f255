//! Service names of ports, published for lookup (section 11.9.4).
//!
//! The launcher stores the published names until mpirun ends; all jobs of that mpirun see them.
//! Without a launcher, the names are shared by one user's processes on one host ([`MachineNames`]).

use crate::abi::*;
use crate::api::args::{Text, TextOut};
use crate::error::{Failure, Outcome};
use crate::{info, phase, state};
use mpi_core::rte::{MachineNames, Rte, RteError};

/// Returns the launcher, and the parsed service name.
fn service_of(service: Text, hints: MPI_Info) -> Result<(&'static dyn Rte, String), Failure> {
    state::engine()?;
    info::hints(hints)?;
    let name = service.string(MPI_MAX_PORT_NAME, MPI_ERR_ARG, "service_name")?;
    if name.is_empty() {
        return Err(Failure::new(MPI_ERR_ARG, "service_name is an empty string"));
    }
    let launcher = phase::launcher().ok_or_else(state::not_running)?;
    Ok((launcher, name))
}

fn failed(class: i32, service: &str) -> impl Fn(RteError) -> Failure + '_ {
    move |error| Failure::new(class, format!("the service `{service}`: {error}"))
}

pub fn MPI_Publish_name(service_name: Text, info: MPI_Info, port_name: Text) -> Outcome {
    let port = port_name.string(MPI_MAX_PORT_NAME, MPI_ERR_PORT, "port_name")?;
    let (launcher, service) = service_of(service_name, info)?;
    if launcher
        .lookup(&service)
        .map_err(failed(MPI_ERR_SERVICE, &service))?
        .is_some()
    {
        return Err(Failure::new(
            MPI_ERR_SERVICE,
            format!(
                "the service `{service}` is published already; MPI_Unpublish_name takes it back"
            ),
        ));
    }
    launcher
        .publish(&service, &port)
        .map_err(failed(MPI_ERR_SERVICE, &service))
}

pub fn MPI_Lookup_name(service_name: Text, info: MPI_Info, port_name: TextOut) -> Outcome {
    let (launcher, service) = service_of(service_name, info)?;
    let found = launcher
        .lookup(&service)
        .map_err(failed(MPI_ERR_NAME, &service))?;
    let found = found.map_or_else(|| MachineNames::look_up(&service), |port| Ok(Some(port)));
    let port = found.map_err(failed(MPI_ERR_NAME, &service))?;
    let port = port.ok_or_else(|| {
        Failure::new(
            MPI_ERR_NAME,
            format!(
                "no service `{service}` is published; names are known to all jobs of one mpirun, and those of a process without mpirun to all processes of its user on its machine"
            ),
        )
    })?;
    port_name.set(&port, "port_name").map(|_| ())
}

pub fn MPI_Unpublish_name(service_name: Text, info: MPI_Info, port_name: Text) -> Outcome {
    let port = port_name.string(MPI_MAX_PORT_NAME, MPI_ERR_PORT, "port_name")?;
    let (launcher, service) = service_of(service_name, info)?;
    let refused = |why: String| Failure::new(MPI_ERR_SERVICE, why);
    let found = launcher
        .lookup(&service)
        .map_err(failed(MPI_ERR_SERVICE, &service))?;
    match found {
        None => return Err(refused(format!("no service `{service}` is published"))),
        Some(known) if known != port => {
            let why =
                format!("the service `{service}` is published for another port than port_name");
            return Err(refused(why));
        }
        Some(_) => {}
    }
    let was_ours = launcher
        .unpublish(&service)
        .map_err(failed(MPI_ERR_SERVICE, &service))?;
    match was_ours {
        true => Ok(()),
        false => Err(refused(format!(
            "the service `{service}` was published by another process, which alone can take it back"
        ))),
    }
}
