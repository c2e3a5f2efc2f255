//! The catalogue of faults: where each fault can be, when it can begin, and what it changes.
//!
//! A fault changes the wiring, the latches, the clock or the incidents of a [`Setup`];
//! neither the driver nor the simulated world has a branch for faults.

use super::disturbances::{Bounce, Floating, Glitch, Inverted, Metastable, Stuck};
use super::moments::Moment;
use crate::virtual_time::{Coupling, Incident, Parameters, Setup, Sink, Source, Time};
use barrier_board::tree::Tree;
use fpga_model::channels::MAX_CHANNELS;
use std::fmt;
use std::str::FromStr;

/// The place of a fault: a wire, a node, a line or a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The wire from this node to the barrier.
    ToBarrier(usize),
    /// The wire from the barrier to this node.
    FromBarrier(usize),
    /// This node: its program or its port.
    Node(usize),
    /// A serial line of this node to a board of version 2:
    /// 0 is the clock, 1 the data, 2 the select.
    Serial(usize, usize),
    /// The wire from this board to the board above.
    Link(usize),
    /// This board: its FPGA, its clock or its power supply.
    Board(usize),
}

impl Place {
    /// Returns the kind of place as text, without the number of the node or board.
    pub fn kind(self) -> &'static str {
        match self {
            Self::ToBarrier(_) => "wire to the barrier",
            Self::FromBarrier(_) => "wire from the barrier",
            Self::Node(_) => "node",
            Self::Serial(..) => "serial line",
            Self::Link(_) => "wire between boards",
            Self::Board(_) => "board",
        }
    }

    /// Returns the node of the place; the fault begins at a protocol state of this node.
    pub fn node(self) -> Option<usize> {
        match self {
            Self::ToBarrier(node)
            | Self::FromBarrier(node)
            | Self::Node(node)
            | Self::Serial(node, _) => Some(node),
            Self::Link(_) | Self::Board(_) => None,
        }
    }

    /// Returns the receiving end of the wire at this place; `None` if the place is not a wire.
    fn sink(self) -> Option<Sink> {
        match self {
            Self::ToBarrier(node) => Some(Sink::pin(node)),
            Self::FromBarrier(node) => Some(Sink::input(node)),
            Self::Serial(node, line) => Some(Sink::Pin {
                node,
                line: MAX_CHANNELS + line,
            }),
            Self::Link(board) => Some(Sink::Link { board }),
            Self::Node(_) | Self::Board(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToBarrier(node) => write!(f, "wire of node {node} to the barrier"),
            Self::FromBarrier(node) => write!(f, "wire from the barrier to node {node}"),
            Self::Node(node) => write!(f, "node {node}"),
            Self::Serial(node, line) => {
                let line = SERIAL.get(*line).copied().unwrap_or("?");
                write!(f, "serial {line} of node {node}")
            }
            Self::Link(board) => write!(f, "wire of board {board} to the board above"),
            Self::Board(0) => f.write_str("board"),
            Self::Board(board) => write!(f, "board {board}"),
        }
    }
}

/// The error for a text that names no place of a fault. Its message lists all forms of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPlace(String);

impl fmt::Display for BadPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' names no place of a fault; a place is to:NODE or from:NODE (the wire to or from the barrier), node:NODE (the node's program or port), clock:NODE, data:NODE or select:NODE (a serial line of version 2), link:BOARD (the wire to the board above), board:BOARD, or board (board 0)",
            self.0
        )
    }
}

impl std::error::Error for BadPlace {}

impl FromStr for Place {
    type Err = BadPlace;

    fn from_str(text: &str) -> Result<Self, BadPlace> {
        let bad = || BadPlace(text.to_owned());
        if text == "board" {
            return Ok(Self::Board(0));
        }
        let (kind, node) = text.split_once(':').ok_or_else(bad)?;
        let node = node.parse().map_err(|_| bad())?;
        match kind {
            "to" => Ok(Self::ToBarrier(node)),
            "from" => Ok(Self::FromBarrier(node)),
            "node" => Ok(Self::Node(node)),
            "link" => Ok(Self::Link(node)),
            "board" => Ok(Self::Board(node)),
            other => {
                let line = SERIAL.iter().position(|name| *name == other);
                line.map(|line| Self::Serial(node, line)).ok_or_else(bad)
            }
        }
    }
}

/// Names of the serial lines; the index is the number of the line.
const SERIAL: [&str; 3] = ["clock", "data", "select"];

/// The number of nodes and boards of a simulated world,
/// which determines the possible places of faults.
#[derive(Debug, Clone)]
pub struct FaultSpace {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of boards.
    pub boards: usize,
    /// True if nodes have serial lines.
    pub serial: bool,
}

impl FaultSpace {
    /// Returns the numbers of nodes and boards of the world with these parameters.
    pub fn of(parameters: &Parameters) -> Self {
        Self {
            nodes: parameters.nodes,
            boards: Tree::new(parameters.nodes, parameters.boards).boards(),
            serial: parameters.channels > 0,
        }
    }
}

/// The set of places at which a kind of fault can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    Wires,
    ToBarrier,
    Nodes,
    Board,
}

/// The set of moments at which a kind of fault can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Onset {
    /// The fault may begin at any moment.
    Any,
    /// The fault exists from power-on: a fault of the cabling.
    Always,
}

type Install = Box<dyn Fn(&mut Setup, Place, Time) + Send + Sync>;

/// One kind of fault.
pub struct Kind {
    /// The name of the fault in tables.
    pub name: String,
    places: Places,
    onset: Onset,
    install: Install,
}

impl Kind {
    fn new(
        name: impl Into<String>,
        places: Places,
        onset: Onset,
        install: impl Fn(&mut Setup, Place, Time) + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            places,
            onset,
            install: Box::new(install),
        }
    }

    /// Returns all places of this world at which the fault can be.
    pub fn places(&self, ground: &FaultSpace) -> Vec<Place> {
        let each = |place: fn(usize) -> Place| (0..ground.nodes).map(place);
        let links = (0..ground.boards - 1).map(Place::Link);
        let serial = (0..ground.nodes).flat_map(|node| (0..3).map(move |k| Place::Serial(node, k)));
        let serial = serial.filter(|_| ground.serial);
        match self.places {
            Places::Wires => each(Place::ToBarrier)
                .chain(each(Place::FromBarrier))
                .chain(serial)
                .chain(links)
                .collect(),
            Places::ToBarrier => each(Place::ToBarrier).chain(serial).chain(links).collect(),
            Places::Nodes => each(Place::Node).collect(),
            Places::Board => (0..ground.boards).map(Place::Board).collect(),
        }
    }

    /// Returns all moments at which the fault can begin.
    pub fn moments(&self) -> &'static [Moment] {
        match self.onset {
            Onset::Any => &Moment::ALL,
            Onset::Always => &[Moment::PowerOn],
        }
    }

    /// Installs the fault in a world before power-on.
    pub fn install(&self, setup: &mut Setup, place: Place, at: Time) {
        (self.install)(setup, place, at);
    }
}

/// Durations and counts of the faults.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Durations of glitches.
    pub glitches: Vec<Time>,
    /// Durations of the pulses that edges of a neighbouring wire cause.
    pub crosstalk: Vec<Time>,
    /// Duration of each level of a bouncing change.
    pub bounce: Time,
    /// Number of bounces.
    pub bounces: u64,
    /// Factor by which a slow node's port accesses take longer.
    pub slowness: f64,
    /// Duration of a clock pause, and of an FPGA configuration.
    pub outage: Time,
    /// Duration of the noise of a floating wire, and duration of each noise level.
    pub noise: (Time, Time),
    /// Seed of the faults that are drawn at random.
    pub seed: u64,
}

impl Default for Sizes {
    /// The default has three glitches: one shorter than a clock period, one long enough for a clock
    /// edge to sample, and one long enough for a port access to read.
    fn default() -> Self {
        Self {
            glitches: [20, 100, 5000].map(Time::from_ns).to_vec(),
            // Duration of the pulses that an edge of a few nanoseconds induces,
            // with 2 m and 20 m of coupled cable.
            crosstalk: [20, 200].map(Time::from_ns).to_vec(),
            bounce: Time::from_ns(300),
            bounces: 3,
            slowness: 20.0,
            outage: Time::from_ns(50_000),
            noise: (Time::from_ns(3_000_000), Time::from_ns(700)),
            seed: 1,
        }
    }
}

/// Returns a fault that adds a disturbance to the wire of a place.
fn on_wire<D: crate::virtual_time::Disturbance + 'static>(
    make: impl Fn(&Setup, Place, Time) -> D,
) -> impl Fn(&mut Setup, Place, Time) {
    move |setup, place, at| {
        let disturbance = make(setup, place, at);
        if let Some(sink) = place.sink() {
            setup.wiring.line(sink).disturb(disturbance);
        }
    }
}

/// Returns a fault that injects incidents into the node of a place.
fn on_node(make: impl Fn(usize) -> Vec<(Time, Incident)>) -> impl Fn(&mut Setup, Place, Time) {
    move |setup, place, at| {
        if let Some(node) = place.node() {
            let incidents = make(node).into_iter().map(|(later, i)| (at + later, i));
            setup.incidents.extend(incidents);
        }
    }
}

/// Returns a fault that changes the board at a place.
fn on_board(strike: impl Fn(&mut Setup, usize, Time)) -> impl Fn(&mut Setup, Place, Time) {
    move |setup, place, at| {
        if let Place::Board(board) = place {
            strike(setup, board, at);
        }
    }
}

/// Returns all kinds of fault; faults of wires come first.
pub fn catalogue(sizes: &Sizes) -> Vec<Kind> {
    use {Onset::*, Places::*};
    let Sizes {
        bounce: period,
        bounces: times,
        slowness,
        outage,
        noise: (lasts, holds),
        seed,
        ..
    } = *sizes;
    let stuck = |high| on_wire(move |_, _, from| Stuck { from, high });
    // Each node has different noise.
    let noise = move |place: Place| seed ^ place.node().unwrap_or(0) as u64;
    let mut kinds = vec![
        Kind::new("stuck at 0", Wires, Any, stuck(false)),
        Kind::new("stuck at 1", Wires, Any, stuck(true)),
        // An unconnected input reads 1: most ports and the board have pull-ups.
        // Stronger resistors may pull the input to another level.
        Kind::new(
            "open, pulled up",
            Wires,
            Any,
            on_wire(|setup, _, from| Stuck {
                from,
                high: setup.parameters.pull.unwrap_or(true),
            }),
        ),
        Kind::new("open, floating", Wires, Any, move |setup, place, from| {
            let Some(sink) = place.sink() else { return };
            match setup.parameters.pull {
                // With resistors no wire floats; an open wire has the level of the resistors.
                Some(high) => setup.wiring.line(sink).disturb(Stuck { from, high }),
                None => setup.wiring.line(sink).disturb(Floating {
                    from,
                    lasts,
                    period: holds,
                    seed: noise(place),
                }),
            }
        }),
    ];
    kinds.extend(sizes.crosstalk.iter().map(|&width| {
        let install = move |setup: &mut Setup, place: Place, since| {
            let Some(to) = place.sink() else { return };
            // The cables of neighbouring nodes are parallel,
            // and both wires of a node are in one cable.
            let from = match to {
                // The wires of one port are parallel, too:
                // an edge of the arrival line disturbs the serial lines.
                Sink::Pin { node, line } if line > 0 => Sink::pin(node),
                Sink::Pin { node, .. } => Sink::pin((node + 1) % setup.parameters.nodes),
                Sink::Input { node, .. } => Sink::pin(node),
                Sink::Link { board } => {
                    let boards = setup.tree.boards() - 1;
                    Sink::Link {
                        board: (board + 1) % boards,
                    }
                }
            };
            setup.wiring.couple(Coupling {
                from,
                to,
                width,
                since,
            });
        };
        Kind::new(format!("crosstalk of {width}"), Wires, Any, install)
    }));
    kinds.extend(sizes.glitches.iter().map(|&width| {
        let install = on_wire(move |_, _, from| Glitch { from, width });
        Kind::new(format!("glitch of {width}"), Wires, Any, install)
    }));
    let die = |node| (Time::ZERO, Incident::Die { node });
    let latch = |node, high| (Time::ZERO, Incident::Latch { node, high });
    kinds.extend([
        Kind::new(
            "bounce",
            Wires,
            Any,
            on_wire(move |_, _, from| Bounce {
                from,
                period,
                times,
            }),
        ),
        Kind::new(
            "metastable samples",
            ToBarrier,
            Any,
            on_wire(move |setup, place, from| Metastable {
                from,
                clock_hz: setup.parameters.clock_hz,
                seed: noise(place),
            }),
        ),
        Kind::new("inverted", Wires, Always, on_wire(|_, _, _| Inverted)),
        Kind::new("swapped with the next", Wires, Always, |setup, place, _| {
            let next = (place.node().unwrap_or(0) + 1) % setup.parameters.nodes;
            let Some(here) = place.sink() else { return };
            let there = match here {
                Sink::Pin { line, .. } => Sink::Pin { node: next, line },
                Sink::Input { line, .. } => Sink::Input { node: next, line },
                Sink::Link { board } => Sink::Link {
                    board: (board + 1) % (setup.tree.boards() - 1),
                },
            };
            setup.wiring.swap(here, there);
        }),
        Kind::new(
            "cables swapped with the next",
            Nodes,
            Always,
            |setup, place, _| {
                if let Place::Node(node) = place {
                    let next = (node + 1) % setup.parameters.nodes;
                    let [outward, inward] = setup.wiring.lines();
                    for line in 0..outward {
                        let end = |node| Sink::Pin { node, line };
                        setup.wiring.swap(end(node), end(next));
                    }
                    for line in 0..inward {
                        let end = |node| Sink::Input { node, line };
                        setup.wiring.swap(end(node), end(next));
                    }
                }
            },
        ),
        Kind::new("pair reversed", Nodes, Always, |setup, place, _| {
            if let Place::Node(node) = place {
                // In a cable with reversed pairs outputs are connected to outputs, and inputs to inputs,
                // which pull-ups hold high.
                let open = Source::Open { high: true };
                setup.wiring.plug(Sink::pin(node), open);
                setup.wiring.plug(Sink::input(node), open);
            }
        }),
        Kind::new("looped back", Nodes, Always, |setup, place, _| {
            if let Place::Node(node) = place {
                setup.wiring.plug(Sink::input(node), Source::node(node));
            }
        }),
        Kind::new(
            "wire left high by a dead job",
            Nodes,
            Always,
            |setup, place, _| {
                if let Place::Node(node) = place {
                    setup.latches[node] = arrivals(setup);
                }
            },
        ),
        Kind::new(
            "all others left high by a dead job",
            Nodes,
            Always,
            |setup, place, _| {
                if let Place::Node(node) = place {
                    let high = arrivals(setup);
                    for (other, latch) in setup.latches.iter_mut().enumerate() {
                        *latch = if other == node { 0 } else { high };
                    }
                }
            },
        ),
        Kind::new("slow port", Nodes, Always, move |setup, place, _| {
            if let Place::Node(node) = place {
                setup.slowness[node] = slowness;
            }
        }),
        Kind::new(
            "dead, wire kept",
            Nodes,
            Any,
            on_node(move |node| vec![die(node)]),
        ),
        Kind::new(
            "reboot to 0",
            Nodes,
            Any,
            on_node(move |node| vec![die(node), latch(node, false)]),
        ),
        Kind::new(
            "reboot to 1",
            Nodes,
            Any,
            on_node(move |node| vec![die(node), latch(node, true)]),
        ),
        Kind::new(
            "FPGA reset",
            Board,
            Any,
            on_board(|setup, board, at| {
                setup.incidents.push((at, Incident::Reset { board }));
            }),
        ),
        Kind::new(
            "FPGA reconfigured",
            Board,
            Any,
            on_board(move |setup, board, at| {
                // While the clock is stopped, the board's outputs float:
                // high, unless resistors pull them low.
                // Afterwards the board restarts from its power-on state.
                let high = setup.parameters.pull.unwrap_or(true);
                setup.pauses.push((board, at, at + outage));
                setup.incidents.extend([
                    (at, Incident::Undriven { board, high }),
                    (at + outage, Incident::Reset { board }),
                    (at + outage, Incident::Driven { board }),
                ]);
            }),
        ),
        Kind::new(
            "power lost",
            Board,
            Any,
            on_board(|setup, board, at| {
                // The clamp diodes of a board without a supply hold all its wires low,
                // unless resistors at the nodes pull the wires up.
                let high = setup.parameters.pull.unwrap_or(false);
                setup.pauses.push((board, at, Time::from_ps(u64::MAX)));
                setup
                    .incidents
                    .push((at, Incident::Undriven { board, high }));
            }),
        ),
        Kind::new(
            "power lost and back",
            Board,
            Any,
            on_board(move |setup, board, at| {
                // When the supply returns, the FPGA is configured again,
                // and its outputs float until then.
                let [off, floating] = [false, true].map(|own| setup.parameters.pull.unwrap_or(own));
                let back = at + outage;
                let configured = back + outage;
                setup.pauses.push((board, at, configured));
                setup.incidents.extend([
                    (at, Incident::Undriven { board, high: off }),
                    (
                        back,
                        Incident::Undriven {
                            board,
                            high: floating,
                        },
                    ),
                    (configured, Incident::Reset { board }),
                    (configured, Incident::Driven { board }),
                ]);
            }),
        ),
        Kind::new(
            "clock stopped",
            Board,
            Any,
            on_board(|setup, board, at| {
                setup.pauses.push((board, at, Time::from_ps(u64::MAX)));
            }),
        ),
        Kind::new(
            "clock paused",
            Board,
            Any,
            on_board(move |setup, board, at| {
                setup.pauses.push((board, at, at + outage));
            }),
        ),
    ]);
    kinds
}

/// Returns the levels of a node's outward lines as a mask, with all arrival lines high.
fn arrivals(setup: &Setup) -> u8 {
    u8::MAX >> (u8::BITS as usize - setup.parameters.channels.max(1))
}
