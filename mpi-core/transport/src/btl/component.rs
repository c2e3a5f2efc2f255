//! Transport components: name, parameters, constructor, and the reasons why a component is unusable.

use super::fabric::library::LibraryError;
use super::modex::Modex;
use super::{Btl, ProcId};
use mpi_base::node::Node;
use mpi_base::param::{About, Param, ParamError, Params, Selection};
use std::fmt;
use std::sync::Arc;

/// The parameter that selects the permitted components, as in `--mca btl self,sm`.
pub static SELECTION: Param<Selection> =
    Param::selection("btl", "", "Transports that may be used; empty: all");

/// The arguments with which a component is opened.
pub struct OpenContext<'a> {
    /// The rank of this process in its job.
    pub me: ProcId,
    /// The number of processes in the job.
    pub size: u32,
    /// The shared-memory segment of this node, and the job ranks of the node's processes, in the order of their local ranks.
    pub node: Option<(Node, Vec<ProcId>)>,
    pub params: &'a Params,
    /// The modex, through which processes exchange addresses, if one exists.
    pub modex: Option<Arc<dyn Modex>>,
}

impl OpenContext<'_> {
    /// Returns true if all processes of the job share this node's memory.
    pub(super) fn is_one_node(&self) -> bool {
        self.node
            .as_ref()
            .is_some_and(|(_, procs)| procs.len() >= self.size as usize)
    }

    /// Returns true if the job has processes that shared memory does not reach.
    pub(super) fn needs_network(&self) -> Result<bool, ParamError> {
        let by_memory = self.is_one_node() && self.params.get(&SELECTION)?.allows("sm");
        Ok(self.size > 1 && !by_memory)
    }
}

/// A component of the transport framework.
pub struct Component {
    pub name: &'static str,
    /// All parameters that `mpi-info` lists for the component.
    pub params: &'static [&'static About],
    /// Opens the transports of this process, one per link, or returns the reason why the component is unusable.
    pub open: fn(&OpenContext<'_>) -> Result<Vec<Transport>, OpenError>,
    /// Returns true if the component publishes an address in the modex. The result must be the same in all processes of a job.
    pub posts: fn(&OpenContext<'_>) -> bool,
}

/// An opened transport.
pub type Transport = Box<dyn Btl + Send>;

/// The `posts` function of components that publish no address.
pub(super) fn never(_: &OpenContext<'_>) -> bool {
    false
}

/// The reason why a component is unusable; the job continues without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The user's selection excludes the component.
    Deselected,
    /// This process shares memory with no other process of the job.
    Alone,
    /// The list of the node's processes does not contain this process.
    NotHere {
        me: ProcId,
    },
    /// All processes of the job share this node's memory and `sm` is permitted, so no network is needed.
    NotNeeded,
    /// The process has no modex, or the launcher refused to publish the address.
    NoModex {
        reason: String,
    },
    /// The operating system refused the operation `doing`.
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
    /// The library of a network, such as libfabric or UCX, is unusable.
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
