//! Waveform of a trace for GTKWave or Surfer (VCD, IEEE 1364-2005, section 18).
//!
//! Each rank has a scope.
//! `mpi` is high inside MPI calls, `collective` inside collective operations.
//! `barrier` is high inside a barrier. `sent` and `received` toggle with each message.
//! `wire_out` and `wire_in` are the levels of the rank's wires to and from the hardware barrier.
//! Both wire levels are low before the first barrier.
//! Times are nanoseconds since the first event.

use super::lane::Trace;
use crate::CallName;
use mpi_base::node::EventKind;
use std::io::{self, Write};
use vcd::{IdCode, SimulationCommand, TimescaleUnit, Value, Writer};

/// The signals of each rank's scope, in this order.
const LANES: [&str; 7] = [
    "mpi",
    "collective",
    "barrier",
    "sent",
    "received",
    "wire_out",
    "wire_in",
];

/// Writes the whole trace; times are nanoseconds since its first event.
pub fn write(trace: &Trace, call_name: CallName, out: &mut impl Write) -> io::Result<()> {
    let mut writer = Writer::new(out);
    writer.timescale(1, TimescaleUnit::NS)?;
    writer.add_module("job")?;
    let begin = trace.begin();
    let mut ids: Vec<IdCode> = Vec::new();
    // Each change is a time, a signal and a level.
    let mut changes: Vec<(u64, IdCode, bool)> = Vec::new();
    for lane in &trace.lanes {
        let scope = match lane.job {
            0 => format!("rank_{}", lane.rank),
            job => format!("job_{job}_rank_{}", lane.rank),
        };
        writer.add_module(&scope)?;
        let mut lines = Vec::new();
        for name in LANES {
            lines.push(writer.add_wire(1, name)?);
        }
        writer.upscope()?;
        let [mpi, collective, barrier, sent, received, wire_out, wire_in] = lines[..] else {
            continue;
        };
        ids.extend(&lines);
        let (mut sends, mut receives) = (false, false);
        // A call first records its collective operation, and when it returns it records itself.
        let mut round = None;
        for event in &lane.played.events {
            let at = event.at - begin;
            match event.kind {
                EventKind::Round => round = Some(event.at),
                EventKind::Call => {
                    let mut slice = |line| {
                        changes.push((at, line, true));
                        changes.push((event.until - begin, line, false));
                    };
                    slice(mpi);
                    if round.take().is_some_and(|round| round >= event.at) {
                        slice(collective);
                    }
                    if call_name(event.call) == "MPI_Barrier" {
                        slice(barrier);
                    }
                }
                EventKind::Sent => {
                    sends = !sends;
                    changes.push((at, sent, sends));
                }
                EventKind::Received => {
                    receives = !receives;
                    changes.push((at, received, receives));
                }
                // Files are left out:
                // a rank's signals have one level each, but a rank may have many files.
                EventKind::File
                | EventKind::FileName
                | EventKind::FileTotals
                | EventKind::Access
                | EventKind::WindowName
                | EventKind::Matrix => {}
                EventKind::Wire => {
                    changes.push((at, wire_out, event.number % 2 == 1));
                    changes.push((at, wire_in, event.extra % 2 == 1));
                }
            }
        }
    }
    writer.upscope()?;
    writer.enddefinitions()?;
    writer.begin(SimulationCommand::Dumpvars)?;
    for id in ids {
        writer.change_scalar(id, Value::V0)?;
    }
    writer.end()?;
    // The sort is stable:
    // of several changes of a signal at the same time, the last one takes effect.
    changes.sort_by_key(|(at, _, _)| *at);
    let mut now = None;
    for (at, line, level) in changes {
        if now.replace(at) != Some(at) {
            writer.timestamp(at)?;
        }
        writer.change_scalar(line, level)?;
    }
    Ok(())
}
