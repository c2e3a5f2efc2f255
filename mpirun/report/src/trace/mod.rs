//! `mpirun --trace FILE`: what all ranks did, from their tapes, as one file for a viewer.
//!
//! The tapes lie in the memory of the hosts, so they are read when the ranks have ended, however they ended ([`mpi_base::node::Player`]);
//! other hosts send theirs, and their times become times of this host's clock ([`clock`], [`align`]).
//! What the file is follows from its name: `.vcd` is a waveform ([`vcd`]), anything else the trace event format
//! that Perfetto and Chrome read ([`chrome`]).
//!
//! Promise: a message is never received before it was sent, and what a rank did stays in its order.

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

/// How many events of each rank are kept unless the user says otherwise: a mebibyte.
pub const EVENTS: u32 = 1 << 14;

/// A message with both its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// Places of the lanes, and of the events in them.
    pub from: (usize, usize),
    pub to: (usize, usize),
}

impl Trace {
    /// Writes the file whose name says in which form; half a file is not left behind.
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

    /// When the first event was.
    pub fn begin(&self) -> u64 {
        let events = self.lanes.iter().flat_map(|lane| &lane.tape.events);
        events.map(|event| event.at).min().unwrap_or(0)
    }

    /// How many events the ranks' tapes have forgotten.
    pub fn lost(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.tape.lost).sum()
    }

    /// The messages of which both ends are on the tapes: both sides have counted them alike.
    pub fn arrows(&self) -> Vec<Arrow> {
        // Job, context, source in the communicator, destination in the job, tag, number.
        type Key = (usize, u64, i32, i32, i32, u64);
        let mut sent: HashMap<Key, (usize, usize)> = HashMap::new();
        let of = |kind: EventKind| {
            let lanes = self.lanes.iter().enumerate();
            lanes.flat_map(move |(at, lane)| {
                let events = lane.tape.events.iter().enumerate();
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

    /// An event by its lane and its place there, as [`Arrow`]s name it.
    pub fn event(&self, (lane, place): (usize, usize)) -> &Event {
        &self.lanes[lane].tape.events[place]
    }
}

#[cfg(test)]
mod tests;
