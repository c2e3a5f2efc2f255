//! Plot of wires over time: one row per node, with its level as on a logic analyser.
//!
//! A band shows when the program is in the barrier; a vertical line is a release.

use super::svg::{Anchor, Picture, Scale, number};
use barrier_board::event::{Event, Record, What};
use barrier_simulator::waves::Closeup;
use serde_json::json;

const LEFT: f64 = 78.0;
const WIDTH: f64 = 960.0;
const TOP: f64 = 26.0;

/// Maximum number of rows in the plot.
const MOST_ROWS: usize = 64;

/// Returns the smallest `n` such that the plot has rows enough for one node in `n`.
pub fn shown(nodes: usize) -> usize {
    nodes.div_ceil(MOST_ROWS).max(1)
}

/// Draws a close-up of one release at the scale of the clock.
pub fn closeup(shown: &Closeup) -> String {
    const HEIGHT: f64 = 24.0;
    const NAMES: f64 = 180.0;
    // Converts a time to nanoseconds after the start of the close-up.
    let ns = |at: barrier_simulator::virtual_time::Time| {
        (at.ps() as f64 - shown.from.ps() as f64) / 1000.0
    };
    let until = ns(shown.until);
    let below = TOP + HEIGHT * shown.rows.len() as f64 + 8.0;
    let mut picture = Picture::new(
        WIDTH,
        below + 26.0,
        "the last arrival on its way through every flip-flop, over time",
    );
    let scale = Scale::linear([0.0, until], [NAMES, WIDTH - 8.0]);
    for tick in scale.ticks(9) {
        let x = scale.at(tick);
        picture.line("grid", [x, TOP], [x, below]);
        let words = format!("{} ns", number(tick));
        picture.text("tick", [x, below + 16.0], Anchor::Middle, words);
    }
    for (line, of) in shown.rows.iter().enumerate() {
        let levels = of.levels.iter().map(|&(at, high)| (ns(at), high));
        let row = Row {
            levels: levels.collect(),
            ..Row::default()
        };
        let place = [TOP + HEIGHT * line as f64, HEIGHT];
        draw(&mut picture, &scale, &row, &of.name, place, [0.0, until]);
    }
    picture.finish()
}

/// Returns the close-up with all changes and the other nodes as JSON, for the page's script.
///
/// `{"from", "until", "end", "level", "rows": [[name, level at first, [picoseconds to the next change, ...]], ...]}`
pub fn data(shown: &Closeup) -> String {
    let rows = shown.rows.iter().chain(&shown.others);
    let rows: Vec<_> = rows
        .map(|row| {
            let first = row.levels.first().is_some_and(|&(_, high)| high);
            let mut last = 0;
            let steps = row.levels.iter().skip(1).map(|&(at, _)| {
                let step = at.ps() - last;
                last = at.ps();
                step
            });
            json!([row.name, u8::from(first), steps.collect::<Vec<_>>()])
        })
        .collect();
    let data = json!({
        "from": shown.from.ps(),
        "until": shown.until.ps(),
        "end": shown.end.ps(),
        "level": shown.level,
        "rows": rows,
    });
    data.to_string()
}

/// The contents of one node's row in the plot.
#[derive(Debug, Clone, Default)]
struct Row {
    /// Start time and level of each section of constant level;
    /// the first starts at the plot's left edge.
    levels: Vec<(f64, bool)>,
    /// Intervals in which the program was in the barrier.
    inside: Vec<(f64, f64)>,
    entered: Option<f64>,
    died: Option<f64>,
}

/// Draws the waveform of the first `barriers` barriers of a record.
pub fn waveform(record: &Record, barriers: usize) -> String {
    let (from, until) = window(record, barriers);
    let mut rows = vec![Row::default(); record.nodes];
    let mut barrier = Row::default();
    let mut releases = Vec::new();
    for Event { at_ns, what } in &record.events {
        let at = *at_ns as f64 / 1000.0;
        match *what {
            What::Wire { node, high } => rows[node].levels.push((at, high)),
            What::Release { high } => {
                barrier.levels.push((at, high));
                releases.push(at);
            }
            What::Enter { node } => rows[node].entered = Some(at),
            What::Leave { node } => {
                let row = &mut rows[node];
                if let Some(entered) = row.entered.take() {
                    row.inside.push((entered, at));
                }
            }
            What::Down { node } => rows[node].died = Some(at),
            // A run in virtual time has no eureka line.
            What::Say { .. } => {}
        }
    }
    let step = shown(record.nodes);
    let drawn = record.nodes.div_ceil(step);
    let height = if drawn <= 16 { 24.0 } else { 13.0 };
    let below = TOP + height * (drawn + 1) as f64 + 8.0;
    let mut picture = Picture::new(
        WIDTH,
        below + 26.0,
        "levels of all wires over time, with the releases of the barrier",
    );
    let scale = Scale::linear([from, until], [LEFT, WIDTH - 8.0]);
    for tick in scale.ticks(9) {
        let x = scale.at(tick);
        picture.line("grid", [x, TOP], [x, below]);
        let words = format!("{} µs", number(tick));
        picture.text("tick", [x, below + 16.0], Anchor::Middle, words);
    }
    for release in releases {
        if (from..=until).contains(&release) {
            let x = scale.at(release);
            picture.line("release", [x, TOP - 6.0], [x, below]);
            picture.text("tick strong", [x, TOP - 11.0], Anchor::Middle, "release");
        }
    }
    let mut top = TOP;
    draw(
        &mut picture,
        &scale,
        &barrier,
        "barrier",
        [top, height],
        [from, until],
    );
    for (node, row) in rows.iter().enumerate().step_by(step) {
        top += height;
        let name = format!("node {node}");
        draw(
            &mut picture,
            &scale,
            row,
            &name,
            [top, height],
            [from, until],
        );
    }
    picture.finish()
}

fn draw(
    picture: &mut Picture,
    scale: &Scale,
    row: &Row,
    name: &str,
    [top, height]: [f64; 2],
    [from, until]: [f64; 2],
) {
    let middle = top + height * 0.5;
    let class = if name == "barrier" {
        "label strong"
    } else {
        "label"
    };
    picture.text(
        class,
        [scale.at(from) - 10.0, middle + 3.5],
        Anchor::End,
        name,
    );
    let still = row.entered.map(|entered| (entered, until));
    for &(entered, left) in row.inside.iter().chain(&still) {
        if left < from || entered > until {
            continue;
        }
        let (start, end) = (scale.at(entered.max(from)), scale.at(left.min(until)));
        let says = format!(
            "{name}: enters at {} µs, leaves after {} µs",
            number(entered),
            number(left - entered)
        );
        let size = [end - start, height - 3.0];
        picture.rectangle("inside", [start, top + 1.5], size, &says);
    }
    let level = |high: bool| top + if high { height * 0.2 } else { height * 0.8 };
    // If the first change of a wire is a fall, the wire was high before.
    let before = row.levels.first().is_some_and(|&(_, high)| !high);
    let at_start = row.levels.iter().rev().find(|&&(at, _)| at < from);
    let mut high = at_start.map_or(before, |&(_, high)| high);
    let mut points = vec![[scale.at(from), level(high)]];
    for &(at, new) in row
        .levels
        .iter()
        .filter(|(at, _)| (from..=until).contains(at))
    {
        let x = scale.at(at);
        points.extend([[x, level(high)], [x, level(new)]]);
        high = new;
    }
    points.push([scale.at(until), level(high)]);
    let class = if name == "barrier" {
        "wire output"
    } else {
        "wire"
    };
    picture.path(class, points);
    if let Some(died) = row.died.filter(|died| (from..=until).contains(died)) {
        let x = scale.at(died);
        picture.text("tick strong", [x, middle + 4.0], Anchor::Middle, "✕");
    }
}

/// Returns the time range of the plot in microseconds: it starts shortly before the first entry
/// and ends shortly after the last exit from barrier `barriers`.
fn window(record: &Record, barriers: usize) -> (f64, f64) {
    let mut left = vec![0; record.nodes];
    let (mut from, mut until) = (None, 0);
    for Event { at_ns, what } in &record.events {
        match *what {
            What::Enter { .. } => {
                from.get_or_insert(*at_ns);
            }
            What::Leave { node } => {
                left[node] += 1;
                if left[node] <= barriers {
                    until = *at_ns;
                }
            }
            _ => {}
        }
    }
    let from = from.unwrap_or(0) as f64 / 1000.0;
    let until = (until as f64 / 1000.0).max(from + 1.0);
    let rim = (until - from) * 0.02;
    (from - rim, until + rim)
}
