//! `hwbarr wave`: a run in virtual time as a waveform, with a fault if one is asked for.

use crate::Failure;
use crate::options::Hardware;
use crate::run::hardware_report;
use clap::Args;
use sim::event::{ChannelRecord, Record};
use sim::faults::campaign::{Campaign, Case};
use sim::faults::catalogue::Place;
use sim::faults::known::KnownUnsafe;
use sim::faults::moments::Moment;
use sim::virtual_time::{Outcome, Setup, run, run_observed};
use sim::waves::{Form, Trace};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Run in virtual time and write a waveform with a GTKWave save file and a Surfer command file.
#[derive(Args)]
pub struct Wave {
    /// How many nodes are wired to the barrier, 1 to 64; with --boards, to each of the lowest boards.
    #[arg(short, long, default_value_t = 7)]
    nodes: usize,
    /// How many barriers they pass.
    #[arg(short = 'k', long, default_value_t = 4)]
    barriers: usize,
    /// Where the waveform goes, a .vcd or, compressed, a .fst; beside it are a .gtkw for GTKWave and a .sucl for Surfer.
    #[arg(short, long, value_name = "FILE", default_value = "barrier.vcd")]
    output: PathBuf,
    /// Show this fault of a campaign instead, by words of its name as `hwbarr faults` prints it.
    #[arg(long, value_name = "WORDS", requires = "place")]
    fault: Option<String>,
    /// Where the fault is: to:NODE or from:NODE for a wire to or from the barrier, node:NODE, clock:NODE, data:NODE or
    /// select:NODE for a serial line of version 2, link:BOARD for the wire to the board above, board or board:BOARD.
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
        let channels = parameters.channels > 0;
        if let (Some(fault), Some(place)) = (&self.fault, self.place) {
            let mut campaign = Campaign::new(parameters.nodes, parameters.seed);
            campaign.parameters = parameters;
            let known = KnownUnsafe::shipped()?;
            let examined = campaign.examine(&known, fault, place, self.moment)?;
            crate::say(&told(&examined.case))?;
            return match channels {
                true => self.channels(&examined.lines),
                false => self.draw(&examined.trace),
            };
        }
        if channels {
            let Outcome { summary, lines, .. } = run(&parameters, true)?;
            crate::say(&hardware_report(&parameters, &summary))?;
            return self.channels(&lines);
        }
        let mut trace = Trace::of(&Setup::new(parameters.clone()));
        let (summary, sights) = run_observed(&parameters, Vec::new())?;
        trace.sights = sights;
        crate::say(&hardware_report(&parameters, &summary))?;
        self.draw(&trace)
    }

    /// Writes the waveform at one picosecond, and says where it is.
    fn draw(&self, trace: &Trace) -> Result<(), Failure> {
        let files = Files::beside(&self.output)?;
        let form = match self.output.extension() {
            Some(fst) if fst == "fst" => Form::Fst,
            _ => Form::Vcd,
        };
        let mut sink = create(files.dump)?;
        let written = sim::waves::write(&mut sink, trace, form)
            .and_then(|written| sink.flush().map(|()| written))
            .map_err(|e| failed(files.dump, &e))?;
        files.beside_it(
            |save| sim::waves::write_save(save, &files.full, &written),
            |commands| sim::waves::write_commands(commands, &files.full, &written),
        )?;
        files.say(written.changes, 0)
    }

    fn channels(&self, lines: &ChannelRecord) -> Result<(), Failure> {
        if self.output.extension().is_some_and(|fst| fst == "fst") {
            return Err(
                "a waveform of version 2 is a .vcd: its decoded frames have no form in .fst".into(),
            );
        }
        let files = Files::beside(&self.output)?;
        let shown = sim::channel_vcd::write(create(files.dump)?, lines)
            .map_err(|e| failed(files.dump, &e))?;
        files.beside_it(
            |save| sim::gtkw::write_channels(save, &files.full, &shown),
            |commands| sim::surfer::write_channels(commands, &files.full, &shown),
        )?;
        files.say(lines.changes.len(), lines.dropped)
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

/// Writes the waveform of a live record and its save file, and says where they are.
pub fn write_wave(dump: &Path, record: &Record) -> Result<(), Failure> {
    let files = Files::beside(dump)?;
    sim::vcd::write(create(files.dump)?, record).map_err(|e| failed(files.dump, &e))?;
    files.beside_it(
        |save| sim::gtkw::write(save, &files.full, record),
        |commands| sim::surfer::write(commands, &files.full, record),
    )?;
    files.say(record.events.len(), record.dropped)
}

/// A waveform and the files beside it, with which viewers show it.
struct Files<'p> {
    dump: &'p Path,
    /// The full path: viewers look for a relative one where they are started.
    full: String,
    /// GTKWave's.
    save: PathBuf,
    /// Surfer's.
    commands: PathBuf,
}

impl<'p> Files<'p> {
    fn beside(dump: &'p Path) -> Result<Self, Failure> {
        let save = dump.with_extension("gtkw");
        let commands = dump.with_extension("sucl");
        for (beside, what) in [
            (&save, "GTKWave's save file"),
            (&commands, "Surfer's command file"),
        ] {
            if beside == dump {
                return Err(format!(
                    "the waveform cannot go to {}: a file of that name is {what}, which would overwrite it; give a name that ends in .vcd or .fst",
                    dump.display()
                )
                .into());
            }
        }
        let full = std::path::absolute(dump).map_err(|e| failed(dump, &e))?;
        Ok(Self {
            dump,
            full: full.to_string_lossy().into_owned(),
            save,
            commands,
        })
    }

    /// Writes what the viewers need.
    fn beside_it(
        &self,
        save: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
        commands: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> Result<(), String> {
        let mut sink = create(&self.save)?;
        save(&mut sink)
            .and_then(|()| sink.flush())
            .map_err(|e| failed(&self.save, &e))?;
        let mut sink = create(&self.commands)?;
        commands(&mut sink)
            .and_then(|()| sink.flush())
            .map_err(|e| failed(&self.commands, &e))
    }

    fn say(&self, changes: usize, dropped: u64) -> Result<(), Failure> {
        let missing = match dropped {
            0 => String::new(),
            dropped => {
                format!("          the record was full: {dropped} later events are missing\n")
            }
        };
        // Where the command file cannot name the waveform, the command line does.
        let dump = match sim::surfer::names_the_dump(&self.full) {
            true => String::new(),
            false => format!(" {}", self.dump.display()),
        };
        crate::say(&format!(
            "waveform: {} ({changes} changes and marks)\n{missing}open with: gtkwave {}\n      or: surfer --command-file {}{dump}\n",
            self.dump.display(),
            self.save.display(),
            self.commands.display()
        ))
    }
}

fn failed(path: &Path, e: &std::io::Error) -> String {
    format!("cannot write {}: {e}", path.display())
}

fn create(path: &Path) -> Result<BufWriter<File>, String> {
    let file = File::create(path);
    file.map(BufWriter::new).map_err(|e| failed(path, &e))
}
