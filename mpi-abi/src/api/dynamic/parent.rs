//! Connection of a spawned job with its parent (section 11.8.2).
//!
//! The parent's root passes a port name through the launcher.
//! During initialization, all processes of the new job connect to the port as one group.

use crate::abi::*;
use crate::api::args::Out;
use crate::error::{Failure, Outcome};
use crate::object::Attached;
use crate::registry::comm::register_with;
use crate::{phase, state};
use mpi_core::Engine;
use mpi_core::comm::LeaderError;
use mpi_core::dynamic::PortName;

/// The key under which the launcher stores the port name of the parent.
pub(super) const PORT_KEY: &str = "PORTCULLIS_parent_port";
/// The key under which the launcher stores the initial error handler that the parent passes.
pub(crate) const HANDLER_KEY: &str = "PORTCULLIS_initial_errhandler";

pub fn MPI_Comm_get_parent(parent: Out<MPI_Comm>) -> Outcome {
    state::engine()?;
    let known = state::state().jobs().parent().get();
    // Returns MPI_COMM_NULL after the parent communicator was disconnected or freed.
    let alive = known != MPI_COMM_NULL && state::comm(known).is_ok();
    parent.set(if alive { known } else { MPI_COMM_NULL }, "parent")
}

/// Connects this job to the job that spawned it, if any. Collective over the job.
pub(crate) fn meet_parent(engine: &Engine) -> Result<(), Failure> {
    let Some(launcher) = phase::launcher().filter(|launcher| launcher.identity().spawned) else {
        return Ok(());
    };
    // A parent with another MPI library passes no port name.
    let Some(text) = launcher.left_by_parent(PORT_KEY) else {
        return Ok(());
    };
    let world = state::comm(MPI_COMM_WORLD)?;
    let port = (world.comm.rank() == 0).then(|| {
        PortName::parse(&text).map_err(|error| LeaderError {
            code: MPI_ERR_PORT,
            why: format!("the parent's port: {error}"),
        })
    });
    let new = engine.block_on(world.comm.ports().connect(0, port, None, MPI_ERR_PORT))?;
    new.set_name("MPI_COMM_PARENT");
    let attached = Attached::inheriting(&world.attached);
    let parent = register_with(new, attached, None)?;
    state::state().jobs().parent().set(parent.handle());
    Ok(())
}
