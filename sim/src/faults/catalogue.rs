//! Every fault of the campaign: where it can be, when it can strike, and what it changes.
//!
//! A fault changes the wiring, the latches, the clock or the timetable of a [`Setup`]; neither the driver nor the world has
//! a branch for it.

use super::disturbances::{Bounce, Floating, Glitch, Inverted, Metastable, Stuck};
use super::moments::Moment;
use crate::virtual_time::{Coupling, Incident, Setup, Sink, Source, Time};
use std::fmt;
use std::str::FromStr;

/// Where a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// On the wire from this node to the barrier.
    ToBarrier(usize),
    /// On the wire from the barrier to this node.
    FromBarrier(usize),
    /// At this node.
    Node(usize),
    /// In the machine.
    Board,
}

impl Place {
    /// Without the number.
    pub fn kind(self) -> &'static str {
        match self {
            Self::ToBarrier(_) => "wire to the barrier",
            Self::FromBarrier(_) => "wire from the barrier",
            Self::Node(_) => "node",
            Self::Board => "board",
        }
    }

    /// The node whose moment it strikes at.
    pub fn node(self) -> Option<usize> {
        match self {
            Self::ToBarrier(node) | Self::FromBarrier(node) | Self::Node(node) => Some(node),
            Self::Board => None,
        }
    }

    /// The end of the wire.
    fn sink(self) -> Option<Sink> {
        match self {
            Self::ToBarrier(node) => Some(Sink::Pin(node)),
            Self::FromBarrier(node) => Some(Sink::Input(node)),
            Self::Node(_) | Self::Board => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToBarrier(node) => write!(f, "wire of node {node} to the barrier"),
            Self::FromBarrier(node) => write!(f, "wire from the barrier to node {node}"),
            Self::Node(node) => write!(f, "node {node}"),
            Self::Board => f.write_str("board"),
        }
    }
}

/// A word that is no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPlace(String);

impl fmt::Display for BadPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no place: write to:NODE or from:NODE for a wire to or from the barrier, node:NODE, or board",
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
            return Ok(Self::Board);
        }
        let (kind, node) = text.split_once(':').ok_or_else(bad)?;
        let node = node.parse().map_err(|_| bad())?;
        match kind {
            "to" => Ok(Self::ToBarrier(node)),
            "from" => Ok(Self::FromBarrier(node)),
            "node" => Ok(Self::Node(node)),
            _ => Err(bad()),
        }
    }
}

/// Which places a fault can be at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    Wires,
    ToBarrier,
    Nodes,
    Board,
}

/// When a fault can strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Onset {
    /// At any moment.
    Any,
    /// It is there from the beginning: how things are plugged.
    Always,
}

type Install = Box<dyn Fn(&mut Setup, Place, Time) + Send + Sync>;

/// One kind of fault.
pub struct Kind {
    /// As a table calls it.
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

    /// Everywhere it can be in a barrier of so many nodes.
    pub fn places(&self, nodes: usize) -> Vec<Place> {
        let each = |place: fn(usize) -> Place| (0..nodes).map(place);
        match self.places {
            Places::Wires => each(Place::ToBarrier)
                .chain(each(Place::FromBarrier))
                .collect(),
            Places::ToBarrier => each(Place::ToBarrier).collect(),
            Places::Nodes => each(Place::Node).collect(),
            Places::Board => vec![Place::Board],
        }
    }

    /// Whenever it can strike.
    pub fn moments(&self) -> &'static [Moment] {
        match self.onset {
            Onset::Any => &Moment::ALL,
            Onset::Always => &[Moment::PowerOn],
        }
    }

    /// Puts it into a world before its power comes on.
    pub fn install(&self, setup: &mut Setup, place: Place, at: Time) {
        (self.install)(setup, place, at);
    }
}

/// Numbers that the kinds of fault depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// How long glitches last.
    pub glitches: Vec<Time>,
    /// How long the pulses last that edges of a neighbouring wire make.
    pub crosstalk: Vec<Time>,
    /// How long each level of a bouncing change holds.
    pub bounce: Time,
    /// How often it comes back.
    pub bounces: u64,
    /// How many times slower a slow node's port is.
    pub slowness: f64,
    /// How long the clock stands still, or the FPGA is configured.
    pub outage: Time,
    /// For how long a floating wire makes noise, and how long each of its levels holds.
    pub noise: (Time, Time),
    /// Which of the possible noises and coins.
    pub seed: u64,
}

impl Default for Sizes {
    /// A glitch shorter than a clock period, one that is sampled, and one that an access of the port sees.
    fn default() -> Self {
        Self {
            glitches: [20, 100, 5000].map(Time::from_ns).to_vec(),
            // An edge of a few nanoseconds along two metres of cable, and along twenty.
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

/// A disturbance on the wire of a place that is one.
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

/// What befalls the node of a place that is one.
fn on_node(make: impl Fn(usize) -> Vec<(Time, Incident)>) -> impl Fn(&mut Setup, Place, Time) {
    move |setup, place, at| {
        if let Some(node) = place.node() {
            let incidents = make(node).into_iter().map(|(later, i)| (at + later, i));
            setup.incidents.extend(incidents);
        }
    }
}

/// All kinds, those of wires first.
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
    // Different places make different noise.
    let noise = move |place: Place| seed ^ place.node().unwrap_or(0) as u64;
    let mut kinds = vec![
        Kind::new("stuck at 0", Wires, Any, stuck(false)),
        Kind::new("stuck at 1", Wires, Any, stuck(true)),
        // Inputs of most ports, and of the board by its pull-ups, read 1 when nothing is plugged in.
        Kind::new("open, pulled up", Wires, Any, stuck(true)),
        Kind::new(
            "open, floating",
            Wires,
            Any,
            on_wire(move |_, place, from| Floating {
                from,
                lasts,
                period: holds,
                seed: noise(place),
            }),
        ),
    ];
    kinds.extend(sizes.crosstalk.iter().map(|&width| {
        let install = move |setup: &mut Setup, place: Place, since| {
            let Some(to) = place.sink() else { return };
            // Nodes' cables lie side by side, and the two wires of a pair are in one cable.
            let from = match to {
                Sink::Pin(node) => Sink::Pin((node + 1) % setup.parameters.nodes),
                Sink::Input(node) => Sink::Pin(node),
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
            match place.sink() {
                Some(Sink::Pin(node)) => setup.wiring.swap(Sink::Pin(node), Sink::Pin(next)),
                Some(Sink::Input(node)) => {
                    setup.wiring.swap(Sink::Input(node), Sink::Input(next));
                }
                None => {}
            }
        }),
        Kind::new(
            "cables swapped with the next",
            Nodes,
            Always,
            |setup, place, _| {
                if let Place::Node(node) = place {
                    let next = (node + 1) % setup.parameters.nodes;
                    setup.wiring.swap(Sink::Pin(node), Sink::Pin(next));
                    setup.wiring.swap(Sink::Input(node), Sink::Input(next));
                }
            },
        ),
        Kind::new("pair reversed", Nodes, Always, |setup, place, _| {
            if let Place::Node(node) = place {
                // Output meets output and input meets input, which their pull-ups hold high.
                let open = Source::Open { high: true };
                setup.wiring.plug(Sink::Pin(node), open);
                setup.wiring.plug(Sink::Input(node), open);
            }
        }),
        Kind::new("looped back", Nodes, Always, |setup, place, _| {
            if let Place::Node(node) = place {
                setup.wiring.plug(Sink::Input(node), Source::Node(node));
            }
        }),
        Kind::new(
            "wire left high by a dead job",
            Nodes,
            Always,
            |setup, place, _| {
                if let Place::Node(node) = place {
                    setup.latches |= 1 << node;
                }
            },
        ),
        Kind::new(
            "all others left high by a dead job",
            Nodes,
            Always,
            |setup, place, _| {
                if let Place::Node(node) = place {
                    let all = u64::MAX >> (u64::BITS as usize - setup.parameters.nodes);
                    setup.latches |= all & !(1 << node);
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
        Kind::new("FPGA reset", Board, Any, |setup, _, at| {
            setup.incidents.push((at, Incident::Reset));
        }),
        Kind::new("FPGA reconfigured", Board, Any, move |setup, _, at| {
            // Its outputs float high meanwhile, nothing in it moves, and it starts from its power-on state.
            setup.pauses.push((at, at + outage));
            setup.incidents.extend([
                (at, Incident::Undriven { high: true }),
                (at + outage, Incident::Reset),
                (at + outage, Incident::Driven),
            ]);
        }),
        Kind::new("clock stopped", Board, Any, |setup, _, at| {
            setup.pauses.push((at, Time::from_ps(u64::MAX)));
        }),
        Kind::new("clock paused", Board, Any, move |setup, _, at| {
            setup.pauses.push((at, at + outage));
        }),
    ]);
    kinds
}
