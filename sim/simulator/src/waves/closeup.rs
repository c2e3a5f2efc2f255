//! A close-up of one release at the scale of the clock:
//! the path of the last arrival from port to port, through every flip-flop.
//! For an overview, it also contains these rows and the wires of some other nodes for the whole run.

use super::Trace;
use super::draw::{self, Drawing};
use crate::virtual_time::{Observation, Time};
use barrier_board::tree::Tree;
use barrier_waveform::dump::Value;

/// Margin of the close-up before the write, and after the release has reached the node's connector.
const RIM: Time = Time::from_ns(40);

/// A section of a waveform, as rows of levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closeup {
    /// The node whose arrival was the last before the release.
    pub node: usize,
    /// Start time of the section.
    pub from: Time,
    /// End time of the section.
    pub until: Time,
    /// The rows in the order of the path; each has all changes of the run.
    pub rows: Vec<Row>,
    /// The wires of some other nodes; each row has all changes of the run.
    pub others: Vec<Row>,
    /// The name of the row with the root's level, whose changes are the releases.
    pub level: String,
    /// End time of the rows: the end of the run,
    /// or earlier if a clock has more than 20,000 changes.
    pub end: Time,
}

/// Maximum number of other nodes that are shown.
const OTHERS: usize = 7;
/// Maximum number of changes of a clock in the rows.
const MOST_CHANGES: usize = 20_000;

/// A row of a waveform: one signal of one bit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The row's label.
    pub name: String,
    /// The changes of the level; the first is at the start of the run.
    pub levels: Vec<(Time, bool)>,
}

/// Returns the close-up of a run's first release; `None` if the run has no release.
pub fn closeup(trace: &Trace) -> Option<Closeup> {
    let is_release =
        |(_, observation): &&(Time, Observation)| matches!(observation, Observation::Output { .. });
    let (released, _) = trace.sights.iter().find(is_release)?;
    let before = trace.sights.iter().rev().filter(|(at, _)| at <= released);
    let node = before
        .clone()
        .find_map(|(_, observation)| match observation {
            Observation::Pin { node, .. } => Some(*node),
            _ => None,
        })?;
    let (written, _) = before
        .clone()
        .find(|(_, observation)| matches!(observation, Observation::Driven { node: of, .. } if *of == node))?;
    let mut after = trace.sights.iter().filter(|(at, _)| at > released);
    let (back, _) = after.find(
        |(_, observation)| matches!(observation, Observation::Back { node: of, .. } if *of == node),
    )?;
    let drawing = draw::draw(trace);
    let parameters = &trace.parameters;
    let tree = Tree::new(parameters.nodes, parameters.boards);
    let scope = barrier_waveform::vcd::node_scope(node);
    let mut rows = vec![
        row(&drawing, &scope, "out", 0, format!("node {node} writes")),
        row(
            &drawing,
            &scope,
            "pin",
            0,
            format!("node {node} at the board"),
        ),
    ];
    // The boards from the node's own board to the root,
    // with the pin at which the level arrives at each.
    let way = std::iter::successors(Some(tree.place(node)), |(board, _)| tree.above(*board));
    for (board, pin) in way {
        let (scope, called) = draw::board_scope(&tree, board);
        let signals = [
            ("clk", 0, "clock"),
            ("stage1", pin, "first stage"),
            ("stage2", pin, "second stage"),
            ("seen", pin, "seen"),
            ("level", 0, "level"),
        ];
        // Without a filter the machine's input equals the second synchroniser stage,
        // so the input is left out.
        let shown = signals
            .into_iter()
            .filter(|(signal, ..)| *signal != "seen" || parameters.filter > 1);
        rows.extend(shown.map(|(signal, bit, words)| {
            row(&drawing, &scope, signal, bit, format!("{called} {words}"))
        }));
    }
    rows.push(row(&drawing, &scope, "in", 0, format!("node {node} reads")));
    let step = parameters.nodes.div_ceil(OTHERS + 1).max(1);
    let mut others: Vec<Row> = (0..parameters.nodes)
        .step_by(step)
        .filter(|other| *other != node)
        .take(OTHERS)
        .flat_map(|other| {
            let scope = barrier_waveform::vcd::node_scope(other);
            [("out", "writes"), ("in", "reads")].map(|(signal, words)| {
                row(&drawing, &scope, signal, 0, format!("node {other} {words}"))
            })
        })
        .collect();
    let end = rows.iter().filter_map(|row| row.levels.get(MOST_CHANGES));
    let until = *back + RIM;
    let last = drawing.changes.last().map_or(until, |change| change.at);
    let end = end.map(|(at, _)| *at).fold(last, Time::min).max(until);
    for row in rows.iter_mut().chain(&mut others) {
        row.levels.retain(|(at, _)| *at <= end);
    }
    let (_, root) = draw::board_scope(&tree, tree.root());
    Some(Closeup {
        others,
        level: format!("{root} level"),
        end,
        node,
        from: Time::from_ps(written.ps().saturating_sub(RIM.ps())),
        until,
        rows,
    })
}

/// Returns the changes of one bit of a signal as a row.
fn row(drawing: &Drawing, scope: &str, signal: &str, bit: usize, name: String) -> Row {
    let number = drawing
        .signals
        .iter()
        .position(|of| of.name == signal && of.scope.last().is_some_and(|last| last == scope));
    let mut levels: Vec<(Time, bool)> = Vec::new();
    let changes = drawing.changes.iter();
    for change in changes.filter(|change| Some(change.signal) == number) {
        if let Value::Bits(bits) = change.value {
            let level = bits >> bit & 1 == 1;
            if levels.last().is_none_or(|(_, last)| *last != level) {
                levels.push((change.at, level));
            }
        }
    }
    Row { name, levels }
}
