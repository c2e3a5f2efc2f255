//! `hwbarr port`: tools to bring up real wires, from finding the port to a barrier of two nodes.

use crate::{Failure, say};
use barrier_driver::bring_up::{self, Durations};
use barrier_driver::ports::{self, BoxedWires, PORTS};
use clap::{Args, Subcommand, ValueEnum};
use embedded_hal::digital::{InputPin as _, OutputPin as _, PinState};
use std::fmt::Write as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Bring a real port up: find it, read and write it, test it with a plug, measure it, let two nodes meet.
#[derive(Args)]
pub struct Port {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    /// What ports there are, how they are written, and what this machine has of them.
    List,
    /// Read the wire from the barrier.
    Read { port: String },
    /// Write the wire to the barrier; it keeps the level when this command has ended.
    Write { port: String, level: Level },
    /// Write the other level again and again, for a meter or an oscilloscope.
    Toggle {
        port: String,
        /// How often.
        #[arg(short = 'k', long, default_value_t = 10)]
        times: u32,
        /// For how long each level stays, milliseconds.
        #[arg(long, value_name = "MS", default_value_t = 500)]
        period: u64,
    },
    /// With a plug that joins the two wires: is what is written what is read?
    Loopback {
        port: String,
        /// How many levels are tried.
        #[arg(short = 'k', long, default_value_t = 1000)]
        toggles: u32,
    },
    /// How long a read and a write take; the wire keeps its level.
    Measure {
        port: String,
        #[arg(short = 'k', long, default_value_t = 10_000)]
        samples: u32,
    },
    /// Two nodes of this host, each with a port, at a barrier of two: the self-test, then barriers.
    Pair {
        first: String,
        second: String,
        #[arg(short = 'k', long, default_value_t = 1000)]
        barriers: u32,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Level {
    Low,
    High,
}

/// Time limit for a level or a release that is expected at the port.
const LIMIT: Duration = Duration::from_secs(1);

/// The devices that this machine may have, each with the prefix of the port name that uses it.
const DEVICES: &[(&str, &str)] = &[
    ("/dev/parport0", "ppdev"),
    ("/dev/parport1", "ppdev"),
    ("/dev/gpiochip0", "gpio"),
    ("/dev/gpiomem", "rppal"),
    ("/dev/port", "parport"),
];

impl Port {
    pub fn execute(self) -> Result<(), Failure> {
        match self.step {
            Step::List => list(),
            Step::Read { port } => {
                let mut wires = ports::open(&port)?;
                let level = PinState::from(wires.input.is_high()?);
                say(&format!("{:?} is {}\n", wires.input, name(level)))
            }
            Step::Write { port, level } => {
                let mut wires = ports::open(&port)?;
                let level = match level {
                    Level::Low => PinState::Low,
                    Level::High => PinState::High,
                };
                wires.out.set_state(level)?;
                say(&format!("{:?} is now {}\n", wires.out, name(level)))
            }
            Step::Toggle {
                port,
                times,
                period,
            } => toggle(&port, times, Duration::from_millis(period)),
            Step::Loopback { port, toggles } => {
                let BoxedWires {
                    mut out, mut input, ..
                } = ports::open(&port)?;
                let took = bring_up::loop_back(&mut out, &mut input, toggles, LIMIT)
                    .map_err(|e| format!("{port}: {e}"))?;
                say(&format!(
                    "{} levels written to {out:?} came back on {input:?}, both ways\n{}",
                    took.len(),
                    line("a level is back after", &took)
                ))
            }
            Step::Measure { port, samples } => {
                let BoxedWires {
                    mut out, mut input, ..
                } = ports::open(&port)?;
                let cost = bring_up::cost(&mut out, &mut input, samples)?;
                say(&format!(
                    "{port}, {samples} accesses of each kind\n{}{}",
                    line("read (IN)", &cost.read),
                    line("write (OUT)", &cost.write)
                ))
            }
            Step::Pair {
                first,
                second,
                barriers,
            } => {
                let open = |port: &str| ports::open(port).map(|w| (w.out, w.input));
                let nodes = [open(&first)?, open(&second)?];
                let took = bring_up::pair(nodes, barriers, LIMIT).map_err(|(node, e)| {
                    format!("node {node} ({}): {e}", [&first, &second][node])
                })?;
                say(&format!(
                    "both nodes passed the self-test and {} barriers\n{}",
                    took.len(),
                    line("a barrier of node 0", &took)
                ))
            }
        }
    }
}

fn list() -> Result<(), Failure> {
    let mut text = String::from("ports\n");
    for kind in PORTS {
        writeln!(text, "  {}\n      {}", kind.syntax, kind.help)?;
    }
    let there: Vec<_> = DEVICES
        .iter()
        .filter(|(device, _)| Path::new(device).exists())
        .collect();
    if there.is_empty() {
        text.push_str("this machine has none of the devices that they use\n");
    } else {
        text.push_str("this machine has\n");
    }
    for (device, port) in there {
        writeln!(text, "  {device:<16} for {port}")?;
    }
    say(&text)
}

fn toggle(port: &str, times: u32, period: Duration) -> Result<(), Failure> {
    let mut wires = ports::open(port)?;
    let mut level = PinState::from(wires.input.is_high()?);
    for time in 1..=times {
        level = !level;
        wires.out.set_state(level)?;
        thread::sleep(period);
        let read = PinState::from(wires.input.is_high()?);
        say(&format!(
            "{time}: {:?} {}, {:?} {}\n",
            wires.out,
            name(level),
            wires.input,
            name(read)
        ))?;
    }
    Ok(())
}

fn line(what: &str, took: &Durations) -> String {
    let at = |part| format!("{:.3} us", took.quantile(part).as_secs_f64() * 1e6);
    format!(
        "  {what:<22} median {}, p99 {}, worst {}\n",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

fn name(level: PinState) -> &'static str {
    match level {
        PinState::Low => "low",
        PinState::High => "high",
    }
}
