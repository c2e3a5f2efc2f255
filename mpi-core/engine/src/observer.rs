//! The observer of matching and collectives: a trace, a recording or replay, or both; usually neither.
//!
//! It is called at four places, which cost one branch on a plain load each while no observer is set: when a message is sent,
//! when a message matches its receive, before a receive is posted, and when a collective operation begins.
//! With an observer the fast path of receives is disabled, so that these places see all messages.

use crate::pml::Key;
use crate::pml::{Context, Envelope, Plane};
use crate::record::{RECORD, REPLAY, RecordError, Script};
use crate::request::ReqId;
use crate::trace::{TRACE, Trace};
use mpi_base::node::Node;
use mpi_base::param::{ParamError, Params};
use mpi_p2p::observer::Observer;
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

/// The observer of one process.
pub struct Witness {
    trace: Option<Rc<Trace>>,
    script: Option<Script>,
}

/// Why a requested observer cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WitnessError {
    Param(ParamError),
    Record(RecordError),
    /// Recording and replaying at once.
    Both,
    NoTape {
        rank: u32,
        events: u32,
    },
}

impl fmt::Display for WitnessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WitnessError::Param(e) => e.fmt(f),
            WitnessError::Record(e) => e.fmt(f),
            WitnessError::Both => {
                write!(f, "a run cannot be recorded while it repeats a recording")
            }
            WitnessError::NoTape { rank, events } => write!(
                f,
                "the node's memory has no room for rank {rank}'s tape of {events} events"
            ),
        }
    }
}

impl std::error::Error for WitnessError {}

impl Witness {
    /// Creates the observer that the parameters ask for, for a rank of a job; a trace is written to the node's memory.
    pub fn wanted(
        params: &Params,
        node: &Node,
        (rank, size): (u32, u32),
    ) -> Result<Option<Witness>, WitnessError> {
        let events = params.get(&TRACE).map_err(WitnessError::Param)?;
        let record = params.get(&RECORD).map_err(WitnessError::Param)?;
        let replay = params.get(&REPLAY).map_err(WitnessError::Param)?;
        let named = |folder: &PathBuf| !folder.as_os_str().is_empty();
        let script = match (named(&record), named(&replay)) {
            (false, false) => None,
            (true, false) => Some(Script::record(&record, rank, size)),
            (false, true) => Some(Script::replay(&replay, rank, size)),
            (true, true) => return Err(WitnessError::Both),
        };
        let script = script.transpose().map_err(WitnessError::Record)?;
        let trace = match events {
            0 => None,
            _ => Some(Rc::new(
                Trace::new(node, events).ok_or(WitnessError::NoTape { rank, events })?,
            )),
        };
        let needed = trace.is_some() || script.is_some();
        Ok(needed.then_some(Witness { trace, script }))
    }

    /// Returns the trace, if one is written.
    pub fn trace(&self) -> Option<&Rc<Trace>> {
        self.trace.as_ref()
    }

    /// Returns the recording or replay, if there is one.
    pub fn script(&self) -> Option<&Script> {
        self.script.as_ref()
    }
}

impl Observer for Witness {
    #[cold]
    fn sends(&self, to: &Envelope, bytes: u64) {
        if let Some(trace) = &self.trace
            && is_of_the_program(to.context)
        {
            trace.sends(to, bytes);
        }
    }

    #[cold]
    fn meets(&self, receive: ReqId, context: Context, message: Key, bytes: u64) {
        if !is_of_the_program(context) {
            return;
        }
        if let Some(script) = &self.script {
            script.meets(receive, message);
        }
        if let Some(trace) = &self.trace {
            trace.meets(context, message, bytes);
        }
    }
}

/// Returns true if a message is the program's, or of a collective operation that it called; false for internal messages.
fn is_of_the_program(context: Context) -> bool {
    [Plane::User, Plane::Collective, Plane::Partition]
        .into_iter()
        .any(|plane| context.plane(plane) == context)
}
