//! COLL, collective operations: components compete for each communicator and each function of it.
//!
//! When a communicator is made, every component is asked whether it can serve it; its members agree on those that all of them can use;
//! then, for each function, the component of the highest priority comes first and may hand a call to the next one down.
//! Which component serves a call is thus the same at every member, always.
//!
//! An operation is a value, [`Call`], and an algorithm is one `async fn` over nonblocking point-to-point, written once:
//! polled to its end on the stack it is `MPI_Bcast`, boxed into a request it is `MPI_Ibcast`, made anew at each start it is `MPI_Bcast_init`.

#![deny(unsafe_code)]

pub(crate) mod algo;
mod basic;
mod check;
mod han;
pub mod inter;
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
pub use mpi_engine::coll::{Call, CallId, CallSet, CallSignature, FastCall, Running};
pub use mpi_engine::comm::{EurekaLine, Unserved};
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
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// The components of this library.
pub fn built_in() -> Vec<Box<dyn Component>> {
    vec![
        Box::new(check::Check),
        Box::new(shm::Shm::default()),
        Box::new(han::Han),
        Box::new(tuned::Tuned::default()),
        Box::new(basic::Basic),
    ]
}

/// The names of the algorithms that serve a call, as in `--mca coll_tuned_allreduce_algorithm ring`.
pub fn algorithms(call: CallId) -> impl Iterator<Item = &'static str> {
    algo::Algorithm::serving(call).map(algo::Algorithm::name)
}

/// Why a component does not serve a communicator; what `mpirun --explain` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A way of doing collectives, as data of the engine.
pub trait Component {
    /// As in `--mca coll hwbarr,shm,basic`; not longer than 63 bytes.
    fn name(&self) -> &str;

    /// Higher goes first; the parameter `coll_<component>_priority` overrides it, and a negative one leaves the component out.
    fn priority(&self) -> i32;

    /// Its parameters, for listings.
    fn params(&self) -> Vec<&'static About> {
        Vec::new()
    }

    /// Whether what the user has set for this component can be used; if not, the job ends with this sentence.
    ///
    /// Asked before [`Component::query`] if the component is selected.
    fn verify(&self, _params: &Params) -> Result<(), String> {
        Ok(())
    }

    /// Whether the user asks for this component by name: a world that cannot have it is then no matter of course.
    fn is_asked_for(&self, _params: &Params) -> bool {
        false
    }

    /// How it would carry out a call, a line for each fact; for `mpi-info --explain`.
    fn explain(&self, _params: &Params, _call: CallId) -> Vec<String> {
        Vec::new()
    }

    /// Whether this process can use the component on this communicator. Local: no communication here.
    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal>;
}

/// A component's services for one communicator.
///
/// Where deaths are survived (`mpi_ft_enable`), an operation ends with an error once its communicator has lost a member or is revoked.
/// Messages and steps on communicators made for them do by themselves; what waits for anything else asks [`Comm::usable`] meanwhile.
pub trait Module {
    /// The functions it serves.
    fn serves(&self) -> CallSet;

    /// At rank 0: adds to its letter what the others have to know in order to serve. Local: no communication here.
    fn give(&self, _comm: &Comm, _letter: &mut Vec<u8>) {}

    /// At every member, rank 0 too: takes what rank 0's module has given, and says whether this process can serve with it. Local.
    /// If any member refuses, there or in its query, the module is dropped at all of them, see [`Module::withdraw`].
    fn take(&self, _comm: &Comm, _letter: &[u8]) -> Result<(), Refusal> {
        Ok(())
    }

    /// Whether it serves without having taken a letter: what a process has where its members cannot agree, since one of them has died.
    fn serves_alone(&self) -> bool {
        !self.sets_up()
    }

    /// The members have not agreed on the module, all of them have said so, and none has used it.
    fn withdraw(&self) {}

    /// Whether there is more to set up than a letter can, in [`Module::enable`], for which the members take two rounds more; rank 0's answer counts.
    fn sets_up(&self) -> bool {
        false
    }

    /// Sets up what all members set up together, with messages; run only if [`Module::sets_up`], when every member has taken its letter.
    /// If it fails at any member the module is disabled and dropped at all of them.
    fn enable<'a>(
        &'a self,
        _comm: &'a Comm,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + 'a>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Starts an operation of [`Module::serves`].
    fn start(&self, cx: Invocation, call: Call) -> Running;

    /// How it carries out a call on this communicator, in a few words; for `mpirun --explain`.
    fn explain(&self, _call: CallId) -> Option<String> {
        None
    }

    /// Carries an operation out before it returns.
    /// The default polls [`Module::start`]; modules that can do without the box, do.
    fn run(&self, cx: &Invocation, call: &Call) -> Result<(), Error> {
        cx.engine().block_on(self.start(cx.clone(), call.clone()))
    }

    /// Up to how many of [`FastCall::bytes`] it carries such calls out in brief; the same answer at all members.
    /// Asked once, when the module has been enabled.
    fn takes_fast_call(&self, _call: CallId) -> Option<usize> {
        None
    }

    /// Carries out a call that it takes in brief.
    fn run_fast_call(&self, comm: &Comm, brief: &FastCall<'_>) -> Result<(), Error> {
        Err(Unserved::on(comm, brief.id()))
    }

    /// Its eureka line for this communicator, if it may have one.
    fn eureka(&self) -> Option<&dyn EurekaLine> {
        None
    }

    /// The communicator is being freed, or setting up has failed at some member.
    fn disable(&self) {}
}

/// Which way bytes were to go between this process and another's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    From,
    To,
}

/// Why a collective operation failed other than in its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollError {
    /// A component reports what went wrong.
    Component {
        component: String,
        call: CallId,
        comm: String,
        reason: String,
    },
    /// A component reports what is wrong with its eureka line.
    Eureka {
        component: String,
        comm: String,
        reason: String,
    },
    /// The members do not call the same operation.
    Mismatch(Mismatch),
    /// A member sends less than another expects, or has received something else than it expects itself and so sends nothing.
    Short {
        comm: String,
        /// The receiver; unknown only where the communicator is gone.
        me: Option<u32>,
        /// In the group that messages name.
        source: i32,
        bytes: u64,
        due: u64,
    },
    /// The root of a broadcast sends another length than a member expects.
    Length {
        comm: String,
        me: u32,
        root: u32,
        /// If it says so: what is sent in another way is longer than what goes in this one, or shorter.
        sent: Option<usize>,
        expected: usize,
    },
    /// What a component reads before it can serve any communicator cannot be used.
    Unusable { component: String, reason: String },
    /// A member's memory cannot be reached any more, though it could when the communicator was made.
    Unreachable {
        comm: String,
        me: u32,
        rank: u32,
        copying: Copying,
        bytes: usize,
        why: mpi_base::cma::CmaError,
    },
    /// An algorithm's temporaries do not fit this process's memory.
    NoMemory(NoMemory),
    /// A parameter of the selection cannot be read.
    Parameter(ParamError),
    /// The parameter `coll` selects what does not exist.
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
                write!(f, " on {comm}, but rank {me} has a buffer of {expected}")
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
