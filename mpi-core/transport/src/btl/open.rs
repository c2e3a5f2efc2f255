//! Opening transports: which components there are, what they build upon, and why one of them does not serve.
//!
//! A component that cannot serve is told of with its reason, and the job goes on without it; one that a user asked for by name must exist.

use super::decorate::Decorator;
use crate::universe::Universe;

use super::{Btl, ProcId, checksum, fault, self_, sm, tcp, trace};
use mpi_base::node::Node;
use mpi_base::param::{About, Param, ParamError, Params, Selection, SelectionError};
use std::fmt;
use std::sync::Arc;

/// The decorators that are part of the library.
pub static DECORATORS: &[Decorator] = &[fault::DECORATOR, trace::DECORATOR, checksum::DECORATOR];

/// Wraps a transport in every decorator that was asked for.
pub(super) fn decorate(
    around: &OpenContext<'_>,
    number: u32,
    transport: Transport,
) -> Result<Transport, OpenError> {
    DECORATORS.iter().try_fold(transport, |inner, decorator| {
        (decorator.wrap)(around, number, inner)
    })
}

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

/// Where each process of a job says how it can be reached.
///
/// What was put before the fence that follows [`open_all`] (see [`Opened::fence`]) can be read by every process after it.
pub trait Modex: Send + Sync {
    /// Says something about this process to all others; every key once, before the fence.
    fn put(&self, key: &str, value: &[u8]) -> Result<(), String>;

    /// What `of` has put under `key`; may take a round trip to the launcher.
    fn get(&self, of: ProcId, key: &str) -> Result<Vec<u8>, String>;
}

/// How processes are called in a connection's first message, where each end has numbers of its own for them.
pub trait Names: Send + Sync {
    /// What a process is called; `None` if it is not known.
    fn name(&self, proc: ProcId) -> Option<u64>;

    /// Whether a process of this name could call, before it has proved anything.
    fn may_call(&self, name: u64) -> bool;

    /// The two ends of a connection, for sentences.
    fn ends(&self, me: ProcId, peer: ProcId) -> String;

    /// This process's number for a caller of this name, which has proved that it knows the key; `None` turns it away.
    fn admit(&self, name: u64) -> Option<ProcId>;
}

/// In a job every process has the same numbers.
pub(super) struct JobNames {
    pub size: u32,
}

impl Names for JobNames {
    fn name(&self, proc: ProcId) -> Option<u64> {
        (proc < self.size).then_some(proc.into())
    }

    fn may_call(&self, name: u64) -> bool {
        name < self.size.into()
    }

    fn ends(&self, me: ProcId, peer: ProcId) -> String {
        format!("job ranks {me} and {peer}")
    }

    fn admit(&self, name: u64) -> Option<ProcId> {
        ProcId::try_from(name).ok().filter(|proc| *proc < self.size)
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

/// The components that are part of the library; a new one is a folder and a line here.
pub static BUILT_IN: &[Component] = &[self_::COMPONENT, sm::COMPONENT, tcp::COMPONENT];

/// Which components may be used, `--mca btl self,sm`.
pub static SELECTION: Param<Selection> =
    Param::selection("btl", "", "Transports that may be used; all, if empty");

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

/// The transports of one process, and why the others are not among them.
pub struct Opened {
    pub btls: Vec<Transport>,
    /// Whether all processes of the job must pass a fence before the first message, because something was put on the noticeboard.
    pub fence: bool,
    pub refused: Vec<(&'static str, OpenError)>,
}

/// Opens all selected components.
///
/// The error names a component that was asked for and does not exist.
pub fn open_all(around: &OpenContext<'_>) -> Result<Opened, SelectError> {
    let selection = around.params.get(&SELECTION).map_err(SelectError::Param)?;
    let known: Vec<&str> = BUILT_IN.iter().map(|component| component.name).collect();
    selection
        .check("btl", &known)
        .map_err(SelectError::Selection)?;
    let mut opened = Opened {
        btls: Vec::new(),
        fence: false,
        refused: Vec::new(),
    };
    for component in BUILT_IN {
        let result = if selection.allows(component.name) {
            // All processes come to the same answer here, whether or not their own transport can be opened.
            opened.fence |= (component.posts)(around);
            (component.open)(around)
        } else {
            Err(OpenError::Deselected)
        };
        match result {
            Ok(btls) => {
                for btl in btls {
                    let number = opened.btls.len() as u32;
                    opened
                        .btls
                        .push(decorate(around, number, btl).map_err(SelectError::Decorator)?);
                }
            }
            Err(error) => opened.refused.push((component.name, error)),
        }
    }
    Ok(opened)
}

/// The transports to processes of other jobs, which `universe` knows, the best first: each puts on this process's card how it is reached.
///
/// The error is that of the last one, if none can serve.
pub fn open_to_other_jobs(
    params: &Params,
    universe: &Arc<Universe>,
) -> Result<Vec<Transport>, OpenError> {
    let selection = params.get(&SELECTION).map_err(OpenError::Param)?;
    let components = [
        ("sm", sm::open_to_other_jobs as OpenAbroad),
        ("tcp", tcp::open_to_other_jobs),
    ];
    let mut opened = Vec::new();
    let mut refused = OpenError::Deselected;
    for (name, open) in components {
        match selection.allows(name).then(|| open(params, universe)) {
            Some(Ok(transport)) => opened.push(transport),
            Some(Err(error)) => refused = error,
            None => {}
        }
    }
    match opened.is_empty() {
        true => Err(refused),
        false => Ok(opened),
    }
}

type OpenAbroad = fn(&Params, &Arc<Universe>) -> Result<Transport, OpenError>;

/// Why the choice of transports itself makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectError {
    /// A decorator that was asked for cannot serve; going on without it would not be what was asked for.
    Decorator(OpenError),
    Param(ParamError),
    Selection(SelectionError),
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectError::Decorator(error) => error.fmt(f),
            SelectError::Param(error) => error.fmt(f),
            SelectError::Selection(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SelectError {}
