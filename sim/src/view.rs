//! What a viewer is told of a waveform: which part is shown first, and which signals belong together.

use crate::event::{Event, Record, What};

/// What of a waveform is shown first; times in the units of its dump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub nodes: usize,
    /// When the first change is; a job takes a while to come to its first barrier.
    pub begin: u64,
    /// When a release changes for the first time.
    pub first_release: Option<u64>,
    /// When the last change is.
    pub end: u64,
}

impl View {
    pub(crate) fn of(record: &Record) -> Self {
        let releases = |event: &&Event| matches!(event.what, What::Release { .. });
        Self {
            nodes: record.nodes,
            begin: record.events.first().map_or(0, |event| event.at_ns),
            first_release: record.events.iter().find(releases).map(|event| event.at_ns),
            end: record.events.last().map_or(1, |event| event.at_ns),
        }
    }
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
