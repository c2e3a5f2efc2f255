//! `hwbarr scale`: predicts collectives on many ranks, in software and with the hardware barrier.
//!
//! LogGP predicts the software (`barrier_simulator::software`),
//! with parameters from options or fitted to measurements of `mpi-bench`.
//! The hardware is simulated in virtual time:
//! cascaded boards, each with its own clock, on as many levels as the ranks require.
//! When the last node arrives, all boards that are not on its path to the root are complete.
//! So the run has only enough boards for the number of levels.
//! The delay of the fan-out is that for all ranks.
//! No such tree of boards has been built.
//!
//! Version 2 (`--channels`) has one board with one wire per host:
//! the ranks are divided among at most sixty hosts,
//! and the ranks of a host synchronise in shared memory before and after the hardware barrier.

use crate::Failure;
use crate::measured::{self, Measured};
use crate::options::{Hardware, MOST_BYTES, Software};
use crate::tables::{Format, Table, Tool};
use barrier_simulator::software::{BARRIERS, COLLECTIVES, Collective, Network, Point, fit};
use barrier_simulator::virtual_time::{Parameters, Time, run};
use barrier_waveform::words::counted;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Number of pins of a board, for nodes or lower boards.
const BOARD: u64 = 60;
/// Maximum number of ranks whose barrier is measured on one machine.
const MOST_HERE: u64 = 128;
/// Maximum number of ranks per host for which version 2 is predicted.
const MOST_ON_HOST: u64 = 512;
/// Number of barriers in virtual time from which the median is computed.
const BARRIERS_RUN: usize = 1000;

/// Predict collectives on many ranks: software under LogGP, and the hardware barrier.
#[derive(Args)]
pub struct Scale {
    /// How many ranks.
    #[arg(long, value_delimiter = ',', value_name = "RANKS", value_parser = clap::value_parser!(u64).range(1..=Collective::MOST_RANKS), default_values_t = [60, 1024, 65_536])]
    ranks: Vec<u64>,
    /// How many bytes the collectives beside the barrier move: each rank's, or, for alltoall, each pair's.
    #[arg(long = "size", value_name = "BYTES", value_parser = clap::value_parser!(u64).range(..=MOST_BYTES), default_value_t = 8)]
    size: u64,
    /// Fit the network from what `mpi-bench latency --json` and `mpi-bench rate --json` have printed, instead of the options below.
    #[arg(long, num_args = 2, value_names = ["LATENCY", "RATE"])]
    fit: Option<Vec<PathBuf>>,
    /// With --channels: time from a store of one rank until another rank of its host reads the value. A barrier of version 2
    /// takes two of them more if a host has several ranks. The default is an assumption and was not measured.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "100ns",
        requires = "channels",
        hide_short_help = true
    )]
    host_memory: Time,
    #[command(flatten)]
    tool: Tool,
    #[command(flatten)]
    hardware: Hardware,
    #[command(flatten)]
    software: Software,
}

impl Scale {
    pub fn execute(self) -> Result<(), Failure> {
        let networks = match self.fit.as_deref() {
            Some([latency, rate]) => vec![(
                "fitted",
                fit(&points(latency, "latency")?, &points(rate, "rate")?)?,
            )],
            _ => {
                let named =
                    |network: Network| (network.name().unwrap_or("of the options"), network);
                self.software.networks().into_iter().map(named).collect()
            }
        };
        let one = self.hardware.parameters(1, 1)?;
        let mut runs = Vec::new();
        for &ranks in &self.ranks {
            let median = match one.channels {
                0 => Some(self.boards(ranks)?),
                _ => self.channels(ranks)?,
            };
            runs.push((ranks, median));
        }
        let most = self.ranks.iter().copied().max().unwrap_or(BOARD);
        let own = match self.software.measured {
            true => self.measure()?,
            false => Vec::new(),
        };
        let mut barriers = self.columns();
        let cells = runs.iter().map(|(_, median)| {
            let cell = median.and_then(|median| self.cell(median));
            cell.unwrap_or_else(|| "-".into())
        });
        barriers.row(std::iter::once(Value::from("this hardware")).chain(cells));
        for measured in &own {
            let cell = |ranks: &u64| match *ranks == measured.ranks {
                true => self.cell(measured.mean).unwrap_or_default(),
                false => Value::from("-"),
            };
            let cells = self.ranks.iter().map(cell);
            barriers.row(std::iter::once(Value::from(measured.name())).chain(cells));
        }
        let mut others = self.columns();
        for (rules, table) in [(BARRIERS, &mut barriers), (COLLECTIVES, &mut others)] {
            for rule in rules {
                for (name, network) in &networks {
                    let name = format!("{} {}, {name}", rule.call, rule.algorithm);
                    let time = |ranks| rule.time(*network, ranks, self.size);
                    self.fill(table, &name, &time)?;
                }
            }
        }
        let text = match self.tool.format() {
            Format::Text => {
                let heads = networks.iter().map(|(name, network)| match network.name() {
                    Some(_) => format!("software under LogGP, {network}\n"),
                    None => format!(
                        "software under LogGP, network {name}: {}\n",
                        network.parameters()
                    ),
                });
                format!(
                    "{}{}\n\nbarrier\n{}\n{} bytes\n{}",
                    heads.collect::<String>(),
                    self.head(most, &one),
                    barriers.to_text(),
                    self.size,
                    others.to_text()
                )
            }
            Format::Csv => barriers.to_csv() + &others.to_csv(),
            Format::Json => format!(
                "{:#}\n",
                json!({"barrier": barriers.to_json(), "bytes": self.size, "others": others.to_json()})
            ),
        };
        crate::say(&text)
    }

    /// Describes the hardware in one line; `most` is the largest number of ranks.
    fn head(&self, most: u64, parameters: &Parameters) -> String {
        if parameters.channels > 0 {
            return format!(
                "hardware: version 2, one board of {BOARD} hosts with up to {MOST_ON_HOST} ranks each, {} from a store to a load in a host's memory",
                self.host_memory
            );
        }
        format!(
            "hardware: boards of {BOARD} pins, {} for {most} ranks, {} between two, {} from the last to the cables",
            counted(levels(most), "level"),
            parameters.trunk,
            self.fan_out(most, parameters)
        )
    }

    /// Returns the median time until every rank has left a barrier of version 2.
    /// Returns `None` for more than [`MOST_ON_HOST`] ranks per host.
    fn channels(&self, ranks: u64) -> Result<Option<Time>, Failure> {
        let on_host = ranks.div_ceil(BOARD);
        if on_host > MOST_ON_HOST {
            return Ok(None);
        }
        let hosts = ranks.div_ceil(on_host) as usize;
        let parameters = self.hardware.parameters(hosts, BARRIERS_RUN)?;
        let wires = run(&parameters, false)?.summary.complete.median();
        let transfers = if on_host > 1 { 2.0 } else { 0.0 };
        Ok(Some(wires + self.host_memory.scaled(transfers)))
    }

    /// Returns the median time until every node has left a barrier,
    /// on the number of levels of boards that `ranks` ranks require.
    fn boards(&self, ranks: u64) -> Result<Time, Failure> {
        let nodes = ranks.min(BOARD) as usize;
        let mut parameters = self.hardware.parameters(nodes, BARRIERS_RUN)?;
        if levels(ranks) > 1 {
            // The run has one node per leaf board. `full` leaf boards need one level less,
            // so `full + 1` boards give the required number of levels.
            let full = (BOARD as usize).pow(levels(ranks) - 2);
            let boards = (full + 1).max(nodes);
            parameters.nodes = boards;
            parameters.boards = boards;
            parameters.barriers = (BARRIERS_RUN * nodes / boards).max(10);
        }
        parameters.fan_out = self.fan_out(ranks, &parameters);
        let outcome = run(&parameters, false)?;
        Ok(outcome.summary.complete.median())
    }

    /// Returns the delay from the root board's pin to the cables of all ranks.
    fn fan_out(&self, ranks: u64, parameters: &Parameters) -> Time {
        match levels(ranks) {
            1 => parameters.fan_out,
            _ => Parameters::fan_out_to(ranks as usize, parameters.trunk),
        }
    }

    /// Measures this machine's software barrier, for each number of ranks that one machine can run.
    fn measure(&self) -> Result<Vec<Measured>, Failure> {
        let here = self
            .ranks
            .iter()
            .filter(|ranks| (2..=MOST_HERE).contains(*ranks));
        here.map(|ranks| measured::barrier(*ranks)).collect()
    }

    fn columns(&self) -> Table {
        let columns = self.ranks.iter().map(|ranks| format!("{ranks} ranks"));
        Table::new(std::iter::once("what".to_owned()).chain(columns))
    }

    /// Adds a row with the function `time`, evaluated for each number of ranks.
    fn fill(
        &self,
        table: &mut Table,
        name: &str,
        time: &dyn Fn(u64) -> Time,
    ) -> Result<(), Failure> {
        let mut cells = vec![Value::from(name)];
        for ranks in &self.ranks {
            cells.push(self.cell(time(*ranks)).ok_or_else(|| {
                format!(
                    "{name} of {ranks} ranks and {} bytes takes longer than {}, the longest time that is counted: give fewer ranks or bytes",
                    self.size,
                    Time::from_ps(u64::MAX)
                )
            })?);
        }
        table.row(cells);
        Ok(())
    }

    /// Returns the table cell of a time: with its unit in text output, else in nanoseconds.
    /// Returns `None` if the time is the maximum of `Time`, which means that it overflowed.
    fn cell(&self, time: Time) -> Option<Value> {
        if time == Time::from_ps(u64::MAX) {
            return None;
        }
        Some(match self.tool.format() {
            Format::Text => time.to_string().into(),
            _ => (time.ps() as f64 / 1000.0).into(),
        })
    }
}

/// Returns the number of levels of cascaded boards that this number of ranks requires.
fn levels(ranks: u64) -> u32 {
    let mut levels = 1;
    let mut joined = BOARD;
    while joined < ranks {
        levels += 1;
        joined = joined.saturating_mul(BOARD);
    }
    levels
}

/// Reads the measured points from a report of `mpi-bench --json`.
fn points(path: &Path, benchmark: &str) -> Result<Vec<Point>, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))?;
    let report: Value = serde_json::from_str(&text)
        .map_err(|e| format!("{name} is not what mpi-bench --json prints: {e}"))?;
    let of = report["benchmark"].as_str().unwrap_or("nothing");
    if of != benchmark {
        return Err(format!("{name} is a measurement of {of}, and {benchmark} is needed").into());
    }
    let rows = report["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let point = |row: &Value| {
        Some(Point {
            bytes: row["size"].as_u64()?,
            figure: row["avg"].as_f64()?,
        })
    };
    Ok(rows.iter().filter_map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::levels;

    #[test]
    fn boards_above_boards_join_sixty_times_as_many() {
        let of = [1, 60, 61, 3600, 3601, 65_536, 216_000, 216_001].map(levels);
        assert_eq!(of, [1, 1, 2, 2, 3, 3, 3, 4]);
        for (ranks, depth) in [(61, 2), (3600, 2), (3601, 3), (216_000, 3), (216_001, 4)] {
            let boards = (60usize.pow(levels(ranks) - 2) + 1).max(60);
            let tree = barrier_board::tree::Tree::new(boards, boards);
            assert_eq!(tree.levels(), depth, "{ranks} ranks, {boards} boards");
        }
    }
}
