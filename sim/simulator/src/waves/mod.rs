//! Waveforms of virtual time with a resolution of 1 ps, with all signals that a logic analyser and
//! the FPGA's internal probes would show.
//!
//! ```text
//! barrier
//!   releases[31:0]      number of releases of the root
//!   arrived[11:0]       number of nodes whose level at the board differs from the root's level
//!   fault               the injected fault, from the time at which it begins, as text
//!   board               (board00 ... and root, with cascaded boards)
//!     clk               the board's own clock, at its own phase
//!     stage1, stage2    both synchroniser stages, one bit per pin
//!     seen              the machine's inputs: the filter's levels, or stage2 without a filter
//!     arrivals[6:0]     number of inputs that differ from the level
//!     level             the machine's state, which is its output
//!     above             the level after the cable to the board above (not for the root)
//!   node00
//!     out               the level at the node's connector
//!     pin               the level after the cable to the board
//!     in                the root's level after the cable to the node
//!     inside            high while the program is in the barrier; x once the node has died
//! ```
//!
//! A [`Trace`] contains the observed events of a run and the injected faults.
//! [`write()`] simulates the boards again, edge by edge,
//! so a trace needs no flip-flops and stays small.
//! In short runs all clock edges are written.
//! In long runs only edges near changes of flip-flops are written;
//! elsewhere the clocks have value `z`.
//! Version 2 has a different waveform, [`channel_vcd`](barrier_waveform::channel_vcd).

mod closeup;
mod draw;
mod sink;

use barrier_waveform::dump::Form;
pub use closeup::{Closeup, Row, closeup};

use crate::virtual_time::{Incident, Observation, Parameters, Setup, Time};
use barrier_waveform::view::Written;
use std::io;

/// The data of a run from which its waveform is written.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The parameters of the run's hardware.
    pub parameters: Parameters,
    /// The injected faults, with their times.
    pub incidents: Vec<(Time, Incident)>,
    /// Pauses of a board's clock: board, start, end.
    pub pauses: Vec<(usize, Time, Time)>,
    /// The time at which the fault begins, and the fault's name.
    pub fault: Option<(Time, String)>,
    /// All observed events, oldest first.
    pub sights: Vec<(Time, Observation)>,
}

impl Trace {
    /// Creates the empty trace of a world before power-on.
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

/// Writes the waveform of a trace in this file format.
pub fn write<W: io::Write + io::Seek>(sink: W, trace: &Trace, form: Form) -> io::Result<Written> {
    let drawing = draw::draw(trace);
    let changes = drawing.write(sink, form)?;
    Ok(Written {
        changes,
        view: drawing.view(),
        groups: drawing.groups(form.text_bits()),
    })
}

#[cfg(test)]
mod tests;
