//! The command line.

mod files;

pub use files::{FileOptions, Pattern};

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde::Serialize;

use crate::endings::Leave;

/// Micro-benchmarks for any MPI library with the standard ABI (and Open MPI's).
#[derive(Clone, Debug, Parser)]
#[command(
    name = "mpi-bench",
    version,
    after_help = "mpi-bench tune [OPTIONS] measures every algorithm of every collective, on 2 ranks, 4 and so on up to -n, \
                  and writes a decision table for --mca coll_tuned_rules.\n\
                  mpi-bench endings [OPTIONS] ends jobs in every way and measures how soon they are gone, and what they leave."
)]
pub struct Options {
    /// What to measure
    #[arg(value_enum)]
    pub benchmark: Benchmark,

    /// The MPI library to measure: a file, its folder, or the one it was installed to
    #[arg(long, value_name = "PATH")]
    pub lib: Option<PathBuf>,

    /// Message sizes in bytes: one (8), several (8,1K,64K) or powers of two in a range (1:4M)
    #[arg(long, value_name = "SIZES", value_parser = parse_sizes)]
    pub sizes: Option<Sizes>,

    /// Iterations of a row; the default is that of the OSU benchmarks for the size
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,

    /// Iterations before the clock starts
    #[arg(short = 'x', long, value_name = "N")]
    pub warmup: Option<u64>,

    /// A row makes fewer iterations when they would take longer than this
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = parse_seconds)]
    pub max_seconds: Duration,

    /// All ranks are kept busy for so long before the first row, because cores that were idle are slow at first; 0 for not at all
    #[arg(long, value_name = "SECONDS", default_value = "0.3", value_parser = parse_length)]
    pub settle: Duration,

    /// Whether all messages of a window of bw, bibw and rate use the same memory
    #[arg(long, value_enum, default_value = "single")]
    pub buffers: Buffers,

    /// How windows are made, for put and its relatives
    #[arg(long, value_enum, default_value = "allocate")]
    pub window: WindowKind,

    /// What completes each access of put, get and acc
    #[arg(long, value_enum, default_value = "flush")]
    pub sync: Sync,

    #[command(flatten)]
    pub files: FileOptions,

    /// Print one line of JSON instead of columns
    #[arg(long)]
    pub json: bool,

    /// Measure against the library in this folder, or installed to it, each under its own launcher (may be repeated)
    #[arg(long, value_name = "LIBDIR")]
    pub vs: Vec<PathBuf>,

    /// Start the library's own launcher and compare with nobody; so does -n without --vs
    #[arg(long, conflicts_with = "vs")]
    pub alone: bool,

    /// Ranks, where launchers are started [default: 2]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,

    /// How often the libraries take turns, with --vs
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// How the peers are run, with --vs
    #[arg(long, value_enum, default_value = "best")]
    pub settings: Settings,

    /// Passed to our own mpirun, with --vs (may be repeated)
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub our_arg: Vec<String>,

    /// Write the table of tune to this file instead of printing it
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// A run that takes longer is stopped and counts as not measured, with --vs
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = parse_seconds)]
    pub timeout: Duration,
}

impl Options {
    /// Whether this process is to be a rank, and not what starts ranks.
    pub fn is_of_ranks(&self) -> bool {
        let starts = !self.vs.is_empty() || self.alone || self.ranks.is_some();
        !starts && self.benchmark != Benchmark::Launch
    }

    /// How many ranks a launcher is to start.
    pub fn ranks(&self) -> u32 {
        self.ranks.unwrap_or(2)
    }
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Task {
    Measure(Options),
    /// `mpi-bench tune`, with the options of a benchmark.
    Tune(Options),
    /// `mpi-bench endings`, with the options of a benchmark.
    Endings(Options),
    /// A rank of the latter.
    Leave(Leave),
}

impl Task {
    pub fn parse() -> Task {
        let mut arguments: Vec<OsString> = std::env::args_os().collect();
        let Some(first) = arguments.get_mut(1) else {
            return Task::Measure(Options::parse());
        };
        let task = match first.to_str() {
            Some("tune") => Task::Tune,
            Some("endings") => Task::Endings,
            Some("leave") => {
                arguments.remove(1);
                return Task::Leave(Leave::parse_from(arguments));
            }
            _ => return Task::Measure(Options::parse()),
        };
        // The options are those of any benchmark, and which one it is does not matter here.
        *first = Benchmark::Barrier.name().into();
        task(Options::parse_from(arguments))
    }
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Benchmark {
    /// Half a round trip between two ranks
    Latency,
    /// One-way bandwidth, 64 messages in flight
    Bw,
    /// Bandwidth in both directions at once
    Bibw,
    /// Message rate of many pairs: rank r to rank r + n/2, 64 messages in flight each
    Rate,
    /// Half a round trip of many pairs at once
    Multilat,
    /// Message rate of two ranks with several threads each; the sizes are threads
    Threads,
    /// Latency with receives posted that do not match; the sizes are how many
    Posted,
    /// Latency with messages waiting that nobody has asked for; the sizes are how many
    Unexpected,
    /// Latency of a matrix column
    Column,
    /// Latency of the face of a cube
    Face,
    /// Latency of doubles at places that follow no rule
    Indexed,
    /// Latency of the same range of four arrays
    Arrays,
    /// MPI_Barrier on all ranks
    Barrier,
    /// MPI_Comm_dup of all ranks, and MPI_Comm_free
    Dup,
    /// MPI_Bcast from rank 0
    Bcast,
    /// MPI_Reduce to rank 0, sum of MPI_FLOAT
    Reduce,
    /// MPI_Allreduce, sum of MPI_FLOAT
    Allreduce,
    /// MPI_Reduce_scatter_block, sum of MPI_FLOAT; the sizes are a rank's block
    ReduceScatter,
    /// MPI_Scan, sum of MPI_FLOAT
    Scan,
    /// MPI_Exscan, sum of MPI_FLOAT
    Exscan,
    /// MPI_Gather to rank 0; the sizes are a rank's block
    Gather,
    /// MPI_Scatter from rank 0; the sizes are a rank's block
    Scatter,
    /// MPI_Allgather; the sizes are a rank's block
    Allgather,
    /// MPI_Alltoall; the sizes are a block from one rank to another
    Alltoall,
    /// MPI_Ibarrier on all ranks, and MPI_Wait
    Ibarrier,
    /// MPI_Ibcast from rank 0, and MPI_Wait
    Ibcast,
    /// MPI_Ireduce to rank 0, sum of MPI_FLOAT, and MPI_Wait
    Ireduce,
    /// MPI_Iallreduce, sum of MPI_FLOAT, and MPI_Wait
    Iallreduce,
    /// MPI_Iallgather, and MPI_Wait; the sizes are a rank's block
    Iallgather,
    /// MPI_Ialltoall, and MPI_Wait; the sizes are a block from one rank to another
    Ialltoall,
    /// How much of MPI_Iallreduce hides behind computing, in percent
    Overlap,
    /// MPI_Put of rank 0 to rank 1, and what completes it
    Put,
    /// MPI_Get of rank 0 from rank 1, and what completes it
    Get,
    /// MPI_Accumulate of 64-bit integers, MPI_SUM, and what completes it
    Acc,
    /// MPI_Get_accumulate of 64-bit integers, MPI_SUM, and what completes it
    GetAcc,
    /// MPI_Fetch_and_op of a 64-bit integer, MPI_SUM, and what completes it
    Fop,
    /// MPI_Compare_and_swap of a 64-bit integer, and what completes it
    Cas,
    /// Bandwidth of MPI_Put, 64 to each flush
    PutBw,
    /// Bandwidth of MPI_Get, 64 to each flush
    GetBw,
    /// Bandwidth of MPI_Put in both directions at once
    PutBibw,
    /// An exclusive lock of rank 1, MPI_Put of 8 bytes, and its end
    Lock,
    /// MPI_Win_lock_all and its end
    LockAll,
    /// MPI_Win_flush with nothing before it
    Flush,
    /// MPI_Win_fence of all ranks
    Fence,
    /// MPI_Win_post, start, complete and wait of all ranks for all ranks
    Pscw,
    /// All ranks add to one number of rank 0 at the same time, with MPI_Fetch_and_op and a flush
    Counter,
    /// Files: what all ranks write or read together; see --pattern, --read and --plain
    Io,
    /// MPI_File_open of one file by all ranks, and MPI_File_close
    Open,
    /// MPI_Init; with --vs also from the command to there, and the whole command
    Init,
    /// A program that does nothing, from the command to its end
    Launch,
    /// Memory of a rank after MPI_Init (its proportional set size)
    Memory,
    /// Memory of the launcher's processes while the job runs
    LauncherMemory,
}

impl Benchmark {
    /// Whether it is defined for two ranks only.
    pub fn is_pairwise(self) -> bool {
        use Benchmark::*;
        matches!(
            self,
            Latency | Bw | Bibw | Threads | Posted | Unexpected | Column | Face | Indexed | Arrays
        ) || self.is_access()
            || matches!(self, PutBw | GetBw | PutBibw)
    }

    /// Whether it is one access of rank 0 to rank 1, whatever its size.
    pub fn is_access(self) -> bool {
        use Benchmark::*;
        matches!(self, Put | Get | Acc | GetAcc | Fop | Cas)
    }

    /// Whether rank 0 alone does something to a window, or all ranks do, of no size.
    pub fn is_of_windows(self) -> bool {
        use Benchmark::*;
        matches!(self, Lock | LockAll | Flush | Fence | Pscw | Counter)
    }

    /// Whether it is defined for an even number of ranks.
    pub fn is_in_pairs(self) -> bool {
        matches!(self, Benchmark::Rate | Benchmark::Multilat)
    }

    /// Whether one iteration is a window of messages.
    pub fn is_windowed(self) -> bool {
        use Benchmark::*;
        matches!(self, Bw | Bibw | Rate | Threads | PutBw | GetBw | PutBibw)
    }

    /// Whether a row is a loop, and not what happened once.
    pub fn is_of_loops(self) -> bool {
        use Benchmark::*;
        !matches!(self, Init | Launch | Memory | LauncherMemory)
    }

    /// The name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |v| v.get_name().to_owned())
    }
}

/// The memory of the messages that are in flight together; `-b` of the OSU benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Buffers {
    /// One for all of them, which stays in the nearest cache
    Single,
    /// One for each, as in programs
    Multiple,
}

impl Buffers {
    /// How many bytes `window` messages of `size` bytes need.
    pub fn memory(self, size: usize, window: usize) -> usize {
        match self {
            Buffers::Single => size,
            Buffers::Multiple => size * window,
        }
    }
}

/// How a window is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WindowKind {
    /// Of memory of the program
    Create,
    Allocate,
    /// With memory attached to it
    Dynamic,
    Shared,
}

/// What completes an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sync {
    /// MPI_Win_flush; all ranks are locked for the whole run
    Flush,
    /// An exclusive lock around each access
    Lock,
    /// MPI_Win_fence
    Fence,
    /// MPI_Win_post, start, complete and wait
    Pscw,
}

/// Which of a peer's settings are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Settings {
    /// Every tuned setting; each row takes the best of them
    Best,
    /// As the peer comes
    Default,
    /// Everybody over TCP, ours too, each peer at its best there
    Tcp,
}

/// Message sizes, in the order in which they are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<usize>);

impl std::fmt::Display for Sizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&words.join(","))
    }
}

fn parse_sizes(text: &str) -> Result<Sizes, String> {
    if let Some((first, last)) = text.split_once(':') {
        let (first, last) = (parse_size(first)?, parse_size(last)?);
        if first > last {
            return Err(format!("the range {text} ends before it begins"));
        }
        return Ok(powers_of_two(first, last));
    }
    text.split(',')
        .map(parse_size)
        .collect::<Result<_, _>>()
        .map(Sizes)
}

/// `first`, then its doublings up to `last`; a range from zero continues at one.
pub fn powers_of_two(first: usize, last: usize) -> Sizes {
    let next = |&size: &usize| {
        if size == 0 {
            Some(1)
        } else {
            size.checked_mul(2)
        }
    };
    Sizes(
        std::iter::successors(Some(first), next)
            .take_while(|&s| s <= last)
            .collect(),
    )
}

fn parse_size(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let (digits, unit) = match text.chars().last() {
        Some('k' | 'K') => (&text[..text.len() - 1], 1 << 10),
        Some('m' | 'M') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let size: usize = digits
        .parse()
        .map_err(|_| format!("{text:?} is not a size such as 8, 64K or 4M"))?;
    // Counts are handed to MPI as a C int.
    size.checked_mul(unit)
        .filter(|&s| i32::try_from(s).is_ok())
        .ok_or_else(|| format!("{text} is more than an MPI count of type int can hold"))
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
    fn a_range_holds_the_powers_of_two_up_to_its_end() {
        assert_eq!(parse_sizes("1:10").unwrap(), Sizes(vec![1, 2, 4, 8]));
        assert_eq!(parse_sizes("0:2").unwrap(), Sizes(vec![0, 1, 2]));
    }

    #[test]
    fn a_list_keeps_its_order_and_understands_units() {
        assert_eq!(
            parse_sizes("64K,8,4M").unwrap(),
            Sizes(vec![65536, 8, 4 << 20])
        );
    }

    #[test]
    fn what_is_no_size_is_refused_with_a_sentence() {
        assert!(parse_sizes("8,x").unwrap_err().contains("not a size"));
        assert!(parse_sizes("4096M").unwrap_err().contains("MPI count"));
        assert!(parse_sizes("8:4").unwrap_err().contains("ends before"));
        assert!(parse_sizes("").is_err());
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }
}
