//! Waveforms of virtual time at one picosecond, with everything that a logic analyser and the FPGA's own probes would show.
//!
//! ```text
//! barrier
//!   releases[31:0]      how often the board that leads to the nodes has released
//!   arrived[11:0]       at how many pins a level waits to be released
//!   fault               the fault that was put in, from the moment it strikes, as text
//!   board               (board00 ... and root, where boards hang below another)
//!     clk               the board's own clock, at its own phase
//!     stage1, stage2    both synchroniser stages, a bit for each pin
//!     seen              what the machine decides on: the filter's levels, or the second stage again
//!     arrivals[6:0]     how many of them differ from the level
//!     level             the machine's state, which is its output
//!     above             the level at the board above, a cable later (not at the root)
//!   node00
//!     out               the level at the node's connector
//!     pin               the same at the board, a cable later
//!     in                the release at the node's connector, a cable after the board's level
//!     inside            high while the program is in the barrier; x once the node has died
//! ```
//!
//! A [`Trace`] is what an observer saw of a run and the faults that were put in; [`write`] replays the boards over it, edge
//! by edge, so the record stays small. Clocks are drawn whole in short runs and else where flip-flops move; they are `z` where
//! they are not drawn.
//! Version 2 has a waveform of its own, [`channel_vcd`](crate::channel_vcd).

mod closeup;
mod draw;
mod sink;

pub use crate::dump::Form;
pub use closeup::{Closeup, Row, closeup};

use crate::view::{Group, View};
use crate::virtual_time::{Incident, Parameters, Setup, Sight, Time};
use std::io;

/// A run to be drawn.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The hardware.
    pub parameters: Parameters,
    /// What befell boards, and when.
    pub incidents: Vec<(Time, Incident)>,
    /// Which board's clock stood still, from when until when.
    pub pauses: Vec<(usize, Time, Time)>,
    /// The fault's name and the moment it struck.
    pub fault: Option<(Time, String)>,
    /// Everything that was seen, oldest first.
    pub sights: Vec<(Time, Sight)>,
}

impl Trace {
    /// Of a world before its power is switched on.
    pub fn of(setup: &Setup) -> Self {
        Self {
            parameters: setup.parameters.clone(),
            incidents: setup.incidents.clone(),
            pauses: setup.pauses.clone(),
            fault: None,
            sights: Vec::new(),
        }
    }
}

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// How many changes of signals.
    pub changes: usize,
    view: View,
    groups: Vec<Group>,
}

/// Writes the waveform.
pub fn write<W: io::Write + io::Seek>(sink: W, trace: &Trace, form: Form) -> io::Result<Written> {
    let drawing = draw::draw(trace);
    let changes = drawing.write(sink, form)?;
    Ok(Written {
        changes,
        view: drawing.view(),
        groups: drawing.groups(form.text_bits()),
    })
}

/// Writes GTKWave's save file for a waveform that is in `dump_file`, a full path.
pub fn write_save(sink: impl io::Write, dump_file: &str, written: &Written) -> io::Result<()> {
    crate::gtkw::write_groups(sink, dump_file, written.view, &written.groups)
}

/// Writes Surfer's command file for it.
pub fn write_commands(sink: impl io::Write, dump_file: &str, written: &Written) -> io::Result<()> {
    crate::surfer::write_groups(sink, dump_file, written.view, &written.groups)
}

#[cfg(test)]
mod tests;
