//! The moments at which a fault begins:
//! times of a run without faults, named by the state of the protocol.
//!
//! A run is deterministic, so until the fault begins the run equals the run without the fault.

use crate::virtual_time::Time;
use barrier_board::event::{Event, What};
use std::fmt;
use std::str::FromStr;

/// The state of the protocol at the affected node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Moment {
    /// Power-on, the beginning of the run.
    PowerOn,
    /// The nodes open and test their wires.
    StartUp,
    /// No node is in a barrier, all wires are low,
    /// and this node will be the last to enter the next barrier.
    IdleLow,
    /// Like [`IdleLow`](Self::IdleLow), with all wires high.
    IdleHigh,
    /// All other nodes are in the barrier and wait for this node; in this barrier wires go high.
    AwaitedRising,
    /// Like [`AwaitedRising`](Self::AwaitedRising), with falling wires.
    AwaitedFalling,
    /// This node is in the barrier and waits for other nodes; in this barrier wires go high.
    WaitingRising,
    /// Like [`WaitingRising`](Self::WaitingRising), with falling wires.
    WaitingFalling,
    /// The barrier has released with a rising level, which this node has not seen yet.
    /// This node will be the last to enter the next barrier.
    ReleasedRising,
    /// Like [`ReleasedRising`](Self::ReleasedRising), with falling wires.
    ReleasedFalling,
}

impl Moment {
    /// All moments, in the order in which a run reaches them.
    pub const ALL: [Self; 10] = [
        Self::PowerOn,
        Self::StartUp,
        Self::IdleLow,
        Self::IdleHigh,
        Self::AwaitedRising,
        Self::AwaitedFalling,
        Self::WaitingRising,
        Self::WaitingFalling,
        Self::ReleasedRising,
        Self::ReleasedFalling,
    ];

    /// Returns the moment's name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::PowerOn => "power-on",
            Self::StartUp => "start-up",
            Self::IdleLow => "idle, low",
            Self::IdleHigh => "idle, high",
            Self::AwaitedRising => "awaited, rising",
            Self::AwaitedFalling => "awaited, falling",
            Self::WaitingRising => "waiting, rising",
            Self::WaitingFalling => "waiting, falling",
            Self::ReleasedRising => "released, rising",
            Self::ReleasedFalling => "released, falling",
        }
    }
}

/// The error for a text that names no moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadMoment(String);

impl fmt::Display for BadMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Moment::ALL.map(Moment::name).join("; ");
        write!(f, "'{}' is none of the moments: {names}", self.0)
    }
}

impl std::error::Error for BadMoment {}

impl FromStr for Moment {
    type Err = BadMoment;

    fn from_str(text: &str) -> Result<Self, BadMoment> {
        let found = Self::ALL.into_iter().find(|moment| moment.name() == text);
        found.ok_or_else(|| BadMoment(text.to_owned()))
    }
}

/// The times of the nodes' events in one barrier of the run without faults.
#[derive(Debug, Clone, Default)]
struct Passage {
    rising: bool,
    entered: Vec<Time>,
    at_pin: Vec<Time>,
    released: Time,
    left: Vec<Time>,
}

/// The barriers of a run so far, and each node's number of entries and exits.
struct Log {
    nodes: usize,
    passages: Vec<Passage>,
    entered: Vec<usize>,
    left: Vec<usize>,
}

impl Log {
    fn enter(&mut self, at: Time, node: usize) {
        if self.entered[node] == self.passages.len() {
            let unset = vec![Time::ZERO; self.nodes];
            self.passages.push(Passage {
                entered: unset.clone(),
                at_pin: unset.clone(),
                left: unset,
                ..Passage::default()
            });
        }
        self.passages[self.entered[node]].entered[node] = at;
        self.entered[node] += 1;
    }

    fn leave(&mut self, at: Time, node: usize) {
        self.passages[self.left[node]].left[node] = at;
        self.left[node] += 1;
    }
}

/// The times of all barriers of a run without faults, one `Passage` per barrier.
#[derive(Debug, Clone)]
pub struct Reference {
    passages: Vec<Passage>,
}

impl Reference {
    /// Builds the reference from the events of a run of `nodes` nodes.
    /// `returns` is true for the returning protocol, whose wires return to the idle level.
    ///
    /// The return to the idle level is treated as a separate barrier:
    /// a node enters that barrier when it leaves the previous one,
    /// and leaves it when it enters the next one.
    pub fn new(nodes: usize, returns: bool, events: &[Event]) -> Self {
        let mut log = Log {
            nodes,
            passages: Vec::new(),
            entered: vec![0; nodes],
            left: vec![0; nodes],
        };
        for event in events {
            let at = Time::from_ns(event.at_ns);
            match event.what {
                What::Enter { node } => {
                    if returns && log.entered[node] > log.left[node] {
                        log.leave(at, node);
                    }
                    log.enter(at, node);
                }
                What::Leave { node } => {
                    log.leave(at, node);
                    if returns {
                        log.enter(at, node);
                    }
                }
                What::Wire { node, high } if log.entered[node] > log.left[node] => {
                    let passage = &mut log.passages[log.left[node]];
                    if passage.at_pin[node] == Time::ZERO {
                        passage.at_pin[node] = at;
                        passage.rising = high;
                    }
                }
                What::Release { .. } => {
                    // The release belongs to the latest barrier that all nodes have entered.
                    let mut passages = log.passages.iter_mut().rev();
                    let complete = |p: &&mut Passage| !p.at_pin.contains(&Time::ZERO);
                    if let Some(passage) = passages.find(complete) {
                        passage.released = at;
                    }
                }
                What::Wire { .. } | What::Down { .. } | What::Say { .. } => {}
            }
        }
        Self {
            passages: log.passages,
        }
    }

    /// Returns the time of `moment` for `node`;
    /// `None` if the run without faults has no such moment.
    ///
    /// A fault is most harmful if the machine interprets
    /// it as the arrival of the only missing node.
    /// So the idle and released moments are chosen before a barrier which `node` enters last.
    pub fn time_of(&self, moment: Moment, node: usize) -> Option<Time> {
        let first = |times: &[Time]| times.iter().copied().min();
        let last = |times: &[Time]| times.iter().copied().max();
        let before_last = |rising: bool| {
            let pairs = self.passages.iter().zip(self.passages.iter().skip(1));
            pairs.filter(move |(before, after)| before.rising == rising && after.is_last(node))
        };
        let going = |rising: bool| self.passages.iter().filter(move |p| p.rising == rising);
        match moment {
            Moment::PowerOn => Some(Time::ZERO),
            Moment::StartUp => Some(first(&self.passages.first()?.entered)?.scaled(0.5)),
            Moment::IdleLow | Moment::IdleHigh => widest(
                before_last(moment == Moment::IdleHigh)
                    .map(|(before, after)| (last(&before.left), first(&after.entered))),
            ),
            Moment::AwaitedRising | Moment::AwaitedFalling => widest(
                going(moment == Moment::AwaitedRising)
                    .filter(|p| p.is_last(node))
                    .map(|p| (p.others_at_pin(node), Some(p.entered[node]))),
            ),
            Moment::WaitingRising | Moment::WaitingFalling => widest(
                going(moment == Moment::WaitingRising)
                    .map(|p| (Some(p.at_pin[node]), last(&p.entered))),
            ),
            Moment::ReleasedRising | Moment::ReleasedFalling => widest(
                before_last(moment == Moment::ReleasedRising)
                    .map(|(before, _)| (Some(before.released), Some(before.left[node]))),
            ),
        }
    }
}

impl Passage {
    /// Returns true if the arrivals of all other nodes had reached the board before `node` entered.
    fn is_last(&self, node: usize) -> bool {
        self.others_at_pin(node)
            .is_none_or(|others| others < self.entered[node])
    }

    /// Returns the time at which the last arrival of the other nodes reached the board.
    fn others_at_pin(&self, node: usize) -> Option<Time> {
        let others = self.at_pin.iter().enumerate().filter(|&(n, _)| n != node);
        others.map(|(_, &at)| at).max()
    }
}

/// Returns the middle of the longest nonempty interval.
fn widest(intervals: impl Iterator<Item = (Option<Time>, Option<Time>)>) -> Option<Time> {
    intervals
        .filter_map(|(from, to)| Some((from?, to?)))
        .filter(|(from, to)| to > from)
        .max_by_key(|&(from, to)| to - from)
        .map(|(from, to)| from + (to - from).scaled(0.5))
}
