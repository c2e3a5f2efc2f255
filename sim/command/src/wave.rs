//! `hwbarr wave`: a run in virtual time as a waveform, optionally with a fault.

use crate::Failure;
use crate::options::{Hardware, at_least_one};
use crate::run::hardware_report;
use barrier_board::event::{ChannelRecord, Record};
use barrier_simulator::faults::campaign::{Campaign, Case};
use barrier_simulator::faults::catalogue::Place;
use barrier_simulator::faults::known::KnownUnsafe;
use barrier_simulator::faults::moments::Moment;
use barrier_simulator::virtual_time::{Outcome, Setup, run, run_observed};
use barrier_simulator::waves::{self, Trace};
use barrier_waveform::wave_files::WaveFiles;
use clap::Args;
use std::path::PathBuf;

/// Run in virtual time and write a waveform with a GTKWave save file and a Surfer command file.
#[derive(Args)]
pub struct Wave {
    /// Number of nodes, 1 to 64; with --boards, of each leaf board.
    #[arg(short, long, default_value_t = 7)]
    nodes: usize,
    /// Number of barriers.
    #[arg(short = 'k', long, default_value_t = 4, value_parser = at_least_one)]
    barriers: usize,
    /// File for the waveform, a .vcd or, compressed, a .fst; beside it are a .gtkw for GTKWave and a .sucl for Surfer.
    #[arg(short, long, value_name = "FILE", default_value = "barrier.vcd")]
    output: PathBuf,
    /// Show this fault of a campaign instead, by words of its name as `hwbarr faults` prints it.
    #[arg(long, value_name = "WORDS", requires = "place")]
    fault: Option<String>,
    /// Where the fault is: to:NODE or from:NODE (the wire to or from the barrier), node:NODE (the node's program or port),
    /// clock:NODE, data:NODE or select:NODE (a serial line of version 2), link:BOARD (the wire to the board above),
    /// board or board:BOARD (the board's FPGA, clock or power supply).
    #[arg(long, value_name = "PLACE", requires = "fault")]
    place: Option<Place>,
    /// When it strikes, as `hwbarr faults` names the moments.
    #[arg(long, value_name = "MOMENT", default_value = "power-on")]
    moment: Moment,
    #[command(flatten)]
    hardware: Hardware,
}

impl Wave {
    pub fn execute(self) -> Result<(), Failure> {
        let parameters = self.hardware.parameters(self.nodes, self.barriers)?;
        let files = WaveFiles::named(&self.output)?;
        let channels = parameters.channels > 0;
        if let (Some(fault), Some(place)) = (&self.fault, self.place) {
            let mut campaign = Campaign::new(parameters.nodes, parameters.seed);
            campaign.parameters = parameters;
            let known = KnownUnsafe::shipped()?;
            let examined = campaign.examine(&known, fault, place, self.moment)?;
            crate::say(&told(&examined.case))?;
            return match channels {
                true => channels_to(&files, &examined.lines),
                false => trace_to(&files, &examined.trace),
            };
        }
        if channels {
            let Outcome { summary, lines, .. } = run(&parameters, true)?;
            crate::say(&hardware_report(&parameters, &summary))?;
            return channels_to(&files, &lines);
        }
        let mut trace = Trace::of(&Setup::new(parameters.clone()));
        let (summary, sights) = run_observed(&parameters, Vec::new())?;
        trace.sights = sights;
        crate::say(&hardware_report(&parameters, &summary))?;
        trace_to(&files, &trace)
    }
}

/// Writes the waveform with a resolution of 1 ps, and prints its path.
fn trace_to(files: &WaveFiles, trace: &Trace) -> Result<(), Failure> {
    let changes = files.write_drawing(|sink, form| waves::write(sink, trace, form))?;
    say_where(files, changes, 0)
}

/// Writes the waveform of a version 2 board, and prints its path.
fn channels_to(files: &WaveFiles, lines: &ChannelRecord) -> Result<(), Failure> {
    files.write_channels(lines)?;
    say_where(files, lines.changes.len(), lines.dropped)
}

/// Describes a case of a campaign in a sentence.
fn told(case: &Case) -> String {
    let Case {
        fault,
        place,
        moment,
        at,
        class,
        sentence,
        known,
    } = case;
    let mut text = format!("{fault}, {place}, {} ({at}): {class}\n", moment.name());
    for line in [Some(sentence.as_str()), *known].into_iter().flatten() {
        if !line.is_empty() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}

/// Writes the record of a live board as a waveform, and prints its path.
pub fn record_to(files: &WaveFiles, record: &Record) -> Result<(), Failure> {
    files.write(record)?;
    say_where(files, record.events.len(), record.dropped)
}

fn say_where(files: &WaveFiles, changes: usize, dropped: u64) -> Result<(), Failure> {
    let missing = match dropped {
        0 => String::new(),
        dropped => format!("          the record was full: {dropped} later events are missing\n"),
    };
    let [gtkwave, surfer] = files.commands();
    crate::say(&format!(
        "waveform: {} ({changes} changes and marks)\n{missing}open with: {gtkwave}\n      or: {surfer}\n",
        files.dump().display(),
    ))
}
