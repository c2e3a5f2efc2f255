//! What a transport component is: its name, its parameters, how it is opened, and why it may not serve.

use super::modex::Modex;
use super::{Btl, ProcId};
use mpi_base::node::Node;
use mpi_base::param::{About, Param, ParamError, Params, Selection};
use std::fmt;
use std::sync::Arc;

/// Which components may be used, `--mca btl self,sm`.
pub static SELECTION: Param<Selection> =
    Param::selection("btl", "", "Transports that may be used; all, if empty");

/// What a component may build upon when it is opened.
pub struct OpenContext<'a> {
    /// This process.
    pub me: ProcId,
    /// How many processes the job has.
    pub size: u32,
    /// The memory shared with the other processes of this node, and which they are, by local rank.
    pub node: Option<(Node, Vec<ProcId>)>,
    pub params: &'a Params,
    /// Where processes read each other's addresses, if there is such a place.
    pub board: Option<Arc<dyn Modex>>,
}

impl OpenContext<'_> {
    /// Whether every process of the job shares memory with this one.
    pub(super) fn is_one_node(&self) -> bool {
        self.node
            .as_ref()
            .is_some_and(|(_, procs)| procs.len() >= self.size as usize)
    }
}

/// A component of this framework.
pub struct Component {
    pub name: &'static str,
    /// Everything `mpi-info` lists for it.
    pub params: &'static [&'static About],
    /// Makes the transports of this process, one for each of several links, or says why it cannot serve.
    pub open: fn(&OpenContext<'_>) -> Result<Vec<Transport>, OpenError>,
    /// Whether it puts something on the noticeboard; the same at all processes of a job.
    pub posts: fn(&OpenContext<'_>) -> bool,
}

/// An opened transport.
pub type Transport = Box<dyn Btl + Send>;

/// For components that need no noticeboard.
pub(super) fn never(_: &OpenContext<'_>) -> bool {
    false
}

/// Why a component cannot serve; the job goes on without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// It was not selected.
    Deselected,
    /// This process shares memory with no other.
    Alone,
    /// This process is not in the list of those it shares memory with.
    NotHere {
        me: ProcId,
    },
    /// Every process of the job shares memory with this one, and `sm` may be used.
    NotNeeded,
    /// There is no way to make addresses known, or the launcher refused.
    NoBoard {
        reason: String,
    },
    /// The system refused an operation.
    System {
        doing: &'static str,
        reason: String,
    },
    /// No address of this machine is left after the parameters have been heard.
    NoAddress {
        parameters: String,
    },
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
            OpenError::NoBoard { reason } => {
                write!(f, "this process cannot make its addresses known: {reason}")
            }
            OpenError::System { doing, reason } => write!(f, "{doing} failed: {reason}"),
            OpenError::NoAddress { parameters } => {
                write!(f, "this machine has no address that {parameters} allow")
            }
            OpenError::Param(error) => error.fmt(f),
            OpenError::Node(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}
