//! Command line of `mpi-bench`.

mod files;

pub use files::{FileOptions, Pattern};

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use mpi_base::cpu::Cores;

use crate::benchmark::Benchmark;
use crate::choices::{Buffers, Settings, Sync, WindowKind};
use crate::sizes::{Sizes, parse_sizes};

/// Micro-benchmarks for any MPI library with the standard ABI (and Open MPI's).
#[derive(Clone, Debug, Parser)]
#[command(
    name = "mpi-bench",
    version,
    allow_negative_numbers = true,
    after_help = "mpi-bench tune [OPTIONS] measures every algorithm of every collective, on 2 ranks, 4 and so on up to -n, \
                  and writes a decision table for --mca coll_tuned_rules.\n\
                  mpi-bench guidelines [OPTIONS] compares collectives with other ways to the same result, on the same numbers of ranks, \
                  and prints those that are slower with what chose their algorithms.\n\
                  mpi-bench endings [OPTIONS] ends jobs in every way and measures how soon they are gone, and what they leave.\n\
                  Help: -h prints the common options, --help all of them."
)]
pub struct Options {
    /// What to measure
    #[arg(value_enum)]
    pub benchmark: Benchmark,

    /// The MPI library to measure: the file, its folder, or the installation prefix
    #[arg(long, value_name = "PATH")]
    pub lib: Option<PathBuf>,

    /// Message sizes in bytes: one (8), several (8,1K,64K) or powers of two in a range (1:4M)
    #[arg(long, value_name = "SIZES", value_parser = parse_sizes)]
    pub sizes: Option<Sizes>,

    /// Iterations of a row; the default is the number of the OSU benchmarks for the size
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,

    /// Iterations before the clock starts
    #[arg(short = 'x', long, value_name = "N", hide_short_help = true)]
    pub warmup: Option<u64>,

    /// Time limit of a row; a row that would take longer makes fewer iterations
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = parse_seconds, hide_short_help = true)]
    pub max_seconds: Duration,

    /// Time for which all ranks are kept busy before the first row, because idle cores are slow at first; 0: none
    #[arg(long, value_name = "SECONDS", default_value = "0.3", value_parser = parse_length, hide_short_help = true)]
    pub settle: Duration,

    /// The buffers of messages in flight together, for bw, bibw and rate
    #[arg(long, value_enum, default_value = "single", hide_short_help = true)]
    pub buffers: Buffers,

    /// The function that creates windows, for put and the other one-sided benchmarks
    #[arg(long, value_enum, default_value = "allocate", hide_short_help = true)]
    pub window: WindowKind,

    /// The synchronisation that completes each access of put, get and acc
    #[arg(long, value_enum, default_value = "flush", hide_short_help = true)]
    pub sync: Sync,

    /// Busy loops that run with the ranks, for beside with -n or --vs [default: one for each core]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub load: Option<usize>,

    /// For exit-skew: query the clocks of the ranks by messages, as between hosts, although they have one clock
    #[arg(long, hide_short_help = true)]
    pub estimate_clocks: bool,

    #[command(flatten)]
    pub files: FileOptions,

    /// Print one line of JSON instead of columns
    #[arg(long)]
    pub json: bool,

    /// Compare with the library in this folder or installation prefix, under its own launcher (may be repeated)
    #[arg(long, value_name = "LIBDIR")]
    pub vs: Vec<PathBuf>,

    /// Start the library's own launcher and compare with no other; so does -n without --vs
    #[arg(long, conflicts_with = "vs", hide_short_help = true)]
    pub alone: bool,

    /// Ranks, where launchers are started [default: 2]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,

    /// Rounds with --vs; each round runs every library once
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub rounds: u32,

    /// Settings of the other libraries, with --vs
    #[arg(long, value_enum, default_value = "best", hide_short_help = true)]
    pub settings: Settings,

    /// Passed to our own mpirun, with --vs (may be repeated)
    #[arg(
        long,
        value_name = "ARG",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub our_arg: Vec<String>,

    /// Write the table of tune to this file instead of printing it
    #[arg(short, long, value_name = "FILE", hide_short_help = true)]
    pub output: Option<PathBuf>,

    /// Time limit of a job, with --vs; a job that exceeds it counts as not measured
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = parse_seconds, hide_short_help = true)]
    pub timeout: Duration,
}

impl Options {
    /// Returns true if this process is a rank; false if this process starts launchers.
    pub fn is_of_ranks(&self) -> bool {
        let starts = !self.vs.is_empty() || self.alone || self.ranks.is_some();
        !starts && self.benchmark != Benchmark::Launch
    }

    /// Returns the number of busy loops that run beside the ranks.
    pub fn loops(&self) -> usize {
        match self.benchmark {
            Benchmark::Beside => self.load.unwrap_or_else(|| Cores::of_this_process().usable),
            _ => 0,
        }
    }

    /// Returns the number of ranks that a launcher starts.
    pub fn ranks(&self) -> u32 {
        self.ranks.unwrap_or(2)
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match parse_length(text)? {
        Duration::ZERO => Err(format!("{text} seconds is not a length of time")),
        length => Ok(length),
    }
}

fn parse_length(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| format!("{text:?} is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("{text} seconds is not a length of time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }

    #[test]
    fn the_short_help_has_the_common_options_and_the_long_one_all() {
        use clap::CommandFactory;
        let short = Options::command().render_help().to_string();
        let long = Options::command().render_long_help().to_string();
        for option in Options::command().get_arguments() {
            let name = option
                .get_long()
                .map_or_else(String::new, |name| format!("--{name}"));
            assert!(long.contains(&name), "{name}");
            assert_eq!(
                short.contains(&name),
                !option.is_hide_short_help_set(),
                "{name}"
            );
        }
    }
}
