//! Task of a command line: a benchmark, `tune`, `guidelines`, `endings` or the manual page.

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser};

use crate::benchmark::Benchmark;
use crate::cli::Options;
use crate::endings::Leave;
use crate::refusals::{self, Refusal};

/// The task of a command line.
#[derive(Debug)]
pub enum Task {
    Measure(Options),
    /// `mpi-bench tune`, with the options of a benchmark.
    Tune(Options),
    /// `mpi-bench endings`, with the options of a benchmark.
    Endings(Options),
    /// `mpi-bench guidelines`, with the options of a benchmark.
    Guidelines(Options),
    /// A rank of `mpi-bench guidelines`.
    Compare(Options),
    /// A rank of `mpi-bench endings`.
    Leave(Leave),
    /// `mpi-bench --generate man`: print the manual page.
    Manual,
}

/// Returns the manual page.
pub fn manual() -> String {
    let mut bytes = Vec::new();
    // Writing to a `Vec` cannot fail.
    let _ = clap_mangen::Man::new(Options::command()).render(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Task {
    /// Checks the options together, before anything is measured.
    pub fn check(&self) -> Result<(), Refusal> {
        match self {
            Task::Measure(options) => refusals::of_benchmark(options),
            Task::Tune(options) => refusals::of_tune(options),
            Task::Endings(options) => refusals::of_endings(options),
            Task::Guidelines(options) => refusals::of_guidelines(options),
            Task::Compare(_) | Task::Leave(_) | Task::Manual => Ok(()),
        }
    }

    pub fn parse() -> Task {
        let mut arguments: Vec<OsString> = std::env::args_os().collect();
        let Some(first) = arguments.get_mut(1) else {
            return Task::Measure(Options::parse());
        };
        let task = match first.to_str() {
            Some("tune") => Task::Tune,
            Some("endings") => Task::Endings,
            Some("guidelines") => Task::Guidelines,
            Some("compare") => Task::Compare,
            Some("leave") => {
                arguments.remove(1);
                return Task::Leave(Leave::parse_from(arguments));
            }
            Some("--generate") => return Task::Manual,
            _ => return Task::Measure(Options::parse()),
        };
        // The parser requires a benchmark, but this task ignores it.
        *first = Benchmark::Barrier.name().into();
        task(Options::parse_from(arguments))
    }
}
