//! Save file for GTKWave: shows a waveform of [`vcd`](crate::vcd) with its signals in groups.
//!
//! The format has no specification; fields and trace flags are those in GTKWave's `analyzer.h`
//! and in the files that GTKWave writes itself (version 3.3).

use crate::channel_vcd;
use crate::eureka_wave::{self, FIRST, FIRST_BITS, FOUND, SAYS};
use crate::vcd::{RELEASES_BITS, TOP, arrived_bits, node_scope};
use crate::view::{Group, Show, View};
use crate::words::counted;
use barrier_board::event::Record;
use fpga_model::channels::MAX_CHANNELS;
use std::io;

/// GTKWave's `TR_*` flags in hexadecimal; in the save file they apply to the lines that follow.
mod flags {
    pub(super) const BINARY: u32 = 0x28;
    pub(super) const DECIMAL: u32 = 0x24;
    pub(super) const HEX: u32 = 0x22;
    pub(super) const ASCII: u32 = 0x820;
    pub(super) const GROUP_OPEN: u32 = 0x80_0200;
    pub(super) const GROUP_END: u32 = 0x100_0200;
}

/// The groups, one per kind of signal: title, name in the node's scope, label of a node's signal.
///
/// The wires come first: the rows of sixty wires and sixty programs do not all fit into a window.
pub(crate) const GROUPS: [(&str, &str, &str); 3] = [
    ("wires to the barrier", "out", "to barrier"),
    ("wires from the barrier", "in", "from barrier"),
    ("in the barrier (enter to leave)", "inside", "in barrier"),
];

/// Label of the first row, which shows the common level of the wires from the barrier to all nodes.
const RELEASE: &str = "released, to all nodes";

/// Signals that are displayed as numbers; every other vector has one bit per wire.
const COUNTS: [&str; 3] = [".releases", ".arrived", ".arrivals"];

/// Width of the waves in pixels, in a window that is 1600 pixels wide.
const WAVE_PIXELS: f64 = 1000.0;
/// Number of pixels that show 2^-zoom units of time (`calczoom` in GTKWave's zoombuttons.c).
const FRAME_PIXELS: f64 = 200.0;
/// Length of the initial view, as a multiple of the time from its start to its release.
const SHOWN: u64 = 2;
/// Number of GTKWave's named markers, A to Z; the value -1 means that a marker is not set.
const NAMED_MARKERS: usize = 26;

/// Returns GTKWave's zoom for the initial view: [`FRAME_PIXELS`] pixels show 2^-zoom units of time.
/// The view ends after its release; if it has none, at the end of the run.
fn zoom(view: View) -> f64 {
    let all = view.end.saturating_sub(view.begin);
    let shown = view.release.map_or(all, |at| {
        at.saturating_sub(view.begin).saturating_mul(SHOWN).min(all)
    });
    -(shown.max(1) as f64 * FRAME_PIXELS / WAVE_PIXELS).log2()
}

/// Writes the header: the waveform's path, the initial view, and the primary marker at the release.
fn head(sink: &mut impl io::Write, dump_file: &str, view: View) -> io::Result<()> {
    writeln!(sink, "[*] hwbarr: {}", counted(view.nodes, "node"))?;
    writeln!(sink, "[dumpfile] \"{dump_file}\"")?;
    writeln!(sink, "[timestart] {}", view.begin)?;
    write!(sink, "*{:.6}", zoom(view))?;
    // No named marker is set, so all of them are -1.
    match view.release {
        Some(at) => write!(sink, " {at}")?,
        None => write!(sink, " -1")?,
    }
    writeln!(sink, "{}", " -1".repeat(NAMED_MARKERS))?;
    writeln!(sink, "[size] 1600 1000")?;
    writeln!(sink, "[pos] -1 -1")?;
    writeln!(sink, "[treeopen] {TOP}.")
}

/// Writes the save file for `record`.
/// `dump_file` is the full path of its waveform, so that the save file opens from any folder.
pub fn write(mut sink: impl io::Write, dump_file: &str, record: &Record) -> io::Result<()> {
    let nodes = record.nodes;
    head(&mut sink, dump_file, View::of(record))?;
    writeln!(sink, "@{:x}", flags::DECIMAL)?;
    writeln!(
        sink,
        "+{{barriers released}} {TOP}.releases[{}:0]",
        RELEASES_BITS - 1
    )?;
    writeln!(
        sink,
        "+{{nodes arrived}} {TOP}.arrived[{}:0]",
        arrived_bits(nodes) - 1
    )?;
    writeln!(sink, "@{:x}", flags::BINARY)?;
    writeln!(sink, "+{{{RELEASE}}} {TOP}.{}.in", node_scope(0))?;
    let with_line = eureka_wave::is_used(record);
    if with_line {
        writeln!(sink, "+{{{}}} {TOP}.{}", FOUND.1, FOUND.0)?;
        writeln!(sink, "@{:x}", flags::DECIMAL)?;
        let (signal, called) = FIRST;
        let range = channel_vcd::range(FIRST_BITS);
        writeln!(sink, "+{{{called}}} {TOP}.{signal}{range}")?;
    }
    let groups = GROUPS.into_iter().chain(with_line.then_some(SAYS));
    for (title, signal, name) in groups {
        writeln!(sink, "@{:x}\n-{title}", flags::GROUP_OPEN)?;
        writeln!(sink, "@{:x}", flags::BINARY)?;
        for node in 0..nodes {
            writeln!(
                sink,
                "+{{node {node} {name}}} {TOP}.{}.{signal}",
                node_scope(node)
            )?;
        }
        writeln!(sink, "@{:x}\n-{title}", flags::GROUP_END)?;
    }
    Ok(())
}

/// Like [`write()`], for a waveform with any signals in groups.
pub fn write_groups(
    mut sink: impl io::Write,
    dump_file: &str,
    view: View,
    groups: &[Group],
) -> io::Result<()> {
    head(&mut sink, dump_file, view)?;
    for Group { title, signals } in groups {
        writeln!(sink, "@{:x}\n-{title}", flags::GROUP_OPEN)?;
        for (called, path, show) in signals {
            let (flag, range) = match show {
                Show::Text(None) => (flags::ASCII, String::new()),
                Show::Text(Some(bits)) => (flags::ASCII, channel_vcd::range(*bits)),
                Show::Bits(1) => (flags::BINARY, String::new()),
                Show::Bits(width @ 2..=32) if COUNTS.iter().any(|name| path.ends_with(name)) => {
                    (flags::DECIMAL, channel_vcd::range(*width))
                }
                Show::Bits(width) => (flags::HEX, channel_vcd::range(*width)),
            };
            writeln!(sink, "@{flag:x}\n+{{{called}}} {path}{range}")?;
        }
        writeln!(sink, "@{:x}\n-{title}", flags::GROUP_END)?;
    }
    Ok(())
}

/// Like [`write()`], for a waveform of version 2 ([`channel_vcd`]).
/// The channels come first, then the serial receiver, then each node's lines.
pub fn write_channels(
    mut sink: impl io::Write,
    dump_file: &str,
    shown: &channel_vcd::Shown,
) -> io::Result<()> {
    let view = shown.view();
    head(&mut sink, dump_file, view)?;
    writeln!(
        sink,
        "@{:x}\n+{{clock}} {TOP}.{}",
        flags::BINARY,
        channel_vcd::CLK
    )?;
    for channel in 0..MAX_CHANNELS {
        let scope = channel_vcd::channel_scope(channel);
        writeln!(sink, "@{:x}\n-channel {channel}", flags::GROUP_OPEN)?;
        for (signal, width, name) in channel_vcd::channel_signals(view.nodes) {
            let flag = match signal {
                "arrived" | "releases" => flags::DECIMAL,
                _ if width == 1 => flags::BINARY,
                _ => flags::HEX,
            };
            let range = channel_vcd::range(width);
            writeln!(
                sink,
                "@{flag:x}\n+{{channel {channel} {name}}} {TOP}.{scope}.{signal}{range}"
            )?;
        }
        writeln!(sink, "@{:x}\n-channel {channel}", flags::GROUP_END)?;
    }
    writeln!(sink, "@{:x}\n-serial lines", flags::GROUP_OPEN)?;
    for signal in channel_vcd::SERIAL_TEXTS {
        let range = shown.text_bits().map_or(String::new(), channel_vcd::range);
        writeln!(
            sink,
            "@{:x}\n+{{{signal}}} {TOP}.{}.{signal}{range}",
            flags::ASCII,
            channel_vcd::SERIAL
        )?;
    }
    writeln!(sink, "@{:x}\n-serial lines", flags::GROUP_END)?;
    for node in 0..view.nodes {
        writeln!(sink, "@{:x}\n-node {node}", flags::GROUP_OPEN)?;
        writeln!(sink, "@{:x}", flags::BINARY)?;
        for signal in channel_vcd::node_signals() {
            writeln!(
                sink,
                "+{{node {node} {signal}}} {TOP}.{}.{signal}",
                node_scope(node)
            )?;
        }
        writeln!(sink, "@{:x}\n-node {node}", flags::GROUP_END)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use barrier_board::event::{Event, What};
    use std::collections::HashMap;

    const BEGIN: u64 = 2;

    fn released_at(at_ns: u64, end: u64) -> Record {
        let event = |at_ns, high| Event {
            at_ns,
            what: What::Release { high },
        };
        let begin = Event {
            at_ns: BEGIN,
            what: What::Enter { node: 0 },
        };
        Record {
            nodes: 2,
            events: vec![begin, event(at_ns, true), event(end, false)],
            dropped: 0,
        }
    }

    #[test]
    fn the_first_release_is_within_the_first_picture_and_resolved() {
        for (at, end) in [(5, 9), (8_000, 80_000), (80_000, 4_000_000_000)] {
            let pixels = FRAME_PIXELS * at as f64 * zoom(View::of(&released_at(at, end))).exp2();
            assert!(
                (WAVE_PIXELS / 4.0..=WAVE_PIXELS).contains(&pixels),
                "{pixels} of {at} ns"
            );
        }
    }

    /// Number of rows of 20 pixels that fit below the menus of a window with the save file's size.
    const FOLD: usize = 38;

    /// A record with a self-test of sixty nodes, which has two releases,
    /// and two barriers of the nodes' programs.
    fn tested_then_used() -> Record {
        const NODES: usize = 60;
        let mut events = Vec::new();
        let mut at_ns = 1_000;
        let mut push = |step, what| {
            at_ns += step;
            events.push(Event { at_ns, what });
        };
        for round in 0..4 {
            let (high, used) = (round % 2 == 0, round >= 2);
            for node in 0..NODES {
                let pause = if node == 0 { 1_000_000 } else { 500 };
                if used {
                    push(pause, What::Enter { node });
                }
                push(if used { 300 } else { pause }, What::Wire { node, high });
            }
            push(119, What::Release { high });
            for node in (0..NODES).filter(|_| used) {
                push(50, What::Leave { node });
            }
        }
        Record {
            nodes: NODES,
            events,
            dropped: 0,
        }
    }

    /// Returns the rows of a save file in order:
    /// paths of signals without a range, and groups' titles.
    fn rows(save: &str) -> Vec<String> {
        let row = |line: &str| {
            let title = line.strip_prefix('-').filter(|_| !line.starts_with("-1"));
            let path = line
                .strip_prefix("+{")
                .and_then(|line| line.split_once("} "));
            let path = path.map(|(_, path)| path.split('[').next().unwrap_or(path));
            path.or(title).map(str::to_owned)
        };
        save.lines().filter_map(row).collect()
    }

    /// Returns for each signal of a waveform the times of its changes after the start.
    fn changes(record: &Record) -> HashMap<String, Vec<u64>> {
        let mut dump = Vec::new();
        crate::vcd::write(&mut dump, record).expect("memory takes everything");
        let mut parser = vcd::Parser::new(dump.as_slice());
        let header = parser.parse_header().expect("a header");
        let mut paths = HashMap::new();
        let scope = header.find_scope(&[TOP]).expect("the top");
        for item in &scope.items {
            match item {
                vcd::ScopeItem::Var(var) => {
                    paths.insert(var.code, format!("{TOP}.{}", var.reference));
                }
                vcd::ScopeItem::Scope(node) => {
                    for item in &node.items {
                        if let vcd::ScopeItem::Var(var) = item {
                            let path = format!("{TOP}.{}.{}", node.identifier, var.reference);
                            paths.insert(var.code, path);
                        }
                    }
                }
                _ => {}
            }
        }
        let mut changes: HashMap<String, Vec<u64>> = HashMap::new();
        let mut now = 0;
        for command in parser {
            let code = match command.expect("well-formed") {
                vcd::Command::Timestamp(at) => {
                    now = at;
                    continue;
                }
                vcd::Command::ChangeScalar(code, _) | vcd::Command::ChangeVector(code, _) => code,
                _ => continue,
            };
            if now > 0 {
                changes.entry(paths[&code].clone()).or_default().push(now);
            }
        }
        changes
    }

    /// Checks the rows and the time range that GTKWave shows when it opens the files.
    #[test]
    fn the_first_picture_is_the_programs_first_barrier_with_wires_in_every_row() {
        let record = tested_then_used();
        let mut out = Vec::new();
        write(&mut out, "/tmp/wave.vcd", &record).expect("memory takes everything");
        let save = String::from_utf8(out).expect("UTF-8");
        let entered = |event: &&Event| matches!(event.what, What::Enter { node: 0 });
        let begin = record.events.iter().find(entered).expect("an entry").at_ns;
        let released =
            |event: &&Event| event.at_ns > begin && matches!(event.what, What::Release { .. });
        let release = record
            .events
            .iter()
            .find(released)
            .expect("a release")
            .at_ns;
        assert!(save.contains(&format!("[timestart] {begin}\n")), "{save}");
        let view = View::of(&record);
        let end = begin + (WAVE_PIXELS / FRAME_PIXELS * (-zoom(view)).exp2()) as u64;
        let shown = |at: &&u64| (begin..=end).contains(*at);
        let changes = changes(&record);
        let rows = rows(&save);
        let above: Vec<_> = rows[..FOLD]
            .iter()
            .filter(|row| row.starts_with(TOP))
            .collect();
        for row in &above {
            assert!(
                changes[*row].iter().any(|at| shown(&at)),
                "{row} is flat\n{save}"
            );
        }
        let ends = |end: &str| above.iter().filter(|row| row.ends_with(end)).count();
        assert!(ends(".out") >= 30 && ends(".in") >= 1, "{above:?}");
        let releases = &changes["barrier.releases"];
        let picture: Vec<_> = releases.iter().filter(shown).collect();
        assert_eq!(
            picture,
            [&release],
            "one barrier, its release within the picture"
        );
        let marker = save
            .lines()
            .find(|line| line.starts_with('*'))
            .expect("a zoom");
        assert_eq!(marker.split(' ').nth(1), Some(release.to_string().as_str()));
    }

    #[test]
    fn signals_are_named_and_grouped() {
        let mut out = Vec::new();
        write(&mut out, "/tmp/wave.vcd", &released_at(5, 9)).expect("memory takes everything");
        insta::assert_snapshot!(String::from_utf8(out).expect("UTF-8"));
    }
}
