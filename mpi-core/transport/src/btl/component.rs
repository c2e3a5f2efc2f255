//! Transport components: name, parameters, constructor, and the reasons why a component is unavailable.

use super::fabric::library::LibraryError;
use super::modex::Modex;
use super::{Btl, ProcId};
use mpi_base::node::Node;
use mpi_base::param::{About, Param, ParamError, Params, Selection};
use std::fmt;
use std::sync::Arc;

/// The components that may be used: `--mca btl self,sm`.
pub static SELECTION: Param<Selection> =
    Param::selection("btl", "", "Transports that may be used; empty: all");

/// The arguments with which a component is opened.
pub struct OpenContext<'a> {
    /// The number of this process in its job.
    pub me: ProcId,
    /// The number of processes of the job.
    pub size: u32,
    /// The shared-memory segment of this node, and the job ranks of its processes, by local rank.
    pub node: Option<(Node, Vec<ProcId>)>,
    pub params: &'a Params,
    /// The modex through which processes exchange addresses, if one exists.
    pub modex: Option<Arc<dyn Modex>>,
}

impl OpenContext<'_> {
    /// Returns true if all processes of the job share this node's memory.
    pub(super) fn is_one_node(&self) -> bool {
        self.node
            .as_ref()
            .is_some_and(|(_, procs)| procs.len() >= self.size as usize)
    }

    /// Returns true if some process of the job is not reached by shared memory.
    pub(super) fn needs_network(&self) -> Result<bool, ParamError> {
        let by_memory = self.is_one_node() && self.params.get(&SELECTION)?.allows("sm");
        Ok(self.size > 1 && !by_memory)
    }
}

/// A component of this framework.
pub struct Component {
    pub name: &'static str,
    /// All parameters that `mpi-info` lists for the component.
    pub params: &'static [&'static About],
    /// Opens the transports of this process, one per link, or returns why it is not available.
    pub open: fn(&OpenContext<'_>) -> Result<Vec<Transport>, OpenError>,
    /// Returns true if the component publishes an address in the modex; the same in all processes of a job.
    pub posts: fn(&OpenContext<'_>) -> bool,
}

/// An opened transport.
pub type Transport = Box<dyn Btl + Send>;

/// The `posts` function of components that publish no address.
pub(super) fn never(_: &OpenContext<'_>) -> bool {
    false
}

/// Why a component is unavailable; the job continues without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The component is not selected.
    Deselected,
    /// No other process shares memory with this one.
    Alone,
    /// This process is missing in the list of its node's processes.
    NotHere {
        me: ProcId,
    },
    /// All processes of the job share this node's memory, and `sm` may be used.
    NotNeeded,
    /// There is no modex, or the launcher refused.
    NoModex {
        reason: String,
    },
    /// The system refused an operation.
    System {
        doing: &'static str,
        reason: String,
    },
    /// The parameters exclude all addresses of this machine.
    NoAddress {
        parameters: String,
    },
    /// This machine has no device for the component, and the user has not named the component.
    NoDevice {
        name: &'static str,
        devices: &'static str,
    },
    /// A transport from a plugin file has declined to open.
    Plugin {
        name: &'static str,
        reason: String,
    },
    /// The library of a network cannot be used.
    Library(LibraryError),
    Param(ParamError),
    Node(mpi_base::node::NodeError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Deselected => write!(f, "the parameter btl leaves it out"),
            OpenError::Alone => write!(f, "this process shares memory with no other"),
            OpenError::NotHere { me } => {
                write!(f, "rank {me} is not among the ranks of its own node")
            }
            OpenError::NotNeeded => {
                write!(f, "every process of the job shares memory with this one")
            }
            OpenError::NoModex { reason } => {
                write!(f, "this process cannot make its addresses known: {reason}")
            }
            OpenError::System { doing, reason } => write!(f, "{doing} failed: {reason}"),
            OpenError::NoAddress { parameters } => {
                write!(f, "this machine has no address that {parameters} allow")
            }
            OpenError::NoDevice { name, devices } => write!(
                f,
                "this machine has no {devices}, and the parameter btl does not name {name}"
            ),
            OpenError::Plugin { name, reason } => write!(f, "the transport {name}: {reason}"),
            OpenError::Library(error) => error.fmt(f),
            OpenError::Param(error) => error.fmt(f),
            OpenError::Node(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}
