//! Converts a trace to signals and their changes: simulates the boards again, edge by edge where
//! their flip-flops change.

use super::Trace;
use crate::virtual_time::{Board, Incident, Observation, Parameters, Time};
use barrier_board::tree::Tree;
use barrier_waveform::dump::{Kind, Value};
use barrier_waveform::view::{Group, Show, View};

/// Maximum number of clock edges of all boards up to which every edge is written;
/// in longer runs some are left out.
const WHOLE_EDGES: u64 = 200_000;
/// Number of clock edges that are written after the flip-flops are stable.
const CALM_EDGES: u64 = 3;

#[derive(Debug)]
pub(super) struct Signal {
    pub scope: Vec<String>,
    pub name: String,
    pub kind: Kind,
    /// The signal's label in a viewer.
    called: String,
}

#[derive(Debug)]
pub(super) struct Change {
    pub at: Time,
    pub signal: usize,
    pub value: Value,
}

/// The signals of a waveform, and their changes in the order of time.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    pub signals: Vec<Signal>,
    pub changes: Vec<Change>,
    nodes: usize,
    first_release: Option<Time>,
}

/// The indices of a board's signals.
struct BoardIds {
    clk: usize,
    stage1: usize,
    stage2: usize,
    seen: usize,
    arrivals: usize,
    level: usize,
    above: Option<usize>,
}

/// The indices of a node's signals.
struct NodeIds {
    out: usize,
    pin: usize,
    input: usize,
    inside: usize,
}

/// A board that is simulated again from its recorded inputs.
struct Replay {
    board: Board,
    ids: BoardIds,
    /// The time until which clock edges are written; afterwards the state is stable.
    drawn_until: Time,
}

pub(super) fn draw(trace: &Trace) -> Drawing {
    Artist::new(trace).draw(trace)
}

struct Artist {
    drawing: Drawing,
    tree: Tree,
    boards: Vec<Replay>,
    nodes: Vec<NodeIds>,
    whole: bool,
    period: Time,
    releases: (usize, u64),
    arrived: usize,
    fault: usize,
    /// The levels at the boards' pins of all nodes.
    /// A node waits if its level differs from `output`, the root's level.
    pins: Vec<bool>,
    output: bool,
}

impl Artist {
    fn new(trace: &Trace) -> Self {
        let parameters = &trace.parameters;
        let tree = Tree::new(parameters.nodes, parameters.boards);
        let mut drawing = Drawing {
            nodes: parameters.nodes,
            ..Drawing::default()
        };
        let top: [&str; 0] = [];
        let releases = drawing.signal(&top, "releases", Kind::Bits(32), "barriers released");
        let arrived = drawing.signal(&top, "arrived", Kind::Bits(12), "nodes arrived");
        let fault = drawing.signal(&top, "fault", Kind::Text, "fault");
        let end = trace.sights.last().map_or(Time::ZERO, |(at, _)| *at);
        let period = Time::from_ps(1_000_000_000_000 / parameters.clock_hz.max(1));
        let edges = end.ps() / period.ps().max(1) * tree.boards() as u64;
        let boards = (0..tree.boards())
            .filter_map(|number| Replay::new(trace, parameters, &tree, number, &mut drawing))
            .collect();
        let nodes = (0..parameters.nodes)
            .map(|node| {
                let scope = barrier_waveform::vcd::node_scope(node);
                let mut wire = |name: &str, called: &str| {
                    let called = format!("node {node} {called}");
                    drawing.signal(&[scope.as_str()], name, Kind::Bits(1), &called)
                };
                NodeIds {
                    out: wire("out", "writes"),
                    pin: wire("pin", "at the board"),
                    input: wire("in", "reads"),
                    inside: wire("inside", "in barrier"),
                }
            })
            .collect();
        Self {
            drawing,
            boards,
            nodes,
            whole: edges <= WHOLE_EDGES,
            period,
            releases: (releases, 0),
            arrived,
            fault,
            pins: vec![false; parameters.nodes],
            output: false,
            tree,
        }
    }

    fn draw(mut self, trace: &Trace) -> Drawing {
        let zero = Time::ZERO;
        for node in 0..self.nodes.len() {
            let NodeIds {
                out,
                pin,
                input,
                inside,
            } = self.nodes[node];
            for signal in [out, pin, input, inside] {
                self.drawing.change(zero, signal, Value::Bits(0));
            }
        }
        for number in 0..self.boards.len() {
            self.show(zero, number);
            let Replay { ids, .. } = &self.boards[number];
            let (clk, above) = (ids.clk, ids.above);
            self.drawing.change(zero, clk, Value::Bits(0));
            if let Some(above) = above {
                self.drawing.change(zero, above, Value::Bits(0));
            }
        }
        self.drawing.change(zero, self.releases.0, Value::Bits(0));
        self.drawing.change(zero, self.arrived, Value::Bits(0));
        let (fault, none) = (self.fault, Value::Text("-".to_owned()));
        self.drawing.change(zero, fault, none);
        if let Some((at, name)) = &trace.fault {
            // Blanks are replaced: readers of the format take a blank as the end of a text.
            let name = Value::Text(name.replace(' ', "_"));
            self.drawing.change(*at, fault, name);
        }
        let mut incidents = trace.incidents.clone();
        incidents.sort();
        let mut incidents = incidents.into_iter().peekable();
        for (at, observation) in &trace.sights {
            while let Some((when, incident)) = incidents.next_if(|(when, _)| when <= at) {
                self.inject(when, incident);
            }
            self.observe(*at, *observation);
        }
        if let Some((end, _)) = trace.sights.last() {
            let calm = *end + self.period + self.period + self.period + self.period;
            for number in 0..self.boards.len() {
                self.run(number, calm);
            }
        }
        // Boards are simulated one after the other, so the changes must be sorted by time.
        self.drawing.changes.sort_by_key(|change| change.at);
        self.drawing
    }

    fn inject(&mut self, at: Time, incident: Incident) {
        let board = match incident {
            Incident::Reset { board }
            | Incident::Undriven { board, .. }
            | Incident::Driven { board } => board,
            Incident::Die { .. } | Incident::Latch { .. } => return,
        };
        self.run(board, at);
        match incident {
            Incident::Reset { .. } => self.boards[board].board.reset(at),
            Incident::Undriven { high, .. } => self.boards[board].board.undriven = Some(high),
            _ => self.boards[board].board.undriven = None,
        }
        self.show(at, board);
        self.wake(at, board);
    }

    fn observe(&mut self, at: Time, observation: Observation) {
        let bit = |high: bool| Value::Bits(u64::from(high));
        match observation {
            Observation::Enter { node } => self.node(at, node, |ids| ids.inside, bit(true)),
            Observation::Leave { node } => self.node(at, node, |ids| ids.inside, bit(false)),
            Observation::Down { node } => self.node(at, node, |ids| ids.inside, Value::Dead),
            Observation::Driven {
                node,
                line: 0,
                high,
            } => self.node(at, node, |ids| ids.out, bit(high)),
            Observation::Back {
                node,
                line: 0,
                high,
            } => self.node(at, node, |ids| ids.input, bit(high)),
            Observation::Pin {
                node,
                line: 0,
                high,
            } => {
                self.node(at, node, |ids| ids.pin, bit(high));
                self.pins[node] = high;
                let (board, pin) = self.tree.place(node);
                self.arrive(at, board, pin, high);
                self.count(at);
            }
            Observation::Link { board: below, high } => {
                if let Some(signal) = self.boards[below].ids.above {
                    self.drawing.change(at, signal, bit(high));
                }
                if let Some((board, pin)) = self.tree.above(below) {
                    self.arrive(at, board, pin, high);
                }
            }
            Observation::Output { high, .. } => {
                self.output = high;
                self.releases.1 += 1;
                self.drawing.first_release = self.drawing.first_release.or(Some(at));
                let (signal, count) = self.releases;
                self.drawing.change(at, signal, Value::Bits(count));
                self.count(at);
            }
            Observation::Driven { .. }
            | Observation::Back { .. }
            | Observation::Pin { .. }
            | Observation::Read { .. } => {}
        }
    }

    fn node(&mut self, at: Time, node: usize, of: impl Fn(&NodeIds) -> usize, value: Value) {
        let signal = of(&self.nodes[node]);
        self.drawing.change(at, signal, value);
    }

    fn count(&mut self, at: Time) {
        let waiting = self.pins.iter().filter(|pin| **pin != self.output).count();
        let signal = self.arrived;
        self.drawing.change(at, signal, Value::Bits(waiting as u64));
    }

    /// Simulates all edges until `at`, and then sets the level at a pin of a board.
    fn arrive(&mut self, at: Time, board: usize, pin: usize, high: bool) {
        self.run(board, at);
        self.boards[board].board.set(at, pin, 0, high);
        self.wake(at, board);
    }

    /// Writes clock edges until [`CALM_EDGES`] edges after the board is stable again.
    fn wake(&mut self, at: Time, board: usize) {
        let replay = &mut self.boards[board];
        let calm = CALM_EDGES + replay.board.latency_edges();
        let calm = Time::from_ps(self.period.ps() * calm);
        replay.drawn_until = replay.drawn_until.max(at + calm);
    }

    /// Simulates all edges until `until`, and writes the edges near changes.
    fn run(&mut self, number: usize, until: Time) {
        loop {
            let replay = &mut self.boards[number];
            let drawn = if self.whole {
                until
            } else {
                until.min(replay.drawn_until)
            };
            match replay.board.next_edge() {
                Some(edge) if edge <= drawn => {
                    replay.board.run_until(edge);
                    let clk = replay.ids.clk;
                    self.drawing.change(edge, clk, Value::Bits(1));
                    let half = Time::from_ps(self.period.ps() / 2);
                    self.drawing.change(edge + half, clk, Value::Bits(0));
                    self.show(edge, number);
                }
                Some(edge) if edge <= until => {
                    let clk = replay.ids.clk;
                    replay.board.run_until(until);
                    self.drawing.change(edge, clk, Value::NotDrawn);
                }
                _ => return,
            }
        }
    }

    /// Records the present values of the board's flip-flops as changes at time `at`.
    fn show(&mut self, at: Time, number: usize) {
        let Replay { board, ids, .. } = &self.boards[number];
        let Some(flip_flops) = board.flip_flops() else {
            return;
        };
        let level = board.output(0, 0);
        let waiting = flip_flops.seen ^ flip_flops.output;
        let shown = [
            (ids.stage1, flip_flops.stage1),
            (ids.stage2, flip_flops.stage2),
            (ids.seen, flip_flops.seen),
            (ids.arrivals, u64::from(waiting.count_ones())),
            (ids.level, u64::from(level)),
        ];
        for (signal, bits) in shown {
            self.drawing.change(at, signal, Value::Bits(bits));
        }
    }
}

/// The name of the root's scope if boards are cascaded, which is also its label.
const ROOT: &str = "root";

/// Returns the name of a board's scope, and the board's label.
pub(super) fn board_scope(tree: &Tree, board: usize) -> (String, String) {
    match (tree.boards(), board == tree.root()) {
        (1, _) => ("board".to_owned(), "board".to_owned()),
        (_, true) => (ROOT.to_owned(), ROOT.to_owned()),
        (_, false) => (format!("board{board:02}"), format!("board {board}")),
    }
}

impl Replay {
    fn new(
        trace: &Trace,
        parameters: &Parameters,
        tree: &Tree,
        number: usize,
        drawing: &mut Drawing,
    ) -> Option<Self> {
        let own = trace.pauses.iter().filter(|(of, ..)| *of == number);
        let own = own.map(|&(_, from, to)| (from, to)).collect();
        // A world with these parameters has run, so creating its boards again cannot fail.
        let board = Board::new(parameters, tree, number, own).ok()?;
        let (scope, called) = board_scope(tree, number);
        let pins = tree.pins(number) as u32;
        let mut signal = |name: &str, width: u32| {
            let called = format!("{called} {name}");
            drawing.signal(&[scope.as_str()], name, Kind::Bits(width), &called)
        };
        let ids = BoardIds {
            clk: signal("clk", 1),
            stage1: signal("stage1", pins),
            stage2: signal("stage2", pins),
            seen: signal("seen", pins),
            arrivals: signal("arrivals", 7),
            level: signal("level", 1),
            above: tree.above(number).map(|_| signal("above", 1)),
        };
        Some(Self {
            board,
            ids,
            drawn_until: Time::ZERO,
        })
    }
}

impl Drawing {
    fn signal(&mut self, scope: &[&str], name: &str, kind: Kind, called: &str) -> usize {
        let top = std::iter::once(barrier_waveform::vcd::TOP);
        self.signals.push(Signal {
            scope: top
                .chain(scope.iter().copied())
                .map(str::to_owned)
                .collect(),
            name: name.to_owned(),
            kind,
            called: called.to_owned(),
        });
        self.signals.len() - 1
    }

    fn change(&mut self, at: Time, signal: usize, value: Value) {
        self.changes.push(Change { at, signal, value });
    }

    /// Returns the initial view of the waveform.
    pub(super) fn view(&self) -> View {
        let mut after_power_on = None;
        let mut last: Vec<Option<&Value>> = vec![None; self.signals.len()];
        for Change { at, signal, value } in &self.changes {
            let is_another = last[*signal].is_some_and(|last| last != value);
            last[*signal] = Some(value);
            if *at > Time::ZERO && is_another && self.signals[*signal].name != "clk" {
                after_power_on = Some(*at);
                break;
            }
        }
        View {
            nodes: self.nodes,
            begin: after_power_on.map_or(0, Time::ps),
            release: self.first_release.map(Time::ps),
            end: self.changes.last().map_or(1, |change| change.at.ps()),
        }
    }

    /// Returns the signals in groups for a viewer:
    /// totals, one group per board, then one group per kind of wire.
    ///
    /// `text_bits` is the width of the vector that contains a text signal; `None` if the file stores it as a string.
    pub(super) fn groups(&self, text_bits: Option<u32>) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let kinds = [
            ("inside", "in the barrier (enter to leave)"),
            ("out", "written by the nodes"),
            ("pin", "the same at the board"),
            ("in", "read by the nodes"),
        ];
        for signal in &self.signals {
            let title = match signal.scope.get(1) {
                None => "barrier".to_owned(),
                Some(scope) if scope.starts_with("node") => {
                    let kind = kinds.iter().find(|(name, _)| *name == signal.name);
                    kind.map_or(scope.clone(), |(_, title)| (*title).to_owned())
                }
                Some(scope) => scope.clone(),
            };
            let show = match signal.kind {
                Kind::Bits(width) => Show::Bits(width),
                Kind::Text => Show::Text(text_bits),
            };
            let path = format!("{}.{}", signal.scope.join("."), signal.name);
            let entry = (signal.called.clone(), path, show);
            match groups.iter_mut().find(|group| group.title == title) {
                Some(group) => group.signals.push(entry),
                None => groups.push(Group {
                    title,
                    signals: vec![entry],
                }),
            }
        }
        // The root's level is the barrier's output,
        // so the root's group comes before the groups of the other boards.
        let root = groups.iter().position(|group| group.title == ROOT);
        if let Some(root) = root {
            groups[1..=root].rotate_right(1);
        }
        groups
    }
}
