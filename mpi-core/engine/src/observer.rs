//! The observer of matching and collectives:
//! a trace, a communication matrix, a recording or replay, a tool's events, or several of these.
//!
//! An observer is called when a message is sent, matches its receive or is unexpected,
//! before a receive is posted, and when a collective operation begins.
//! Without an observer, each of these places costs one branch on a plain load.
//! With an observer, receives do not use the fast path, so that the observer sees all messages.

use crate::matrix::{MATRIX, Matrix};
use crate::pml::{CHECK_BUFFERING, CHECK_TYPES, Key};
use crate::pml::{Context, Envelope, Plane};
use crate::record::{RECORD, REPLAY, RecordError, Script};
use crate::request::ReqId;
use crate::trace::{TRACE, Trace};
use mpi_base::node::Node;
use mpi_base::param::{ParamError, Params};
use mpi_base::proc::ProcId;
use mpi_p2p::observer::Observer;
use std::cell::OnceCell;
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

/// The observer of a process.
///
/// A trace or recording exists from the start of the run; counts and a tool's events may be added later.
#[derive(Default)]
pub struct RunObserver {
    trace: Option<Rc<Trace>>,
    script: Option<Script>,
    matrix: OnceCell<Rc<Matrix>>,
    events: OnceCell<Rc<dyn Observer>>,
}

/// The reason why the observer that the parameters request cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObserverError {
    Param(ParamError),
    Record(RecordError),
    /// The parameters request both a recording and a replay.
    Both,
    NoEventRing {
        rank: u32,
        events: u32,
    },
}

impl fmt::Display for ObserverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObserverError::Param(e) => e.fmt(f),
            ObserverError::Record(e) => e.fmt(f),
            ObserverError::Both => {
                write!(f, "a run cannot be recorded while it repeats a recording")
            }
            ObserverError::NoEventRing { rank, events } => write!(
                f,
                "the node's memory has no room for rank {rank}'s ring of {events} events"
            ),
        }
    }
}

impl std::error::Error for ObserverError {}

impl RunObserver {
    /// Creates the observer that the parameters request for rank `rank` of `size`; a trace is written to the node's memory.
    pub fn wanted(
        params: &Params,
        node: &Node,
        (rank, size): (u32, u32),
    ) -> Result<Option<RunObserver>, ObserverError> {
        let events = params.get(&TRACE).map_err(ObserverError::Param)?;
        let record = params.get(&RECORD).map_err(ObserverError::Param)?;
        let replay = params.get(&REPLAY).map_err(ObserverError::Param)?;
        let named = |folder: &PathBuf| !folder.as_os_str().is_empty();
        let script = match (named(&record), named(&replay)) {
            (false, false) => None,
            (true, false) => Some(Script::record(&record, rank, size)),
            (false, true) => Some(Script::replay(&replay, rank, size)),
            (true, true) => return Err(ObserverError::Both),
        };
        let script = script.transpose().map_err(ObserverError::Record)?;
        let trace = match events {
            0 => None,
            _ => Some(Rc::new(
                Trace::new(node, events).ok_or(ObserverError::NoEventRing { rank, events })?,
            )),
        };
        let matrix = match params.get(&MATRIX).map_err(ObserverError::Param)? {
            false => None,
            true => {
                let ring = trace.as_ref().map(|trace| trace.event_ring().clone());
                let matrix = Matrix::new(node, (rank, size), ring);
                Some(Rc::new(
                    matrix.ok_or(ObserverError::NoEventRing { rank, events: size })?,
                ))
            }
        };
        let is_on = |check| params.get(check).map_err(ObserverError::Param);
        let checks = is_on(&CHECK_TYPES)? || is_on(&CHECK_BUFFERING)?;
        let needed = trace.is_some() || script.is_some() || matrix.is_some() || checks;
        Ok(needed.then_some(RunObserver {
            trace,
            script,
            matrix: matrix.map_or_else(OnceCell::new, OnceCell::from),
            events: OnceCell::new(),
        }))
    }

    /// Counts messages from now on for a tool of this process, if they are not counted already.
    pub fn count(&self, place: (u32, u32)) -> &Rc<Matrix> {
        self.matrix
            .get_or_init(|| Rc::new(Matrix::for_tools(place)))
    }

    /// Adds a tool's observer, which is notified of all messages too; only the first call has an effect.
    pub fn show(&self, events: Rc<dyn Observer>) {
        let _ = self.events.set(events);
    }

    /// Returns the trace, if one is written.
    pub fn trace(&self) -> Option<&Rc<Trace>> {
        self.trace.as_ref()
    }

    /// Returns the communication matrix, if a parameter or a tool has requested it.
    pub fn matrix(&self) -> Option<&Rc<Matrix>> {
        self.matrix.get()
    }

    /// Returns the recording or replay, if there is one.
    pub fn script(&self) -> Option<&Script> {
        self.script.as_ref()
    }
}

impl Observer for RunObserver {
    #[cold]
    fn sends(&self, to: &Envelope, bytes: u64) {
        if let Some(matrix) = self.matrix.get() {
            matrix.sends(to, bytes);
        }
        if let Some(events) = self.events.get() {
            events.sends(to, bytes);
        }
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
        if let Some(events) = self.events.get() {
            events.meets(receive, context, message, bytes);
        }
        if let Some(script) = &self.script {
            script.meets(receive, message);
        }
        if let Some(trace) = &self.trace {
            trace.meets(context, message, bytes);
        }
    }

    #[cold]
    fn keeps(&self, context: Context, message: Key, bytes: u64) {
        if let Some(events) = self.events.get()
            && is_of_the_program(context)
        {
            events.keeps(context, message, bytes);
        }
    }

    #[cold]
    fn rendezvous(&self, to: &Envelope, bytes: u64, begins: bool) {
        if let Some(events) = self.events.get()
            && is_of_the_program(to.context)
        {
            events.rendezvous(to, bytes, begins);
        }
    }

    #[cold]
    fn receives_rendezvous(&self, context: Context, message: Key, bytes: u64, begins: bool) {
        if let Some(events) = self.events.get()
            && is_of_the_program(context)
        {
            events.receives_rendezvous(context, message, bytes, begins);
        }
    }

    #[cold]
    fn loses(&self, peer: ProcId) {
        if let Some(events) = self.events.get() {
            events.loses(peer);
        }
    }

    #[cold]
    fn loses_link(&self, peer: ProcId) {
        if let Some(events) = self.events.get() {
            events.loses_link(peer);
        }
    }
}

/// Returns true for the program's messages and those of its collective operations; false for internal messages.
fn is_of_the_program(context: Context) -> bool {
    [Plane::User, Plane::Collective, Plane::Partition]
        .into_iter()
        .any(|plane| context.plane(plane) == context)
}
