//! `hwbarr run` and `hwbarr wave`: the same deterministic run, as numbers and as a picture.

use crate::Failure;
use clap::Args;
use sim::event::Record;
use sim::virtual_time::{Arrivals, Distribution, Outcome, Parameters, Phase, Summary, Time, run};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// What a run depends on; the defaults are the prototype's hardware.
#[derive(Args)]
struct Hardware {
    /// How the nodes arrive: together, uniform:TIME or exponential:TIME of computing between two barriers.
    #[arg(long, value_name = "HOW", default_value = "uniform:10us")]
    arrivals: Arrivals,
    /// How long one access of the port takes, read or write.
    #[arg(long, value_name = "TIME", default_value = "1.2us")]
    port: Time,
    /// Metres of cable between a node and the barrier, at 5 ns each.
    #[arg(long, value_name = "METRES", default_value_t = 3.0)]
    cable: f64,
    /// The clock of the barrier, in MHz.
    #[arg(long, value_name = "MHZ", default_value_t = fpga_model::CLOCK_HZ as f64 / 1e6)]
    clock: f64,
    /// Which of the possible random runs; the same seed gives the same run, to the bit.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Hardware {
    fn parameters(&self, nodes: usize, barriers: usize) -> Result<Parameters, Failure> {
        if !(0.0..=1e9).contains(&self.cable) {
            return Err(format!(
                "--cable {}: the length must be between 0 and 1e9 metres",
                self.cable
            )
            .into());
        }
        if !(1e-6..=1e6).contains(&self.clock) {
            return Err(format!(
                "--clock {}: the clock must be between 1e-6 and 1e6 MHz",
                self.clock
            )
            .into());
        }
        Ok(Parameters {
            arrivals: self.arrivals.clone(),
            port_write: self.port,
            port_read: self.port,
            cable: Parameters::CABLE_PER_METRE.scaled(self.cable),
            clock_hz: (self.clock * 1e6).round() as u64,
            seed: self.seed,
            ..Parameters::new(nodes, barriers)
        })
    }
}

/// Run in virtual time and print latency statistics.
#[derive(Args)]
pub struct Run {
    /// How many nodes are wired to the barrier, 1 to 64.
    #[arg(short, long, default_value_t = 60)]
    nodes: usize,
    /// How many barriers they pass.
    #[arg(short = 'k', long, default_value_t = 1000)]
    barriers: usize,
    #[command(flatten)]
    hardware: Hardware,
}

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
    #[command(flatten)]
    hardware: Hardware,
}

impl Run {
    pub fn execute(self) -> Result<(), Failure> {
        let parameters = self.hardware.parameters(self.nodes, self.barriers)?;
        let Outcome { summary, .. } = run(&parameters, false)?;
        print!("{}", report(&parameters, &summary));
        Ok(())
    }
}

impl Wave {
    pub fn execute(self) -> Result<(), Failure> {
        let parameters = self.hardware.parameters(self.nodes, self.barriers)?;
        let Outcome { summary, record } = run(&parameters, true)?;
        print!("{}", report(&parameters, &summary));
        write_wave(&self.output, &record)
    }
}

/// Writes the waveform and its save file, and says where they are.
pub fn write_wave(dump: &Path, record: &Record) -> Result<(), Failure> {
    let save = dump.with_extension("gtkw");
    let failed = |path: &Path, e: std::io::Error| format!("cannot write {}: {e}", path.display());
    let create = |path: &Path| {
        File::create(path)
            .map(BufWriter::new)
            .map_err(|e| failed(path, e))
    };
    sim::vcd::write(create(dump)?, record).map_err(|e| failed(dump, e))?;
    let mut sink = create(&save)?;
    // GTKWave looks for the dump where the save file is.
    let name = dump
        .file_name()
        .unwrap_or(dump.as_os_str())
        .to_string_lossy();
    sim::gtkw::write(&mut sink, &name, record.nodes)
        .and_then(|()| sink.flush())
        .map_err(|e| failed(&save, e))?;
    println!(
        "waveform: {} ({} changes and marks)",
        dump.display(),
        record.events.len()
    );
    if record.dropped > 0 {
        println!(
            "          the record was full: {} later events are missing",
            record.dropped
        );
    }
    println!("open with: gtkwave {}", save.display());
    Ok(())
}

fn report(parameters: &Parameters, summary: &Summary) -> String {
    let Parameters {
        nodes,
        barriers,
        arrivals,
        port_read,
        cable,
        clock_hz,
        seed,
        ..
    } = parameters;
    let mut text = String::new();
    let mut line = |words: std::fmt::Arguments| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{words}");
    };
    line(format_args!(
        "{nodes} nodes, {barriers} barriers, arrivals {arrivals}, seed {seed}"
    ));
    line(format_args!(
        "port access {port_read}, cable {cable} each way, clock {} MHz",
        *clock_hz as f64 / 1e6
    ));
    line(format_args!(
        "{} releases counted by the machine in {} of virtual time\n",
        summary.releases, summary.duration
    ));
    line(format_args!(
        "{:<34} {:>10} {:>10} {:>10}",
        "after the last node has entered", "median", "p99", "worst"
    ));
    let mut row = |name: &str, d: &Distribution| {
        line(format_args!(
            "{name:<34} {:>10} {:>10} {:>10}",
            d.median(),
            d.percentile(99.0),
            d.worst()
        ));
    };
    row("every node has left after", &summary.every_node);
    row("the last node itself after", &summary.last_arriver);
    for (phase, distribution) in Phase::ALL.into_iter().zip(&summary.phases) {
        row(&format!("  {}", phase.name()), distribution);
    }
    row("first to last entry (skew)", &summary.skew);
    text
}
