//! `hwbarr wave`: a run in virtual time as a waveform, with a fault if one is asked for.

use crate::Failure;
use crate::options::Hardware;
use crate::run::hardware_report;
use clap::Args;
use sim::event::Record;
use sim::faults::campaign::{Campaign, Case};
use sim::faults::catalogue::Place;
use sim::faults::known::KnownUnsafe;
use sim::faults::moments::Moment;
use sim::virtual_time::{Outcome, run};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Run in virtual time and write a waveform with a GTKWave save file.
#[derive(Args)]
pub struct Wave {
    /// How many nodes are wired to the barrier, 1 to 64.
    #[arg(short, long, default_value_t = 7)]
    nodes: usize,
    /// How many barriers they pass.
    #[arg(short = 'k', long, default_value_t = 4)]
    barriers: usize,
    /// Where the waveform goes; the save file is beside it and ends in .gtkw.
    #[arg(short, long, value_name = "FILE", default_value = "barrier.vcd")]
    output: PathBuf,
    /// Show this fault of a campaign instead, by words of its name as `hwbarr faults` prints it.
    #[arg(long, value_name = "WORDS", requires = "place")]
    fault: Option<String>,
    /// Where the fault is: to:NODE or from:NODE for a wire to or from the barrier, node:NODE, or board.
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
        if let (Some(fault), Some(place)) = (&self.fault, self.place) {
            let mut campaign = Campaign::new(self.nodes, parameters.seed);
            campaign.parameters = parameters;
            let known = KnownUnsafe::shipped()?;
            let (case, record) = campaign.examine(&known, fault, place, self.moment)?;
            crate::say(&told(&case))?;
            return write_wave(&self.output, &record);
        }
        let Outcome { summary, record } = run(&parameters, true)?;
        crate::say(&hardware_report(&parameters, &summary))?;
        write_wave(&self.output, &record)
    }
}

/// A case in words.
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

/// Writes the waveform and its save file, and says where they are.
pub fn write_wave(dump: &Path, record: &Record) -> Result<(), Failure> {
    let save = dump.with_extension("gtkw");
    if save == dump {
        return Err(format!(
            "the waveform cannot go to {}: a file of that name is GTKWave's save file, which would overwrite it; give a name that ends in .vcd",
            dump.display()
        )
        .into());
    }
    let failed = |path: &Path, e: std::io::Error| format!("cannot write {}: {e}", path.display());
    let create = |path: &Path| {
        File::create(path)
            .map(BufWriter::new)
            .map_err(|e| failed(path, e))
    };
    sim::vcd::write(create(dump)?, record).map_err(|e| failed(dump, e))?;
    let mut sink = create(&save)?;
    // The full path: GTKWave looks for a relative one where it is started.
    let full = std::path::absolute(dump).map_err(|e| failed(dump, e))?;
    sim::gtkw::write(&mut sink, &full.to_string_lossy(), record)
        .and_then(|()| sink.flush())
        .map_err(|e| failed(&save, e))?;
    let missing = match record.dropped {
        0 => String::new(),
        dropped => format!("          the record was full: {dropped} later events are missing\n"),
    };
    crate::say(&format!(
        "waveform: {} ({} changes and marks)\n{missing}open with: gtkwave {}\n",
        dump.display(),
        record.events.len(),
        save.display()
    ))
}
