//! Fault tolerance: failures, revocation, agreement and shrinking (ULFM, "user level failure mitigation").
//!
//! It follows the proposal for the next MPI (mpi-forum/mpi-issues 20, 21, 581, 582, 583), with the semantics of Open MPI 5.
//!
//! With [`ENABLE`] the death of a process does not end the job.
//! A death is known if the launcher reports it ([`Peers::process_gone`](crate::engine::Peers::process_gone)), a connection ends, or another process announces it;
//! each process has a list of deaths in the order of these notifications, to which entries are only appended ([`Faults`]).
//! A death affects the operations that need the dead process:
//! * point-to-point operations with the dead process fail,
//!   and operations among living processes continue;
//! * a receive from any source is interrupted, and stays in progress until the program acknowledges the failure;
//! * collective operations fail on every communicator of which the dead process is a member: those in progress and all later ones.
//!
//! Without [`ENABLE`] a death ends the job, but the ULFM functions can still be called.
//! Deaths in other jobs are reported in both cases (`abroad`).
//!
//! The functions for the program are in [`comm`](crate::comm); this module uses communicators through the trait `Affected`:
//! * [`Failures::revoke`](crate::comm::Failures::revoke): all operations of the communicator fail on all members;
//!   each member announces the revocation to its neighbours in a circulant graph
//!   (G. Bosilca et al., "Failure detection and propagation in HPC systems", SC'16), so that deaths of some members do not stop the announcement;
//! * [`Agreement::agree`](crate::comm::Agreement::agree): all living members agree on a number and on which members are dead,
//!   over messages (`era`) or in their node's shared memory (`node_agreement`);
//! * [`Constructors::shrink`](crate::comm::Constructors::shrink): creates a communicator of the living members, on which they agree in the same way.

mod abroad;
mod agreement;
mod comm_agreements;
mod deaths;
mod era;
mod error;
mod failures;
mod last_polls;
mod node_agreement;
mod outbox;
pub(crate) mod wire;

pub use error::{FaultError, FaultKind};
pub use failures::Faults;

pub(crate) use agreement::Participants;
pub(crate) use comm_agreements::CommAgreements;
pub(crate) use deaths::{Death, Deaths};
pub(crate) use era::Value;
pub(crate) use error::is_about_deaths;
pub(crate) use failures::Affected;
pub(crate) use node_agreement::NodeAgreement;
pub(crate) use wire::Key as AgreementKey;

use mpi_base::param::{Level, Param};

/// Parameter that `mpirun --with-ft ulfm` sets.
pub static ENABLE: Param<bool> = Param::new(
    "mpi",
    "ft",
    "enable",
    "false",
    Level::USER,
    "Whether the job goes on when a rank dies: its peers get errors, and may revoke, shrink and agree (ULFM); what mpirun --with-ft ulfm sets",
);
