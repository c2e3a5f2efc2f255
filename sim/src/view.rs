//! What a viewer is told of a waveform: which part is shown first, and which signals belong together.

use crate::event::{Event, Record, What};

/// What of a waveform is shown first; times in the units of its dump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub nodes: usize,
    /// When the barrier begins that is shown first; a job takes a while to come to it.
    pub begin: u64,
    /// When that barrier releases.
    pub release: Option<u64>,
    /// When the last change is.
    pub end: u64,
}

impl View {
    /// The first barrier of the program: the self-test before it has releases too, but no program enters it.
    pub(crate) fn of(record: &Record) -> Self {
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

/// When the first program enters, and the first release after all programs have entered; a node may die before it does.
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

/// The time of the first release among these events.
fn release_from(events: &[Event]) -> Option<u64> {
    let is_release = |event: &&Event| matches!(event.what, What::Release { .. });
    events.iter().find(is_release).map(|event| event.at_ns)
}

/// Signals that belong together: how each is called, its path, and how it is shown.
#[derive(Debug)]
pub(crate) struct Group {
    pub title: String,
    pub signals: Vec<(String, String, Show)>,
}

/// How a signal is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Show {
    /// So many bits.
    Bits(u32),
    /// A text; of so many bits in a file that has no texts.
    Text(Option<u32>),
}
