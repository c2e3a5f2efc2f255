//! Command file for Surfer: loads a waveform, shows its signals in order, and sets the cursor
//! to the first release of a barrier of the program.
//!
//! Surfer also has state files, but their format is internal and changes with the version.
//! Its manual recommends the command file (`.sucl`) for other programs. A line is a command as a
//! user types it; `#` starts a comment,
//! `;` starts another command, and a divider's name is one word.
//! So a command file cannot name a path that contains `#` or `;`:
//! such a waveform must be named on Surfer's command line ([`names_the_dump`]).

use crate::channel_vcd;
use crate::eureka_wave::{self, FIRST, FOUND, SAYS};
use crate::gtkw::GROUPS;
use crate::vcd::{TOP, node_scope};
use crate::view::{Group, View};
use crate::words::counted;
use barrier_board::event::Record;
use fpga_model::channels::MAX_CHANNELS;
use std::io;

/// A section of signals: its title, and the path of each signal.
struct Section {
    title: String,
    paths: Vec<String>,
}

/// Returns true if a command file can name this waveform.
pub fn names_the_dump(dump_file: &str) -> bool {
    !dump_file.contains(['#', ';', '\n', '\r'])
}

/// Writes the commands for the waveform of a [`Record`]; `dump_file` is its full path.
pub fn write(sink: impl io::Write, dump_file: &str, record: &Record) -> io::Result<()> {
    let line = eureka_wave::is_used(record).then_some([FOUND.0, FIRST.0]);
    let whole = Section {
        title: "barrier".to_owned(),
        paths: ["releases", "arrived"]
            .into_iter()
            .chain(line.into_iter().flatten())
            .map(|name| format!("{TOP}.{name}"))
            .collect(),
    };
    let groups = GROUPS.into_iter().chain(line.map(|_| SAYS));
    let wires = groups.map(|(title, signal, _)| Section {
        title: title.to_owned(),
        paths: (0..record.nodes)
            .map(|node| format!("{TOP}.{}.{signal}", node_scope(node)))
            .collect(),
    });
    let sections = std::iter::once(whole).chain(wires);
    commands(sink, dump_file, View::of(record), sections)
}

/// Like [`write()`], for a waveform with any signals in groups.
pub fn write_groups(
    sink: impl io::Write,
    dump_file: &str,
    view: View,
    groups: &[Group],
) -> io::Result<()> {
    let sections = groups.iter().map(|Group { title, signals }| Section {
        title: title.clone(),
        paths: signals.iter().map(|(_, path, _)| path.clone()).collect(),
    });
    commands(sink, dump_file, view, sections)
}

/// Like [`write()`], for a waveform of version 2 ([`channel_vcd`]).
pub fn write_channels(
    sink: impl io::Write,
    dump_file: &str,
    shown: &channel_vcd::Shown,
) -> io::Result<()> {
    let view = shown.view();
    let channels = (0..MAX_CHANNELS).map(|channel| {
        let scope = channel_vcd::channel_scope(channel);
        let signals = channel_vcd::channel_signals(view.nodes);
        Section {
            title: format!("channel {channel}"),
            paths: signals
                .into_iter()
                .map(|(signal, ..)| format!("{TOP}.{scope}.{signal}"))
                .collect(),
        }
    });
    let clock = Section {
        title: "board".to_owned(),
        paths: vec![format!("{TOP}.{}", channel_vcd::CLK)],
    };
    let serial = channel_vcd::SERIAL_TEXTS
        .iter()
        .map(|signal| format!("{TOP}.{}.{signal}", channel_vcd::SERIAL));
    let serial = Section {
        title: "serial lines".to_owned(),
        paths: serial.collect(),
    };
    let nodes = (0..view.nodes).map(|node| {
        let signals = channel_vcd::node_signals();
        Section {
            title: format!("node {node}"),
            paths: signals
                .into_iter()
                .map(|signal| format!("{TOP}.{}.{signal}", node_scope(node)))
                .collect(),
        }
    });
    let sections = std::iter::once(clock)
        .chain(channels)
        .chain([serial])
        .chain(nodes);
    commands(sink, dump_file, view, sections)
}

fn commands(
    mut sink: impl io::Write,
    dump_file: &str,
    view: View,
    sections: impl IntoIterator<Item = Section>,
) -> io::Result<()> {
    writeln!(sink, "# hwbarr: {}", counted(view.nodes, "node"))?;
    if names_the_dump(dump_file) {
        writeln!(sink, "load_file {dump_file}")?;
    }
    for Section { title, paths } in sections {
        writeln!(sink, "divider_add {}", word(&title))?;
        for path in paths {
            writeln!(sink, "variable_add {path}")?;
        }
    }
    writeln!(sink, "zoom_fit")?;
    if let Some(at) = view.release {
        writeln!(sink, "cursor_set {at}")?;
    }
    Ok(())
}

/// Converts a title to one word of letters, digits and underscores, as Surfer requires.
fn word(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use barrier_board::event::{Event, What};

    fn record() -> Record {
        let event = |at_ns, what| Event { at_ns, what };
        Record {
            nodes: 2,
            events: vec![
                event(2, What::Enter { node: 0 }),
                event(5, What::Release { high: true }),
            ],
            dropped: 0,
        }
    }

    fn written(dump_file: &str) -> String {
        let mut out = Vec::new();
        write(&mut out, dump_file, &record()).expect("memory takes everything");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn every_signal_is_added_below_what_it_is_and_the_cursor_is_at_the_release() {
        insta::assert_snapshot!(written("/tmp/my waves/wave.vcd"));
    }

    #[test]
    fn a_path_that_a_command_cannot_have_is_left_out() {
        assert!(!written("/tmp/#1/wave.vcd").contains("load_file"));
        assert!(!names_the_dump("/tmp/a;b.vcd"));
        assert!(names_the_dump("/tmp/my waves/wave.vcd"));
    }

    #[test]
    fn every_path_is_in_the_dump() {
        let mut dump = Vec::new();
        crate::vcd::write(&mut dump, &record()).expect("memory takes everything");
        let header = vcd::Parser::new(dump.as_slice()).parse_header();
        let header = header.expect("a header");
        let text = written("/tmp/wave.vcd");
        let paths = text.lines().filter_map(|l| l.strip_prefix("variable_add "));
        let mut seen = 0;
        for path in paths {
            let path: Vec<&str> = path.split('.').collect();
            assert!(header.find_var(&path).is_some(), "{path:?}");
            seen += 1;
        }
        assert_eq!(seen, 2 + 3 * 2);
    }
}
