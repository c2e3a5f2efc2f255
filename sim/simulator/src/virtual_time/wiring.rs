//! The wires of a simulated world: their sources, their sinks and the disturbances in between.
//!
//! A wire is a [`Line`]: it carries a level from its source to its sink.
//! Every [`Disturbance`] on the wire may change the level that arrives.
//! A disturbance is a function of time, input level and the time of the last input change.
//! It has no state, so the output at a given time does not depend on earlier evaluations.
//! Wires of one cable may be [`Wiring::couple`]d:
//! each edge on one wire then causes a short pulse on the other.

use super::Time;
use barrier_board::tree::Tree;
use std::fmt;

/// The end of a wire that determines its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An outward line of this node's port.
    Node {
        /// The node that drives the wire.
        node: usize,
        /// The outward line; version 1 has only line 0.
        line: usize,
    },
    /// An output of this board.
    Board {
        /// The board that drives the wire.
        board: usize,
        /// The index of the release output; version 1 has only output 0.
        line: usize,
    },
    /// No source: a pull-up or pull-down at the receiver determines the level.
    Open {
        /// True for a pull-up, false for a pull-down.
        high: bool,
    },
}

/// The receiving end of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sink {
    /// The board's pin for this node.
    Pin {
        /// The node whose line ends at the pin.
        node: usize,
        /// The outward line of the node.
        line: usize,
    },
    /// An inward line of this node's port.
    Input {
        /// The node that has the port.
        node: usize,
        /// The inward line of the node.
        line: usize,
    },
    /// The pin of the board above, to which this board's output goes.
    Link {
        /// The lower board, which drives the output.
        board: usize,
    },
}

impl Source {
    /// Returns the first outward line of this node, the only one in version 1.
    pub const fn node(node: usize) -> Self {
        Self::Node { node, line: 0 }
    }
}

impl Sink {
    /// Returns the sink of this node's first outward line.
    pub const fn pin(node: usize) -> Self {
        Self::Pin { node, line: 0 }
    }

    /// Returns the first inward line of this node.
    pub const fn input(node: usize) -> Self {
        Self::Input { node, line: 0 }
    }
}

/// A disturbance that changes the level of a wire between source and sink.
pub trait Disturbance {
    /// Returns the output level at `now` of a wire whose
    /// input has had the level `input` since `since`.
    fn level(&self, now: Time, input: bool, since: Time) -> bool;

    /// Returns the instants at which the output may change with a constant input.
    fn instants(&self) -> Vec<Time> {
        Vec::new()
    }

    /// Returns the instants at which the output may change after a change of the input at `since`.
    fn echoes(&self, since: Time) -> Vec<Time> {
        let _ = since;
        Vec::new()
    }
}

/// A wire with its disturbances.
pub struct Line {
    source: Source,
    disturbances: Vec<Box<dyn Disturbance>>,
    /// The input level; `since` is the time of its last change.
    input: bool,
    since: Time,
    /// The output level at the last evaluation.
    output: bool,
    /// The last level that the source has sent;
    /// it is fed into the wire after the propagation delay.
    sent: bool,
    /// End and level of the present pulse that an edge on a coupled wire has caused.
    struck: Option<(Time, bool)>,
}

/// Two coupled wires: an edge on one causes a pulse on the other.
///
/// The pulse has the direction of the edge, as near-end crosstalk between parallel wires has,
/// and lasts about as long as the edge and its propagation along the other wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coupling {
    /// The aggressor, identified by its sink.
    pub from: Sink,
    /// The victim, identified by its sink.
    pub to: Sink,
    /// Duration of each pulse.
    pub width: Time,
    /// Time from which the wires are coupled.
    pub since: Time,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("source", &self.source)
            .field("disturbances", &self.disturbances.len())
            .field("output", &self.output)
            .finish()
    }
}

impl Line {
    fn new(source: Source) -> Self {
        Self {
            source,
            disturbances: Vec::new(),
            input: false,
            since: Time::ZERO,
            output: false,
            sent: false,
            struck: None,
        }
    }

    /// Adds a disturbance to the wire, after the existing ones.
    pub fn disturb(&mut self, disturbance: impl Disturbance + 'static) {
        self.disturbances.push(Box::new(disturbance));
    }

    /// Changes the input level; returns the instants at which the output must be evaluated again.
    pub(super) fn feed(&mut self, now: Time, high: bool) -> Vec<Time> {
        if self.input != high {
            (self.input, self.since) = (high, now);
            return self
                .disturbances
                .iter()
                .flat_map(|d| d.echoes(now))
                .collect();
        }
        Vec::new()
    }

    /// Evaluates the output; returns the level if it has changed.
    pub(super) fn change(&mut self, now: Time) -> Option<bool> {
        let high = self
            .disturbances
            .iter()
            .fold(self.input, |level, d| d.level(now, level, self.since));
        let high = match self.struck {
            Some((until, level)) if now < until => level,
            _ => high,
        };
        let changed = high != self.output;
        self.output = high;
        changed.then_some(high)
    }

    /// Records `high` as the last level sent; returns true if it differs from the previous level.
    pub(super) fn sends(&mut self, high: bool) -> bool {
        std::mem::replace(&mut self.sent, high) != high
    }

    /// Returns the input level.
    pub(super) fn input(&self) -> bool {
        self.input
    }

    /// Applies a pulse from an edge on a coupled wire: the output has level `high` until `until`.
    pub(super) fn strike(&mut self, until: Time, high: bool) {
        self.struck = Some((until, high));
    }

    /// Returns the output level at the last evaluation.
    pub(super) fn output(&self) -> bool {
        self.output
    }

    /// Returns every instant at which the output may change with a constant input.
    pub(super) fn instants(&self) -> Vec<Time> {
        self.disturbances
            .iter()
            .flat_map(|d| d.instants())
            .collect()
    }
}

/// All wires of a barrier.
#[derive(Debug)]
pub struct Wiring {
    lines: [usize; 2],
    pins: Vec<Line>,
    inputs: Vec<Line>,
    links: Vec<Line>,
    couplings: Vec<Coupling>,
}

impl Wiring {
    /// Connects every node to its own pin of these boards.
    /// `lines` is the number of a node's outward lines, and the number of its inward lines.
    pub fn straight(tree: &Tree, nodes: usize, lines: [usize; 2]) -> Self {
        let [outward, inward] = lines;
        let each = |lines: usize| (0..nodes * lines).map(move |k| (k / lines, k % lines));
        let board = tree.root();
        Self {
            lines,
            pins: each(outward)
                .map(|(node, line)| Line::new(Source::Node { node, line }))
                .collect(),
            inputs: each(inward)
                .map(|(_, line)| Line::new(Source::Board { board, line }))
                .collect(),
            links: (0..tree.root())
                .map(|board| Line::new(Source::Board { board, line: 0 }))
                .collect(),
            couplings: Vec::new(),
        }
    }

    /// Returns the wire with this sink.
    pub fn line(&mut self, sink: Sink) -> &mut Line {
        let [outward, inward] = self.lines;
        match sink {
            Sink::Pin { node, line } => &mut self.pins[node * outward + line],
            Sink::Input { node, line } => &mut self.inputs[node * inward + line],
            Sink::Link { board } => &mut self.links[board],
        }
    }

    /// Returns the number of a node's outward lines, and the number of its inward lines.
    pub fn lines(&self) -> [usize; 2] {
        self.lines
    }

    /// Connects the wire with sink `sink` to another source.
    pub fn plug(&mut self, sink: Sink, source: Source) {
        self.line(sink).source = source;
    }

    /// Exchanges the sources of the wires that end at two sinks.
    pub fn swap(&mut self, one: Sink, other: Sink) {
        let (a, b) = (self.line(one).source, self.line(other).source);
        self.plug(one, b);
        self.plug(other, a);
    }

    /// Couples two wires: edges on one cause pulses on the other.
    pub fn couple(&mut self, coupling: Coupling) {
        self.couplings.push(coupling);
    }

    /// Returns the sinks of the wires that an edge on the
    /// wire `from` disturbs, with the end of each pulse.
    pub(super) fn strikes(&self, from: Sink, now: Time) -> Vec<(Sink, Time)> {
        let couplings = self.couplings.iter();
        let near = couplings.filter(|c| c.from == from && now >= c.since);
        near.map(|c| (c.to, now + c.width)).collect()
    }

    /// Returns the sink of every wire, with its source.
    pub(super) fn ends(&self) -> impl Iterator<Item = (Sink, Source)> {
        let [outward, inward] = self.lines;
        let pins = self.pins.iter().enumerate().map(move |(k, line)| {
            let (node, number) = (k / outward, k % outward);
            (Sink::Pin { node, line: number }, line.source)
        });
        let inputs = self.inputs.iter().enumerate().map(move |(k, line)| {
            let (node, number) = (k / inward, k % inward);
            (Sink::Input { node, line: number }, line.source)
        });
        let links = self.links.iter().enumerate();
        let links = links.map(|(board, line)| (Sink::Link { board }, line.source));
        pins.chain(inputs).chain(links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn straight(nodes: usize) -> Wiring {
        Wiring::straight(&Tree::new(nodes, 1), nodes, [1, 1])
    }

    /// A disturbance that inverts the input for a fixed time after each change.
    struct Wobble(Time);

    impl Disturbance for Wobble {
        fn level(&self, now: Time, input: bool, since: Time) -> bool {
            input != (now < since + self.0)
        }

        fn echoes(&self, since: Time) -> Vec<Time> {
            vec![since + self.0]
        }
    }

    #[test]
    fn disturbances_apply_one_after_the_other() {
        let ns = Time::from_ns;
        let mut wiring = straight(1);
        let line = wiring.line(Sink::pin(0));
        line.disturb(Wobble(ns(10)));
        line.disturb(Wobble(ns(20)));
        assert_eq!(line.feed(ns(100), true), [ns(110), ns(120)]);
        // Until 110 ns both disturbances invert the level, until 120 ns one does, then none.
        assert_eq!(line.change(ns(100)), Some(true));
        assert_eq!(line.change(ns(110)), Some(false));
        assert_eq!(line.change(ns(120)), Some(true));
        assert_eq!(line.change(ns(130)), None);
    }

    #[test]
    fn an_edge_on_a_coupled_wire_is_a_pulse_on_its_neighbour() {
        let ns = Time::from_ns;
        let mut wiring = straight(2);
        wiring.couple(Coupling {
            from: Sink::pin(0),
            to: Sink::pin(1),
            width: ns(30),
            since: ns(50),
        });
        assert_eq!(wiring.strikes(Sink::pin(0), ns(40)), []);
        assert_eq!(wiring.strikes(Sink::pin(1), ns(100)), []);
        let struck = wiring.strikes(Sink::pin(0), ns(100));
        assert_eq!(struck, [(Sink::pin(1), ns(130))]);
        let victim = wiring.line(Sink::pin(1));
        victim.strike(ns(130), true);
        assert_eq!(victim.change(ns(100)), Some(true));
        assert_eq!(victim.change(ns(130)), Some(false));
        // An edge towards the present level of the wire has no effect.
        victim.strike(ns(230), false);
        assert_eq!(victim.change(ns(200)), None);
    }

    #[test]
    fn swapped_wires_begin_at_each_others_source() {
        let mut wiring = straight(2);
        wiring.swap(Sink::pin(0), Sink::pin(1));
        wiring.plug(Sink::input(1), Source::Open { high: true });
        let ends: Vec<_> = wiring.ends().collect();
        assert_eq!(
            ends,
            [
                (Sink::pin(0), Source::node(1)),
                (Sink::pin(1), Source::node(0)),
                (Sink::input(0), Source::Board { board: 0, line: 0 }),
                (Sink::input(1), Source::Open { high: true }),
            ]
        );
    }
}
