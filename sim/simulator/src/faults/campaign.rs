//! A fault campaign: each kind of fault at each place (such as a node or a
//! wire) and each protocol state, every case in a separate simulated run.

use super::catalogue::{FaultSpace, Kind, Place, Sizes, catalogue};
use super::judge::{Early, Judge};
use super::known::KnownUnsafe;
use super::moments::{Moment, Reference};
use super::node_program::{Plan, ProgramOutcome, run_program};
use crate::virtual_time::{
    End, Observation, Observer, Parameters, Protocol, RunError, Setup, Time, run_world,
};
use crate::waves::Trace;
use barrier_board::event::{ChannelRecord, Event, LineChange, Record};
use barrier_board::tree::Tree;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The outcome of a case, best outcome first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Every node passed every barrier, and none left before all had entered.
    Safe,
    /// No node left early, and a driver reported an error other than a time-out:
    /// no node starts its barriers (`ProgramOutcome::Refused`),
    /// or the driver could not set its wire to the idle level (`ProgramOutcome::NotClosed`).
    Detected,
    /// No node left early; a node waited until its time limit,
    /// and its driver reported the time-out.
    Hang,
    /// A node left before all had entered, or waits without a limit.
    Unsafe,
}

impl Class {
    /// All classes, in the order from the best outcome to the worst.
    pub const ALL: [Self; 4] = [Self::Safe, Self::Detected, Self::Hang, Self::Unsafe];

    /// Returns the class's name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Detected => "detected",
            Self::Hang => "hang",
            Self::Unsafe => "unsafe",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One fault at one place at one moment, and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The kind of fault, as named in the catalogue.
    pub fault: String,
    /// The place of the fault.
    pub place: Place,
    /// The state of the protocol at which the fault begins.
    pub moment: Moment,
    /// The time at which the fault begins.
    pub at: Time,
    /// The outcome's class.
    pub class: Class,
    /// The driver's error message, or the judge's finding; empty for a safe outcome.
    pub sentence: String,
    /// The documented reason why this case is unsafe; `None` if it is safe or not documented.
    pub known: Option<&'static str>,
}

/// The reason why a requested case does not exist or has no result.
#[derive(Debug, Clone, PartialEq)]
pub enum CaseError {
    /// There is no fault with this name.
    Fault {
        /// The requested name of a fault.
        fault: String,
        /// The names of all faults.
        names: Vec<String>,
    },
    /// The fault does not exist at this place, or cannot begin at this moment.
    Place {
        /// The requested fault.
        fault: String,
        /// The requested place.
        place: Place,
        /// The requested moment.
        moment: Moment,
    },
    /// A node at this place never reaches this moment.
    Moment {
        /// The requested place.
        place: Place,
        /// The requested moment.
        moment: Moment,
    },
    /// The simulated run fails.
    Run(RunError),
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault { fault, names } => write!(
                f,
                "no fault has '{fault}' in its name: there are {}",
                names.join(", ")
            ),
            Self::Place {
                fault,
                place,
                moment,
            } => write!(
                f,
                "the fault '{fault}' cannot be at the {place} or cannot strike at the moment '{}'",
                moment.name()
            ),
            Self::Moment { place, moment } => write!(
                f,
                "it is never the moment '{}' for the {place}",
                moment.name()
            ),
            Self::Run(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for CaseError {}

/// One case with the events recorded in its run.
#[derive(Debug, Clone)]
pub struct Examined {
    /// The case, with its outcome.
    pub case: Case,
    /// The events of a board of version 1.
    pub record: Record,
    /// The line changes of a board of version 2.
    pub lines: ChannelRecord,
    /// The data from which the case's waveform is written.
    pub trace: Trace,
}

/// The parameters of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct Campaign {
    /// The hardware; the plan overrides its `barriers` and `arrivals`.
    pub parameters: Parameters,
    /// The parameters of each node's program.
    pub plan: Plan,
    /// The durations and counts of the faults.
    pub sizes: Sizes,
    /// Restricts the campaign to the faults whose names contain this text.
    pub only: Option<String>,
}

impl Campaign {
    /// Creates a campaign with `nodes` nodes, all of which are late once in the self-test.
    pub fn new(nodes: usize, seed: u64) -> Self {
        let mut parameters = Parameters::new(nodes, 0);
        parameters.seed = seed;
        Self {
            parameters,
            plan: Plan {
                barriers: 2 * nodes + 2,
                compute: Time::from_ns(4_000),
                spread: Time::from_ns(6_000),
                late: Time::from_ns(15_000),
                hold: Time::from_ns(30_000),
                limit: Time::from_ns(1_000_000),
                late_nodes: nodes,
                seed,
            },
            sizes: Sizes {
                seed,
                // The self-test takes 1 ms per node, and the noise must last longer.
                noise: (Time::from_ns(1_000_000 * nodes as u64), Time::from_ns(700)),
                ..Sizes::default()
            },
            only: None,
        }
    }

    /// Copies the parameters of countermeasures from `cured`: filter, reads, protocol, resistors,
    /// channels, boards, receivers, buffers and edges.
    pub fn cure(&mut self, cured: &Parameters) {
        let Parameters {
            filter,
            reads,
            protocol,
            pull,
            channels,
            boards,
            trunk,
            fan_out,
            receivers,
            edge,
            edge_back,
            ..
        } = *cured;
        let own = self.parameters.clone();
        self.parameters = Parameters {
            filter,
            reads,
            protocol,
            pull,
            channels,
            boards,
            trunk,
            fan_out,
            receivers,
            edge,
            edge_back,
            ..own
        };
    }

    /// Runs the plan without faults; the resulting times define the moments.
    pub fn reference(&self) -> Result<Reference, RunError> {
        let setup = Setup::new(self.parameters.clone());
        let ((_, events), ..) =
            self.observe(setup, (Judge::new(self.parameters.nodes), Vec::new()))?;
        let returns = self.parameters.protocol != Protocol::Toggle;
        Ok(Reference::new(self.parameters.nodes, returns, &events))
    }

    /// Runs every case, in the order of the catalogue, on `threads` threads.
    pub fn run(&self, known: &KnownUnsafe, threads: usize) -> Result<Vec<Case>, RunError> {
        let reference = self.reference()?;
        let kinds = catalogue(&self.sizes);
        let mut todo = Vec::new();
        let wanted = |kind: &&Kind| {
            self.only
                .as_ref()
                .is_none_or(|only| kind.name.contains(only))
        };
        for kind in kinds.iter().filter(wanted) {
            for place in kind.places(&FaultSpace::of(&self.parameters)) {
                for &moment in kind.moments() {
                    let at = reference.time_of(moment, self.struck(place));
                    todo.extend(at.map(|at| (kind, place, moment, at)));
                }
            }
        }
        let next = AtomicUsize::new(0);
        let done = Mutex::new(vec![None; todo.len()]);
        std::thread::scope(|scope| {
            for _ in 0..threads.max(1) {
                scope.spawn(|| {
                    // Relaxed suffices: the counter only assigns cases to threads.
                    while let Some((number, &(kind, place, moment, at))) = {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        todo.get(number).map(|case| (number, case))
                    } {
                        let case = self.case(known, kind, place, moment, at, ());
                        let mut done = done.lock().unwrap_or_else(|e| e.into_inner());
                        done[number] = Some(case.map(|(case, ())| case));
                    }
                });
            }
        });
        let done = done.into_inner().unwrap_or_else(|e| e.into_inner());
        done.into_iter().flatten().collect()
    }

    /// Returns the node whose protocol states define the moments of a fault at this place:
    /// for a board, one of its nodes; for the root, the last node.
    fn struck(&self, place: Place) -> usize {
        let Parameters { nodes, boards, .. } = self.parameters;
        let tree = Tree::new(nodes, boards);
        match place {
            Place::Link(board) => tree.first_node(board),
            Place::Board(board) if board != tree.root() => tree.first_node(board),
            _ => place.node().unwrap_or(nodes - 1),
        }
    }

    /// Runs the first fault whose name contains the text `fault`, and records the run's waveform.
    pub fn examine(
        &self,
        known: &KnownUnsafe,
        fault: &str,
        place: Place,
        moment: Moment,
    ) -> Result<Examined, CaseError> {
        let kinds = catalogue(&self.sizes);
        let Some(kind) = kinds.iter().find(|kind| kind.name.contains(fault)) else {
            return Err(CaseError::Fault {
                fault: fault.to_owned(),
                names: kinds.into_iter().map(|kind| kind.name).collect(),
            });
        };
        let nodes = self.parameters.nodes;
        if !kind
            .places(&FaultSpace::of(&self.parameters))
            .contains(&place)
            || !kind.moments().contains(&moment)
        {
            return Err(CaseError::Place {
                fault: kind.name.clone(),
                place,
                moment,
            });
        }
        let at = self
            .reference()
            .map_err(CaseError::Run)?
            .time_of(moment, self.struck(place))
            .ok_or(CaseError::Moment { place, moment })?;
        let mut setup = Setup::new(self.parameters.clone());
        kind.install(&mut setup, place, at);
        let mut trace = Trace::of(&setup);
        trace.fault = Some((at, format!("{}, {place}", kind.name)));
        let observer = (Vec::<Event>::new(), Vec::<LineChange>::new());
        let observer = (observer, Vec::<(Time, Observation)>::new());
        let (case, ((events, changes), sights)) = self
            .case(known, kind, place, moment, at, observer)
            .map_err(CaseError::Run)?;
        let record = Record {
            nodes,
            events,
            dropped: 0,
        };
        let lines = ChannelRecord {
            nodes,
            changes,
            dropped: 0,
        };
        trace.sights = sights;
        Ok(Examined {
            case,
            record,
            lines,
            trace,
        })
    }

    fn case<O: Observer>(
        &self,
        known: &KnownUnsafe,
        kind: &Kind,
        place: Place,
        moment: Moment,
        at: Time,
        observer: O,
    ) -> Result<(Case, O), RunError> {
        let mut setup = Setup::new(self.parameters.clone());
        kind.install(&mut setup, place, at);
        let judge = Judge::new(self.parameters.nodes);
        let ((judge, observer), end, outcomes) = self.observe(setup, (judge, observer))?;
        let (class, sentence) = classify(&judge, &end, &outcomes);
        let known = (class == Class::Unsafe)
            .then(|| known.reason_with(&self.parameters, &kind.name, place.kind(), moment.name()))
            .flatten();
        let case = Case {
            fault: kind.name.clone(),
            place,
            moment,
            at,
            class,
            sentence,
            known: known.map(|listed| listed.reason),
        };
        Ok((case, observer))
    }

    /// Runs all nodes' programs in this world, with an observer.
    fn observe<O: Observer>(
        &self,
        setup: Setup,
        observer: O,
    ) -> Result<(O, End, Vec<Option<ProgramOutcome>>), RunError> {
        let outcomes = Rc::new(RefCell::new(vec![None; self.parameters.nodes]));
        let (end, observer) = run_world(setup, observer, |_| {
            let (plan, parameters, outcomes) =
                (self.plan.clone(), self.parameters.clone(), outcomes.clone());
            Box::new(move |host| {
                let outcome = run_program(host, &plan, &parameters);
                outcomes.borrow_mut()[host.node()] = Some(outcome);
            })
        })?;
        Ok((observer, end, outcomes.take()))
    }
}

/// Returns the worst outcome, with the message of the node that detected it.
fn classify(judge: &Judge, end: &End, outcomes: &[Option<ProgramOutcome>]) -> (Class, String) {
    let said = complaint(outcomes);
    let seen = match judge.early() {
        Some(early) => {
            let Early {
                node,
                barrier,
                missing,
                at,
            } = early;
            format!(
                "node {node} left barrier {barrier} at {at} before node {missing} had entered it"
            )
        }
        None if !end.stuck.is_empty() => {
            let node = end.stuck[0];
            format!("node {node} waits without a limit for an event that does not occur")
        }
        None => return said.unwrap_or((Class::Safe, String::new())),
    };
    let afterwards = match said {
        Some((_, sentence)) => format!("{seen}; then {sentence}"),
        None => format!("{seen}; no driver noticed"),
    };
    (Class::Unsafe, afterwards)
}

/// Returns the first error that a driver reported, with its class.
/// Errors at start-up precede errors of barriers, and these precede errors of closing.
fn complaint(outcomes: &[Option<ProgramOutcome>]) -> Option<(Class, String)> {
    let complaints = outcomes.iter().enumerate().filter_map(|(me, outcome)| {
        let (rank, class, node, sentence) = match outcome.as_ref()? {
            ProgramOutcome::Finished => return None,
            ProgramOutcome::Refused { node, sentence } => (0, Class::Detected, *node, sentence),
            ProgramOutcome::TimedOut { node, sentence } => (1, Class::Hang, *node, sentence),
            ProgramOutcome::NotClosed { sentence } => (2, Class::Detected, me, sentence),
        };
        Some((rank, class, format!("node {node}: {sentence}")))
    });
    let first = complaints.min_by_key(|&(rank, _, _)| rank);
    first.map(|(_, class, sentence)| (class, sentence))
}
