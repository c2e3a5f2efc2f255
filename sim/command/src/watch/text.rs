//! Text output of a watched board, for scripts.

use super::history::{History, Nodes, Phase, of_mask, spelled};
use barrier_board::live::{ChannelLook, Look};
use barrier_waveform::words::counted;
use serde_json::{Value, json};

/// For each state of a node, its one-character mark and its name.
pub const LEGEND: [(Phase, char, &str); 4] = [
    (Phase::In, '#', "in the barrier"),
    (Phase::Awaited, '!', "awaited"),
    (Phase::Out, '.', "out"),
    (Phase::Undriven, '-', "no process drives it"),
];

/// Number of nodes in a row of the picture of a single board.
pub const ROW: usize = 10;

/// Returns the number of nodes per row of the picture; each board of a tree has its own row.
pub fn row(look: &Look) -> usize {
    match look.share < look.nodes.len() {
        true => look.share.max(1),
        false => ROW,
    }
}

/// Returns the mark of a node's state.
pub fn mark(phase: Phase) -> char {
    let row = LEGEND.iter().find(|(legend, ..)| *legend == phase);
    row.map_or('?', |(_, mark, _)| *mark)
}

/// Describes the states of all nodes in one sentence.
pub fn state(history: &History) -> String {
    let observation = history.last();
    if history.has_channels() {
        let taken = observation.channels.iter().filter(|c| c.members != 0);
        return format!("five channels (version 2), {} of them taken", taken.count());
    }
    let (entered, nodes) = (observation.entered().len(), observation.nodes.len());
    let (level, next) = match observation.output {
        false => ("low", "high"),
        true => ("high", "low"),
    };
    match entered {
        0 => format!("the barrier's wires are {level}, and no node is in the barrier"),
        _ => format!(
            "the barrier's wires are {level}, and {entered} of {} entered by going {next}",
            match nodes {
                1 => "1 node has".to_owned(),
                _ => format!("{nodes} nodes have"),
            }
        ),
    }
}

/// Names the node that raised the eureka line first; `None` if the line is low.
pub fn found(history: &History) -> Option<String> {
    let line = history.last().line.filter(|line| line.found)?;
    Some(match line.first {
        Some(node) => format!("node {node} was the first to find it (eureka)"),
        None => "a node has found it (eureka)".to_owned(),
    })
}

/// Names the nodes for which the nodes in the barrier wait; `None` if no node waits.
pub fn awaited(history: &History) -> Option<String> {
    let missing = history.last().missing();
    let waited = history.waited().filter(|_| !missing.is_empty())?;
    let plural = if missing.len() == 1 { "node" } else { "nodes" };
    Some(format!(
        "they have waited for {plural} {} for {waited:.1} s",
        spelled(&missing)
    ))
}

/// Describes a channel of version 2 in one line.
pub fn channel(number: usize, look: &ChannelLook) -> String {
    let nodes = |mask| spelled(&of_mask(mask));
    if look.members == 0 {
        return format!("channel {number}: free");
    }
    let mut text = format!("channel {number}: nodes {}", nodes(look.members));
    let mut add = |part: String| text += &format!("; {part}");
    if look.missing() != 0 {
        add(format!(
            "arrived: {}; awaited: {}",
            nodes(look.arrived),
            nodes(look.missing())
        ));
    }
    if look.late != 0 {
        add(format!("late at the limit: {}", nodes(look.late)));
    }
    if look.expired != 0 {
        add(counted(look.expired, "limit") + " expired");
    }
    if look.early != 0 {
        add(counted(look.early, "early release"));
    }
    add(counted(look.releases, "release"));
    text
}

/// Returns one line per channel of a version 2 board.
pub fn channels(look: &Look) -> impl Iterator<Item = String> {
    let each = look.channels.iter().enumerate();
    each.map(|(number, look)| channel(number, look))
}

/// Draws the whole board as text.
pub fn picture(history: &History) -> String {
    let observation = history.last();
    let mut text = format!(
        "{}: {}, {} of them connected\n{} counted by the machine\n{}\n",
        history.title,
        counted(observation.nodes.len(), "node"),
        observation.connected().len(),
        counted(observation.releases, "release"),
        state(history)
    );
    if let Some(found) = found(history) {
        text += &format!("{found}\n");
    }
    let missing = observation.missing();
    for channel in channels(observation) {
        text += &format!("{channel}\n");
    }
    if !missing.is_empty() && !history.has_channels() {
        text += &format!("awaited: {}\n", spelled(&missing));
    }
    text += "\n";
    let (row, phases) = (row(observation), observation.phases());
    let digits = observation
        .nodes
        .len()
        .saturating_sub(1)
        .to_string()
        .len()
        .max(2);
    for (number, phases) in phases.chunks(row).enumerate() {
        let marks: String = phases
            .iter()
            .map(|phase| format!(" {}", mark(*phase)))
            .collect();
        text += &format!("{:>digits$} {marks}\n", number * row);
    }
    let legend: Vec<_> = LEGEND
        .map(|(_, mark, words)| format!("{mark} {words}"))
        .into();
    text + "\n" + &legend.join("   ") + "\n"
}

/// Formats one sample as one line.
pub fn line(history: &History) -> String {
    let observation = history.last();
    let rate = history.rate();
    let rate = rate.map_or_else(|| "     -".into(), |rate| format!("{rate:>6.0}"));
    let missing = match observation.missing() {
        none if none.is_empty() => String::new(),
        missing => format!(", awaited: {}", spelled(&missing)),
    };
    let found = found(history).map_or_else(String::new, |found| format!(", {found}"));
    if history.has_channels() {
        return format!(
            "{:>9} releases {rate}/s, {:>2} of {} connected{missing}\n",
            observation.releases,
            observation.connected().len(),
            observation.nodes.len(),
        );
    }
    format!(
        "{:>9} releases {rate}/s, {:>2} of {} in the barrier{missing}{found}\n",
        observation.releases,
        observation.entered().len(),
        observation.nodes.len(),
    )
}

/// Formats the whole board as JSON.
pub fn json(history: &History) -> Value {
    let observation = history.last();
    json!({
        "board": history.title,
        "version": if history.has_channels() { 2 } else { 1 },
        "nodes": observation.nodes.len(),
        "releases": observation.releases,
        "output": u8::from(observation.output),
        "high": observation.high(),
        "connected": observation.connected(),
        "entered": observation.entered(),
        "awaited": observation.missing(),
        "channels": observation.channels.iter().map(channel_json).collect::<Vec<_>>(),
        "eureka": observation.line.map(|line| json!({ "found": line.found, "first": line.first })),
    })
}

fn channel_json(look: &ChannelLook) -> Value {
    json!({
        "members": of_mask(look.members),
        "entered": of_mask(look.arrived),
        "awaited": of_mask(look.missing()),
        "late": of_mask(look.late),
        "output": u8::from(look.level),
        "releases": look.releases,
        "limits_expired": look.expired,
        "early_releases": look.early,
    })
}
