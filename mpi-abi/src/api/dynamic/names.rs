//! Published service names of ports (section 11.9.4).
//!
//! The launcher stores them: all jobs of one mpirun share them, and they end with it.
//! Names published by a process without a launcher are visible to all processes of its user on its host ([`MachineNames`]).

use crate::abi::*;
use crate::api::args::{string, write_string};
use crate::error::{Failure, Outcome};
use crate::{info, phase, state};
use mpi_core::rte::{MachineNames, Rte, RteError};
use std::ffi::c_char;

/// Returns the launcher, and the service argument.
///
/// # Safety
/// `service` is a string of the caller or null.
unsafe fn service_of(
    service: *const c_char,
    hints: MPI_Info,
) -> Result<(&'static dyn Rte, String), Failure> {
    state::engine()?;
    info::hints(hints)?;
    // SAFETY: `service` is null or NUL-terminated: `# Safety` of this function.
    let name = unsafe { string(service, MPI_MAX_PORT_NAME, MPI_ERR_ARG, "service_name")? };
    if name.is_empty() {
        return Err(Failure::new(MPI_ERR_ARG, "service_name is an empty string"));
    }
    let launcher = phase::launcher().ok_or_else(state::not_running)?;
    Ok((launcher, name))
}

fn failed(class: i32, service: &str) -> impl Fn(RteError) -> Failure + '_ {
    move |error| Failure::new(class, format!("the service `{service}`: {error}"))
}

pub unsafe fn MPI_Publish_name(
    service_name: *const c_char,
    info: MPI_Info,
    port_name: *const c_char,
) -> Outcome {
    // SAFETY: `service_name` and `port_name` are valid as the C binding of MPI_Publish_name requires of its caller.
    let ((launcher, service), port) = unsafe {
        let port = string(port_name, MPI_MAX_PORT_NAME, MPI_ERR_PORT, "port_name")?;
        (service_of(service_name, info)?, port)
    };
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

pub unsafe fn MPI_Lookup_name(
    service_name: *const c_char,
    info: MPI_Info,
    port_name: *mut c_char,
) -> Outcome {
    // SAFETY: `service_name` is valid as the C binding of MPI_Lookup_name requires of its caller.
    let (launcher, service) = unsafe { service_of(service_name, info)? };
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
    let mut ignored = 0;
    // SAFETY: `port_name` has MPI_MAX_PORT_NAME bytes: the C binding of MPI_Lookup_name requires it of the caller.
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

pub unsafe fn MPI_Unpublish_name(
    service_name: *const c_char,
    info: MPI_Info,
    port_name: *const c_char,
) -> Outcome {
    // SAFETY: `service_name` and `port_name` are valid as the C binding of MPI_Unpublish_name requires of its caller.
    let ((launcher, service), port) = unsafe {
        let port = string(port_name, MPI_MAX_PORT_NAME, MPI_ERR_PORT, "port_name")?;
        (service_of(service_name, info)?, port)
    };
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
