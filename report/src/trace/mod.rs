//! `mpirun --trace FILE`: conversion of the event rings of all ranks to one file for a viewer.
//!
//! The event rings are in the hosts' memory ([`mpi_base::node::Player`]).
//! The rings are read after all ranks have ended, also after a crash.
//! Other hosts send their event rings, whose times are converted to this host's clock
//! ([`clock`], `align`).
//! The file's extension selects the format. `.vcd` is a waveform ([`vcd`]).
//! Any other extension is the trace event format for Perfetto and Chrome ([`chrome`]).
//!
//! Guarantee: no message is received before it was sent, and each rank's events stay in order.

mod align;
pub mod chrome;
pub mod clock;
pub mod lane;
pub mod vcd;

use crate::CallName;
use lane::Trace;
use mpi_base::node::{Event, EventKind};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The default capacity of a rank's event ring in events, which occupy 1 MiB.
pub const EVENTS: u32 = 1 << 14;

/// A message whose send and receive are both in the event rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The send event, as an index of the lane and of the event; `to` is the receive event.
    pub from: (usize, usize),
    pub to: (usize, usize),
}

impl Trace {
    /// Writes the file in the format of its extension; removes the file if an error occurs.
    pub fn write(&self, path: &Path, call_name: CallName) -> io::Result<()> {
        let file = File::create(path)?;
        let is_plain = file.metadata().is_ok_and(|about| about.is_file());
        let mut out = BufWriter::new(file);
        let written = match path.extension().is_some_and(|end| end == "vcd") {
            true => vcd::write(self, call_name, &mut out),
            false => chrome::write(self, call_name, &mut out),
        };
        let written = written.and_then(|()| out.flush());
        if written.is_err() && is_plain {
            let _ = std::fs::remove_file(path);
        }
        written
    }

    /// Returns the time of the first event, in ns.
    pub fn begin(&self) -> u64 {
        let events = self.lanes.iter().flat_map(|lane| &lane.played.events);
        events.map(|event| event.at).min().unwrap_or(0)
    }

    /// Returns the number of events that were overwritten in the ranks' event rings.
    pub fn lost(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.played.lost).sum()
    }

    /// Returns the messages whose send and receive, with equal numbers, are in the event rings.
    pub fn arrows(&self) -> Vec<Arrow> {
        // The key: job, context, source in the communicator, destination in the job, tag, number.
        type Key = (usize, u64, i32, i32, i32, u64);
        let mut sent: HashMap<Key, (usize, usize)> = HashMap::new();
        let of = |kind: EventKind| {
            let lanes = self.lanes.iter().enumerate();
            lanes.flat_map(move |(at, lane)| {
                let events = lane.played.events.iter().enumerate();
                let alike = events.filter(move |(_, e)| e.kind == kind && e.number > 0);
                alike.map(move |(place, event)| (lane, (at, place), event))
            })
        };
        for (lane, place, event) in of(EventKind::Sent) {
            let source = event.extra as u32 as i32;
            let key = (
                lane.job,
                event.comm,
                source,
                event.peer,
                event.tag,
                event.number,
            );
            sent.insert(key, place);
        }
        of(EventKind::Received)
            .filter_map(|(lane, to, event)| {
                let me = lane.rank as i32;
                let key = (
                    lane.job,
                    event.comm,
                    event.peer,
                    me,
                    event.tag,
                    event.number,
                );
                let from = sent.remove(&key)?;
                Some(Arrow { from, to })
            })
            .collect()
    }

    /// Returns the event at an index of the lane and of the event, as in [`Arrow`].
    pub fn event(&self, (lane, place): (usize, usize)) -> &Event {
        &self.lanes[lane].played.events[place]
    }
}

#[cfg(test)]
mod tests;
