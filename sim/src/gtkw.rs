//! A save file that makes GTKWave show a waveform of [`vcd`](crate::vcd) at once: signals named by node, in groups.
//!
//! The format has no specification; the fields and trace flags are those of GTKWave's `analyzer.h` and of the files
//! that it writes itself (version 3.3).

use crate::event::{Event, Record, What};
use crate::vcd::{ARRIVED_BITS, RELEASES_BITS, TOP, node_scope};
use std::io;

/// GTKWave's `TR_*` flags, as the save file spells them: hexadecimal, for the lines that follow.
mod flags {
    pub(super) const BINARY: u32 = 0x28;
    pub(super) const DECIMAL: u32 = 0x24;
    pub(super) const GROUP_OPEN: u32 = 0x80_0200;
    pub(super) const GROUP_END: u32 = 0x100_0200;
}

/// One group for each kind of signal: title, signal in the node's scope, how a node's signal is called.
const GROUPS: [(&str, &str, &str); 3] = [
    ("in the barrier (enter to leave)", "inside", "in barrier"),
    ("wires to the barrier", "out", "to barrier"),
    ("wires from the barrier", "in", "from barrier"),
];

/// How many pixels a window of 1600 leaves for the waves.
const WAVE_PIXELS: f64 = 1100.0;
/// How much of the run is shown at first: from its begin to this multiple of its first release's time.
const SHOWN: u64 = 2;
/// How many named markers GTKWave has, A to Z; -1 is one that is not set.
const NAMED_MARKERS: usize = 26;

/// When the release changes for the first time, in nanoseconds.
fn first_release(record: &Record) -> Option<u64> {
    let releases = |event: &&Event| matches!(event.what, What::Release { .. });
    Some(record.events.iter().find(releases)?.at_ns)
}

/// GTKWave's zoom is the logarithm to base 2 of pixels per unit of time, here a nanosecond.
/// What is shown ends well behind the first release, or with the run where there is none.
fn zoom(record: &Record) -> f64 {
    let end = record.events.last().map_or(1, |event| event.at_ns);
    let shown = first_release(record).map_or(end, |at| at.saturating_mul(SHOWN).min(end));
    -(shown.max(1) as f64 / WAVE_PIXELS).log2()
}

/// Writes the save file for `record`, whose waveform is in `dump_file`: a full path, so that the save file opens from any folder.
pub fn write(mut sink: impl io::Write, dump_file: &str, record: &Record) -> io::Result<()> {
    let nodes = record.nodes;
    writeln!(sink, "[*] hwbarr: {nodes} nodes")?;
    writeln!(sink, "[dumpfile] \"{dump_file}\"")?;
    writeln!(sink, "[timestart] 0")?;
    write!(sink, "*{:.6}", zoom(record))?;
    // The primary marker is at the first release, and no named one is set.
    match first_release(record) {
        Some(at) => write!(sink, " {at}")?,
        None => write!(sink, " -1")?,
    }
    writeln!(sink, "{}", " -1".repeat(NAMED_MARKERS))?;
    writeln!(sink, "[size] 1600 1000")?;
    writeln!(sink, "[pos] -1 -1")?;
    writeln!(sink, "[treeopen] {TOP}.")?;
    writeln!(sink, "@{:x}", flags::DECIMAL)?;
    writeln!(
        sink,
        "+{{barriers released}} {TOP}.releases[{}:0]",
        RELEASES_BITS - 1
    )?;
    writeln!(
        sink,
        "+{{nodes arrived}} {TOP}.arrived[{}:0]",
        ARRIVED_BITS - 1
    )?;
    for (title, signal, name) in GROUPS {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn released_at(at_ns: u64, end: u64) -> Record {
        let event = |at_ns, high| Event {
            at_ns,
            what: What::Release { high },
        };
        Record {
            nodes: 2,
            events: vec![event(at_ns, true), event(end, false)],
            dropped: 0,
        }
    }

    #[test]
    fn the_first_release_is_within_the_first_picture_and_resolved() {
        for (at, end) in [(5, 9), (8_000, 80_000), (80_000, 4_000_000_000)] {
            let pixels = (at as f64) * zoom(&released_at(at, end)).exp2();
            assert!(
                (WAVE_PIXELS / 4.0..=WAVE_PIXELS).contains(&pixels),
                "{pixels} of {at} ns"
            );
        }
    }

    #[test]
    fn signals_are_named_and_grouped() {
        let mut out = Vec::new();
        write(&mut out, "/tmp/wave.vcd", &released_at(5, 9)).expect("memory takes everything");
        insta::assert_snapshot!(String::from_utf8(out).expect("UTF-8"));
    }
}
