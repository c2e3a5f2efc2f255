//! The initial view for waveform viewers: time range and signal groups.

use barrier_board::event::{Event, Record, What};

/// The initial view of a waveform; times are in the units of the waveform file.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Number of nodes.
    pub nodes: usize,
    /// Start of the first barrier of the program, which the view shows;
    /// a job enters it only after its start-up.
    pub begin: u64,
    /// Time of the release of that barrier; `None` if it was not released.
    pub release: Option<u64>,
    /// Time of the last change in the waveform.
    pub end: u64,
}

impl View {
    /// Selects the first barrier of the program.
    /// The self-test before it also has releases, but no program enters those barriers.
    pub fn of(record: &Record) -> Self {
        let first = record.events.first().map_or(0, |event| event.at_ns);
        let (begin, release) = first_barrier(record).unwrap_or((first, None));
        Self {
            nodes: record.nodes,
            begin,
            release: release.or_else(|| release_from(&record.events)),
            end: record.events.last().map_or(1, |event| event.at_ns),
        }
    }
}

/// Returns the time of the first entry of a program,
/// and of the first release after all programs have entered.
/// If some never enter (a node has died), it is the first release after the first entry.
fn first_barrier(record: &Record) -> Option<(u64, Option<u64>)> {
    let is_entry = |event: &Event| matches!(event.what, What::Enter { .. });
    let entry = record.events.iter().position(is_entry)?;
    let events = &record.events[entry..];
    let mut outside = vec![true; record.nodes];
    let complete = events.iter().position(|event| {
        if let What::Enter { node } = event.what
            && let Some(outside) = outside.get_mut(node)
        {
            *outside = false;
        }
        !outside.contains(&true)
    });
    let release = release_from(&events[complete.unwrap_or(0)..]);
    Some((events[0].at_ns, release))
}

/// Returns the time of the first release among these events.
fn release_from(events: &[Event]) -> Option<u64> {
    let is_release = |event: &&Event| matches!(event.what, What::Release { .. });
    events.iter().find(is_release).map(|event| event.at_ns)
}

/// A group of signals in a viewer.
#[derive(Debug)]
pub struct Group {
    /// The group's title.
    pub title: String,
    /// The signals: label, path and display of each.
    pub signals: Vec<(String, String, Show)>,
}

/// How a viewer displays a signal.
#[derive(Clone, Copy, Debug)]
pub enum Show {
    /// A number with this number of bits.
    Bits(u32),
    /// A text; `Some(bits)` gives its width in a file format without texts.
    Text(Option<u32>),
}

/// The properties of a written waveform that the viewers' files need.
#[derive(Debug)]
pub struct Written {
    /// Number of signal changes.
    pub changes: usize,
    /// The initial view.
    pub view: View,
    /// The signals of the waveform, in groups.
    pub groups: Vec<Group>,
}
