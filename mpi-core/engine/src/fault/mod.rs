//! Surviving the death of processes: failures, revocation, agreement and shrinking (ULFM, "user level failure mitigation").
//!
//! After the proposal for the next MPI (mpi-forum/mpi-issues 20, 21, 581, 582, 583) with the semantics of Open MPI 5.
//!
//! With [`ENABLE`] a process that dies does not end the job.
//! Its death is learnt from the launcher ([`Engine::process_gone`](crate::Engine::process_gone)), from a connection that has ended, or from another process;
//! each process keeps one list of deaths that only grows, in the order in which it learnt of them ([`Faults`]).
//! A death ends what needs the dead process:
//! * point-to-point operations with it fail, those among the living go on;
//! * a receive from any source is told of it and stays under way, until the program acknowledges the failure;
//! * collective operations of every communicator that it is a member of fail, those under way and all later ones.
//!
//! Without it a death ends the job as ever; the functions are there all the same.
//! Deaths in other jobs are reported with and without it ([`abroad`]).
//!
//! What the program can do is in [`comm`](crate::comm); what is here knows a communicator only as something that failures affect:
//! * [`Comm::revoke`](crate::comm::Comm::revoke): all operations of the communicator fail at all members; told by each member to some others in a circulant graph
//!   (G. Bosilca et al., "Failure detection and propagation in HPC systems", SC'16), so that the death of some of them does not stop it;
//! * [`Comm::agree`](crate::comm::Comm::agree): all living members agree on a number and on which members are dead, in messages ([`era`]) or in the memory of their node ([`node_agreement`]);
//! * [`Comm::shrink`](crate::comm::Comm::shrink): the living members have a new communicator, on which they have agreed in the same way.

mod abroad;
mod agreement;
mod comm_agreements;
mod deaths;
mod era;
mod error;
mod failures;
mod node_agreement;
mod outbox;
mod wire;

pub use error::{FaultError, FaultKind};
pub use failures::Faults;

pub(crate) use agreement::Circle;
pub(crate) use comm_agreements::CommAgreements;
pub(crate) use deaths::{Death, Deaths};
pub(crate) use era::Value;
pub(crate) use error::is_about_deaths;
pub(crate) use failures::Affected;
pub(crate) use node_agreement::NodeAgreement;
pub(crate) use wire::Key as AgreementKey;

use mpi_base::param::{Level, Param};

/// Set by `mpirun --with-ft ulfm`.
pub static ENABLE: Param<bool> = Param::new(
    "mpi",
    "ft",
    "enable",
    "false",
    Level::USER,
    "Whether the job goes on when a rank dies: its peers get errors, and may revoke, shrink and agree (ULFM); what mpirun --with-ft ulfm sets",
);
