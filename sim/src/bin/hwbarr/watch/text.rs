//! A watched board for scripts.

use super::history::{History, Phase, spelled};
use serde_json::{Value, json};

/// How a phase is drawn, and called.
pub const LEGEND: [(Phase, char, &str); 4] = [
    (Phase::In, '#', "in the barrier"),
    (Phase::Awaited, '!', "awaited"),
    (Phase::Out, '.', "out"),
    (Phase::Nobody, '-', "nobody's"),
];

/// Nodes in a row.
pub const ROW: usize = 10;

/// The mark of a phase.
pub fn mark(phase: Phase) -> char {
    let row = LEGEND.iter().find(|(legend, ..)| *legend == phase);
    row.map_or('?', |(_, mark, _)| *mark)
}

/// What the nodes are at, in one sentence.
pub fn state(history: &History) -> String {
    let sight = history.last();
    let (entered, nodes) = (sight.entered().count_ones(), sight.nodes);
    let (level, next) = match sight.output() {
        false => ("low", "high"),
        true => ("high", "low"),
    };
    match entered {
        0 => format!("the barrier's wires are {level}, and nobody is in the barrier"),
        _ => format!(
            "the barrier's wires are {level}, and {entered} of {nodes} nodes have entered by going {next}"
        ),
    }
}

/// The nodes for which those wait that are in the barrier.
pub fn awaited(history: &History) -> Option<String> {
    let missing = history.last().missing();
    let waited = history.waited().filter(|_| missing != 0)?;
    let plural = if missing.count_ones() == 1 {
        "node"
    } else {
        "nodes"
    };
    Some(format!(
        "they have waited for {plural} {} for {waited:.1} s",
        spelled(missing)
    ))
}

/// The whole board.
pub fn picture(history: &History) -> String {
    let sight = history.last();
    let mut text = format!(
        "{}: {} nodes, {} of them connected\n{} releases counted by the machine\n{}\n",
        history.title,
        sight.nodes,
        sight.connected.count_ones(),
        sight.board.releases,
        state(history)
    );
    if let missing @ 1.. = sight.missing() {
        text += &format!("awaited: {}\n", spelled(missing));
    }
    text += "\n";
    for first in (0..sight.nodes).step_by(ROW) {
        let row = first..(first + ROW).min(sight.nodes);
        let marks: String = row
            .map(|node| format!(" {}", mark(sight.phase(node))))
            .collect();
        text += &format!("{first:>2} {marks}\n");
    }
    let legend: Vec<_> = LEGEND
        .map(|(_, mark, words)| format!("{mark} {words}"))
        .into();
    text + "\n" + &legend.join("   ") + "\n"
}

/// One look in a line.
pub fn line(history: &History) -> String {
    let sight = history.last();
    let rate = history.rate();
    let rate = rate.map_or_else(|| "     -".into(), |rate| format!("{rate:>6.0}"));
    let missing = match sight.missing() {
        0 => String::new(),
        missing => format!(", awaited: {}", spelled(missing)),
    };
    format!(
        "{:>9} releases {rate}/s, {:>2} of {} in the barrier{missing}\n",
        sight.board.releases,
        sight.entered().count_ones(),
        sight.nodes,
    )
}

/// The whole board, for programs.
pub fn json(history: &History) -> Value {
    let sight = history.last();
    let numbers = |mask: u64| -> Vec<usize> {
        let nodes = 0..sight.nodes;
        nodes.filter(|node| mask >> node & 1 == 1).collect()
    };
    json!({
        "board": history.title,
        "nodes": sight.nodes,
        "releases": sight.board.releases,
        "output": u8::from(sight.output()),
        "high": numbers(sight.board.inputs),
        "connected": numbers(sight.connected),
        "entered": numbers(sight.entered()),
        "awaited": numbers(sight.missing()),
    })
}
