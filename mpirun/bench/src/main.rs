//! `mpi-bench`: micro-benchmarks for any MPI library.
//!
//! The program is not linked to an MPI library: it loads a library at start and calls it by the MPI
//! 5.0 standard ABI. So one executable measures this project's library and MPICH's.
//! Open MPI's library is measured by means of a small table of handles.
//! The measuring loops are those of the OSU micro-benchmarks, so the figures are comparable.
//! Source: D. K. Panda and others, "OSU Micro-Benchmarks" 7.
//!
//! Modes of operation:
//! - under a launcher (`mpirun -n 2 mpi-bench latency`) it measures;
//! - as `mpi-bench tune` it starts its own launcher for each algorithm and writes a decision table;
//! - as `mpi-bench guidelines` it compares collectives with equivalent calls;
//! - as `mpi-bench endings` it ends jobs in several ways and measures how long that takes;
//! - with `-n N` it starts its own launcher;
//! - with `--vs LIBDIR` it alternates between libraries and prints ratios of medians.
//!
//! Promise: every printed figure was measured in this run.
//! A setting that cannot be measured is reported with the reason; no other setting replaces it.

#![deny(unsafe_code)]

mod alone;
mod benchmark;
mod buffer;
mod choices;
mod cli;
mod clock;
mod endings;
mod find;
mod guidelines;
mod launcher;
mod load;
mod measure;
#[allow(unsafe_code)]
mod mpi;
mod output;
mod pace;
mod refusals;
mod row;
mod sizes;
mod table;
mod task;
mod tune;
mod versus;

use std::process::ExitCode;

use benchmark::Benchmark;
use cli::Options;
use mpi_base::environment;
use task::Task;

/// The exit status of a refused command line, as that of the parser of options.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let task = Task::parse();
    if let Err(refusal) = task.check() {
        printable::to_stderr(&format!("mpi-bench: {refusal}\n"));
        return ExitCode::from(USAGE);
    }
    let outcome = match task {
        Task::Tune(options) => starts("tune", || tune::run(&options)),
        Task::Endings(options) => starts("endings", || endings::run(&options)),
        Task::Guidelines(options) => starts("guidelines", || guidelines::run(&options)),
        Task::Compare(options) => compare_here(&options),
        Task::Leave(task) => endings::leave(&task).map_err(sentence),
        Task::Manual => {
            // A closed stdout pipe, as with `| head`, is not an error.
            let _ = printable::to_stdout(&task::manual());
            Ok(())
        }
        Task::Measure(options) if options.is_of_ranks() => measure_here(&options),
        Task::Measure(options) if options.vs.is_empty() => {
            starts("mpi-bench with -n", || versus::run(&options))
        }
        Task::Measure(options) => starts("a comparison", || versus::run(&options)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Failure::Sentence(sentence) = failure {
                printable::to_stderr(&format!("mpi-bench: {sentence}\n"));
            }
            ExitCode::FAILURE
        }
    }
}

/// The reason why this rank has no figures, and whether this rank prints the reason.
enum Failure {
    Sentence(String),
    /// Rank 0 prints the message for all ranks.
    SaidByRankZero,
}

/// Runs a task that starts launchers, unless this process is one of several ranks.
fn starts<E: std::error::Error>(
    task: &'static str,
    run: impl FnOnce() -> Result<(), E>,
) -> Result<(), Failure> {
    alone::check(task, |name| environment::text(name)).map_err(sentence)?;
    run().map_err(sentence)
}

/// Runs a benchmark on the library that [`find::library`] returns, as one rank of a job.
fn measure_here(options: &Options) -> Result<(), Failure> {
    let path = find::library(options.lib.as_deref()).map_err(sentence)?;
    let library = mpi::Library::load(&path).map_err(sentence)?;
    let threads = options.benchmark == Benchmark::Threads;
    let (world, took) = library.init(threads).map_err(sentence)?;
    let first = world.rank() == 0;
    let started = match options.benchmark {
        Benchmark::Init => {
            world.barrier().map_err(sentence)?;
            Some(clock::now_ms())
        }
        _ => None,
    };
    let measured = measure::run(options, &world, took).map(|rows| table::Report {
        started,
        ..table::Report::new(options.benchmark, &world, rows)
    });
    let said = match (measured, first) {
        (Ok(report), true) if options.json => output::say(&format!("{}\n", report.json())),
        (Ok(report), true) => output::say(&report.text()),
        (Ok(_), false) => Ok(()),
        // MPI_Finalize is not called: it could block if only this rank has failed.
        (Err(measure::error::MeasureError::Mpi(error)), _) => {
            return Err(Failure::Sentence(world.describe(&error)));
        }
        (Err(error), _) => {
            world.finalize().map_err(sentence)?;
            return Err(if first {
                sentence(error)
            } else {
                Failure::SaidByRankZero
            });
        }
    };
    world.finalize().map_err(sentence)?;
    said.map_err(sentence)
}

/// Runs `mpi-bench guidelines` as one rank of a job.
fn compare_here(options: &Options) -> Result<(), Failure> {
    let path = find::library(options.lib.as_deref()).map_err(sentence)?;
    let library = mpi::Library::load(&path).map_err(sentence)?;
    let (world, _) = library.init(false).map_err(sentence)?;
    guidelines::compare(options, &world).map_err(sentence)?;
    world.finalize().map_err(sentence)
}

fn sentence(error: impl std::error::Error) -> Failure {
    Failure::Sentence(error.to_string())
}
