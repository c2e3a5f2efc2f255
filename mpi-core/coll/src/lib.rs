//! Collective operations (framework `coll`): components compete for each function of each communicator.
//!
//! When a communicator is created, every component is queried; the members agree on the components that all of them can use.
//! For each function the component of the highest priority gets a call first and may pass it to the next lower one.
//! All members agree on this order, so every member's call is carried out by the same component.
//!
//! An operation is a value, [`Call`]. An algorithm is one `async fn` on nonblocking point-to-point calls, for all three kinds of operations:
//! if polled to completion on the stack, it is `MPI_Bcast`; in a box in a request, `MPI_Ibcast`;
//! and if created again at each start, `MPI_Bcast_init`.

#![deny(unsafe_code)]

pub(crate) mod algo;
mod basic;
mod check;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod han;
pub mod inter;
pub mod inventory;
mod invocation;
mod length_mismatch;
pub mod plugin;
pub(crate) mod priority;
mod reproducible;
pub mod select;
mod shm;
#[cfg(any(test, feature = "testing"))]
pub mod suite;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub(crate) mod tickets;
mod tuned;

pub use check::{CHECK, Mismatch};
pub use invocation::{Invocation, Pending};
pub use mpi_engine::coll::{Call, CallId, CallSet, CallSignature, FastCall, Form, Running};
pub use mpi_engine::comm::{EurekaLine, FastCarrier, FastSlot, Unserved};
pub use select::{Coll, Table};

use comm::Comm;
use datatype::NoMemory;
use mpi_base::param::{About, ParamError, Params, SelectionError};
use mpi_engine::{Engine, comm, engine};
use mpi_p2p::{pml, request};
#[cfg(any(test, feature = "testing"))]
use mpi_transport::btl;
use mpi_transport::trial;
use mpi_types::{
    datatype,
    error::{Error, Failure},
    group, op, topo,
};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// Returns the components that are part of this library.
pub fn built_in() -> Vec<Box<dyn Component>> {
    vec![
        Box::new(check::Check),
        Box::new(shm::Shm::default()),
        Box::new(han::Han),
        Box::new(tuned::Tuned::default()),
        Box::new(basic::Basic),
    ]
}

/// Returns the names of the algorithms for a collective, as in `--mca coll_tuned_allreduce_algorithm ring`.
pub fn algorithms(call: CallId) -> impl Iterator<Item = &'static str> {
    algo::Algorithm::serving(call).map(algo::Algorithm::name)
}

/// The reason why a component is not used on a communicator; `mpirun --explain` prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A collective component: creates a [`Module`] for each communicator that it can serve.
pub trait Component {
    /// Returns the component's name, as in `--mca coll hwbarr,shm,basic`; at most 63 bytes.
    fn name(&self) -> &str;

    /// Returns the default priority; the component with the highest priority gets calls first.
    /// The parameter `coll_<component>_priority` overrides it, and a negative value excludes the component.
    fn priority(&self) -> i32;

    /// Returns the component's parameters, for lists such as that of `mpi-info`.
    fn params(&self) -> Vec<&'static About> {
        Vec::new()
    }

    /// Validates the user's settings for this component; the job ends with the returned error.
    ///
    /// Called before [`Component::query`] if the component is selected.
    fn verify(&self, _params: &Params) -> Result<(), String> {
        Ok(())
    }

    /// Returns true if the user requests this component by name;
    /// rank 0 then warns if `MPI_COMM_WORLD` cannot use the component.
    fn is_asked_for(&self, _params: &Params) -> bool {
        false
    }

    /// Describes how the component would carry out a call, one fact per line; for `mpi-info --explain`.
    fn explain(&self, _params: &Params, _call: CallId) -> Vec<String> {
        Vec::new()
    }

    /// Returns the inventory entry of the component's file. All members must have the same version of the file.
    /// Returns `None` for a component that is part of the library.
    fn file(&self) -> Option<&inventory::Entry> {
        None
    }

    /// Creates a module if this process can use the component on this communicator. Local: must not communicate.
    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal>;
}

/// A component's implementation of collectives for one communicator.
///
/// With `mpi_ft_enable`, an operation must fail after its communicator has lost a member or has been revoked.
/// Messages, and steps on derived communicators, then fail without further code in the module;
/// code that waits for anything else polls [`Comm::usable`].
pub trait Module {
    /// Returns the collectives that the module implements.
    fn serves(&self) -> CallSet;

    /// On rank 0: appends this module's configuration to `config`, the config blob for all members. Local: must not communicate.
    fn export_config(&self, _comm: &Comm, _config: &mut Vec<u8>) {}

    /// On every member, rank 0 included: imports rank 0's config blob.
    /// Returns an error if this process cannot serve with the blob. Local: must not communicate.
    /// If any member returns an error here or in its query, the module is dropped on all members; see [`Module::withdraw`].
    fn import_config(&self, _comm: &Comm, _config: &[u8]) -> Result<(), Refusal> {
        Ok(())
    }

    /// Returns true if the module may pass any of its calls to the next component;
    /// false if it performs at least the short calls itself, so no later component gets these.
    fn is_transparent(&self) -> bool {
        false
    }

    /// Returns true if the module can serve without rank 0's config blob:
    /// the module is then used even if the members cannot agree, because a member has died.
    fn serves_alone(&self) -> bool {
        !self.sets_up()
    }

    /// Called if the members have not agreed on the module; all members have voted then, and no member has used the module.
    fn withdraw(&self) {}

    /// Returns true if [`Module::enable`] must run, which costs the members two more message rounds.
    /// Only the result on rank 0 is used.
    fn sets_up(&self) -> bool {
        false
    }

    /// Collective set-up with messages. Runs only if [`Module::sets_up`] returns true, after every member has imported its config blob.
    /// If the set-up fails on any member, the module is disabled and dropped on all members.
    fn enable<'a>(
        &'a self,
        _comm: &'a Comm,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + 'a>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Starts an operation; its collective is one of [`Module::serves`].
    fn start(&self, invocation: Invocation, call: Call) -> Running;

    /// Creates state that a persistent operation keeps between its starts;
    /// `None` if the module needs no such state.
    fn plan(&self, _call: &Call) -> Option<Rc<dyn Any>> {
        None
    }

    /// Starts a persistent operation with the state that [`Module::plan`] created for it.
    fn start_planned(&self, invocation: Invocation, call: Call, _plan: &Rc<dyn Any>) -> Running {
        self.start(invocation, call)
    }

    /// Describes in a few words how the module carries out a call on this communicator; for `mpirun --explain`.
    fn explain(&self, _call: CallId) -> Option<String> {
        None
    }

    /// Carries out a blocking operation.
    /// The default implementation blocks on [`Module::start`]; modules override it to avoid the boxed future.
    fn run(&self, invocation: &Invocation, call: &Call) -> Result<(), Error> {
        invocation
            .engine()
            .block_on(self.start(invocation.clone(), call.clone()))
    }

    /// Returns the fast path for this collective, with the maximum length in bytes for which it may be used.
    /// All members get the same result.
    /// Called once, after the module is enabled.
    fn fast_slot(self: Rc<Self>, _call: CallId) -> Option<FastSlot> {
        None
    }

    /// Carries out a few operations without user data and without messages, to warm up caches; see [`mpi_engine::comm::Collectives::rehearse`].
    /// Collective: all members call it.
    fn rehearse(&self, _comm: &Comm) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the module's eureka line for this communicator, if it has one.
    fn eureka(&self) -> Option<&dyn EurekaLine> {
        None
    }

    /// Returns true if a later communicator with the same members can use the module after this communicator has been freed.
    /// All members get the same result.
    fn is_reusable(&self) -> bool {
        false
    }

    /// Returns a number that is equal on all members if they have executed the same operations.
    /// Returns `None` if an operation is in progress on this member, or if the module does not suit a new duplicate of `parent`.
    fn progress(&self, _parent: &Comm) -> Option<u64> {
        Some(0)
    }

    /// Prefetches the memory that the next short calls use; see [`mpi_engine::comm::Collectives::prefetch_next`].
    fn prefetch_next(&self) {}

    /// Called when the communicator is freed, or when set-up has failed on some member.
    fn disable(&self) {}
}

/// The direction of a single copy between this process and another's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    From,
    To,
}

/// The error of a collective operation; errors of point-to-point messages have types of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollError {
    /// A component failed to carry out a call; `reason` is the component's text.
    Component {
        component: String,
        call: CallId,
        comm: String,
        reason: String,
    },
    /// The eureka line of a component failed; `reason` is the component's text.
    Eureka {
        component: String,
        comm: String,
        reason: String,
    },
    /// The members do not call the same operation.
    Mismatch(Mismatch),
    /// A member sends less than another member expects.
    /// A member that has received a wrong length itself sends empty messages from then on.
    Short {
        comm: String,
        /// The receiver; `None` only if the communicator has been freed.
        me: Option<u32>,
        /// The sender's rank: in the communicator's group, or on an intercommunicator in the remote group.
        source: i32,
        bytes: u64,
        due: u64,
    },
    /// The root of a broadcast sends a different length than a member expects.
    Length {
        comm: String,
        me: u32,
        root: u32,
        /// Number of bytes sent; `None` if unknown, because the root used the protocol for another range of lengths.
        sent: Option<usize>,
        expected: usize,
    },
    /// A parameter or file that a component reads before it can serve any communicator is invalid.
    Unusable { component: String, reason: String },
    /// A single copy failed: the other member's memory was accessible when the communicator was created, but no longer is.
    Unreachable {
        comm: String,
        me: u32,
        rank: u32,
        copying: Copying,
        bytes: usize,
        why: mpi_base::cma::CmaError,
    },
    /// An algorithm's temporary buffers do not fit this process's memory.
    NoMemory(NoMemory),
    /// The value of a parameter of component selection is invalid.
    Parameter(ParamError),
    /// The parameter `coll` names a component that does not exist.
    Selection(SelectionError),
}

impl fmt::Display for CollError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CollError::Component {
                component,
                call,
                comm,
                reason,
            } => {
                write!(f, "{call} on {comm}: component {component}: {reason}")
            }
            CollError::Eureka {
                component,
                comm,
                reason,
            } => {
                write!(
                    f,
                    "the eureka line of {comm}: component {component}: {reason}"
                )
            }
            CollError::Mismatch(e) => e.fmt(f),
            CollError::Short {
                comm,
                me,
                source,
                bytes,
                due,
            } => {
                write!(
                    f,
                    "rank {source} sends {bytes} bytes in a collective operation on {comm}, but "
                )?;
                match me {
                    Some(me) => write!(f, "rank {me} expects {due}")?,
                    None => write!(f, "{due} are expected")?,
                }
                match bytes {
                    0 => write!(
                        f,
                        "; a rank that has received another length than it expects sends nothing more"
                    ),
                    _ => Ok(()),
                }
            }
            CollError::Length {
                comm,
                me,
                root,
                sent,
                expected,
            } => {
                match sent {
                    Some(sent) => write!(f, "rank {root}, the root, broadcasts {sent} bytes")?,
                    None => write!(f, "rank {root}, the root, broadcasts another length")?,
                }
                write!(
                    f,
                    " on {comm}, but rank {me} has a buffer of {expected}; all ranks of a broadcast must give the same length"
                )
            }
            CollError::Unusable { component, reason } => {
                write!(
                    f,
                    "the collective component {component} cannot be used: {reason}"
                )
            }
            CollError::Unreachable {
                comm,
                me,
                rank,
                copying,
                bytes,
                why,
            } => {
                let (verb, way) = match copying {
                    Copying::From => ("read", "from"),
                    Copying::To => ("write", "to"),
                };
                write!(
                    f,
                    "rank {me} of {comm} cannot {verb} {bytes} bytes {way} the memory of rank {rank}: {why}; see the parameter coll_shm_single_copy_min"
                )
            }
            CollError::NoMemory(e) => e.fmt(f),
            CollError::Parameter(e) => e.fmt(f),
            CollError::Selection(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for CollError {}

impl Failure for CollError {}
