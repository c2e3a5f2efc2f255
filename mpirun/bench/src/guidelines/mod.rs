//! `mpi-bench guidelines`: check of the self-consistency guidelines for collectives.
//!
//! A guideline has two sides, which are calls with the same result.
//! The left side must not be slower than the right side.
//! Example: no program should gain by replacing `MPI_Allreduce` by a reduction and a broadcast.
//! Source: J. L. Träff, W. D. Gropp, R. Thakur, "Self-consistent MPI performance guidelines",
//! IEEE TPDS 21(5), 2010.
//! Both sides alternate in one job, and their medians are compared as in PGMPI. Source: S. Hunold,
//! A. Carpen-Amarie, "Autotuning MPI collectives using performance guidelines", HPCAsia 2018.
//! The time of a side is the time of its slowest rank, as in ReproMPI.
//!
//! The report lists each violated guideline with both times and the algorithms of all its calls.
//! The algorithms come from the `mpirun --explain` output of the same job ([`choices`]).
//! The report is not a test: the exit status does not depend on the times.

mod choices;
mod list;
mod ways;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cli::Options;
use crate::find;
use crate::launcher::{Installation, RunError};
use crate::mpi::{Combine, MpiError, World};
use crate::output::{self, OutputError};
use crate::pace::{self, Pace};
use crate::sizes::{Sizes, powers_of_two};
use crate::table::number;
use crate::tune::rank_counts;
use crate::versus::{median, own_library, progress};
use choices::Choices;
use list::{GUIDELINES, Guideline};
use ways::{Call, Memory};

/// The ratio of the left time to the right time above which a guideline is violated.
const LIMIT: f64 = 1.1;

/// The maximum number of bytes in the blocks of all ranks together; each rank has two such buffers.
const MOST_BYTES: usize = 4 << 20;

/// The minimum number of rounds; the command line may request more.
const LEAST_TURNS: u32 = 3;

/// The reason why no guideline was checked.
#[derive(Debug)]
pub enum GuidelinesError {
    NoOwnLibrary(find::NotFound),
    Launcher(RunError),
    Output(OutputError),
}

impl fmt::Display for GuidelinesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOwnLibrary(error) => error.fmt(f),
            Self::Launcher(error) => error.fmt(f),
            Self::Output(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for GuidelinesError {}

/// The times of both sides of a guideline at one size, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Comparison {
    guideline: String,
    size: usize,
    left: f64,
    right: f64,
}

impl Comparison {
    fn is_violated(&self) -> bool {
        self.left > self.right * LIMIT
    }
}

/// The JSON document that rank 0 prints and the launching process parses.
#[derive(Debug, Serialize, Deserialize)]
struct Compared {
    library: String,
    comparisons: Vec<Comparison>,
}

/// A line of the report in JSON format.
#[derive(Serialize)]
struct Line<'a> {
    ranks: u32,
    #[serde(flatten)]
    comparison: &'a Comparison,
    violated: bool,
    /// The chosen algorithms of the calls on both sides; empty if the guideline is met.
    chosen: Vec<String>,
}

/// Runs a job for each number of ranks and prints the report.
pub fn run(options: &Options) -> Result<(), GuidelinesError> {
    let folder = own_library(options).map_err(GuidelinesError::NoOwnLibrary)?;
    let ours = Installation::at(&folder).map_err(GuidelinesError::Launcher)?;
    for ranks in rank_counts(options.ranks()) {
        progress(&format!("{ranks} ranks: {} guidelines", GUIDELINES.len()));
        let outcome = ours.explained(
            ranks,
            &options.our_arg,
            &arguments(options),
            options.timeout,
        );
        progress("");
        let (compared, explained) = outcome.map_err(GuidelinesError::Launcher)?;
        let choices = Choices::read(&explained);
        let text = match options.json {
            true => json(ranks, &compared, &choices),
            false => text(ranks, &compared, &choices),
        };
        output::say(&text).map_err(GuidelinesError::Output)?;
    }
    Ok(())
}

/// Returns the command-line arguments of the ranks.
fn arguments(options: &Options) -> Vec<String> {
    let mut arguments = vec!["compare".to_owned()];
    let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    let sizes = options.sizes.clone();
    option("--sizes", sizes.unwrap_or_else(default_sizes).to_string());
    option("--rounds", options.rounds.to_string());
    if let Some(iterations) = options.iterations {
        option("--iterations", iterations.to_string());
    }
    let seconds = |length: std::time::Duration| length.as_secs_f64().to_string();
    option("--max-seconds", seconds(options.max_seconds));
    option("--settle", seconds(options.settle));
    arguments
}

fn default_sizes() -> Sizes {
    Sizes(powers_of_two(8, 1 << 20).0.into_iter().step_by(2).collect())
}

/// Runs all comparisons as one rank of a job; rank 0 prints the times.
pub fn compare(options: &Options, world: &World<'_>) -> Result<(), MpiError> {
    pace::keep_busy(world, options.settle)?;
    let ranks = usize::try_from(world.size()).unwrap_or(1);
    let mut sizes = options.sizes.clone().unwrap_or_else(default_sizes).0;
    sizes.retain(|size| size.saturating_mul(ranks) <= MOST_BYTES);
    let mut comparisons = Vec::new();
    for (index, size) in sizes.iter().enumerate() {
        let next = sizes.get(index + 1).copied();
        let mut memory = Memory::new(world, next.unwrap_or(*size).max(*size));
        for guideline in &GUIDELINES {
            let Some(sides) = guideline.sides(*size, next, ranks) else {
                continue;
            };
            let [left, right] = times(options, world, &mut memory, sides)?;
            comparisons.push(Comparison {
                guideline: guideline.to_string(),
                size: *size,
                left,
                right,
            });
        }
    }
    if world.rank() == 0 {
        let compared = Compared {
            library: world.version(),
            comparisons,
        };
        // The conversion of strings and numbers to JSON cannot fail.
        let line = serde_json::to_string(&compared).unwrap_or_default() + "\n";
        // If the launching process does not get the line, it reports that there are no figures.
        let _ = output::say(&line);
    }
    Ok(())
}

/// Measures both sides alternately; returns the medians, which are the same on every rank.
fn times(
    options: &Options,
    world: &World<'_>,
    memory: &mut Memory,
    sides: [Vec<(Call, usize)>; 2],
) -> Result<[f64; 2], MpiError> {
    /// The number of iterations in one round.
    const ITERATIONS: u64 = 20;
    let turns = options.rounds.max(LEAST_TURNS);
    let pace = Pace {
        warmup: 3,
        iterations: options.iterations.unwrap_or(ITERATIONS),
        budget: options.max_seconds / (8 * turns),
    };
    let mut iterations = [0; 2];
    for (side, iterations) in sides.iter().zip(&mut iterations) {
        *iterations = pace.settle(world, |n| {
            (0..n).try_for_each(|_| memory.run(world, side).and_then(|()| world.barrier()))
        })?;
    }
    let mut all = [const { Vec::new() }; 2];
    for _ in 0..turns {
        for ((side, iterations), all) in sides.iter().zip(iterations).zip(&mut all) {
            let mut took = std::time::Duration::ZERO;
            for _ in 0..iterations {
                let begin = std::time::Instant::now();
                memory.run(world, side)?;
                took += begin.elapsed();
                world.barrier()?;
            }
            let micros = took.as_secs_f64() * 1e6 / iterations as f64;
            all.push(world.collectives().combine(micros, Combine::Max)?);
        }
    }
    Ok(all.map(|all| median(&all).unwrap_or_default()))
}

fn text(ranks: u32, compared: &Compared, choices: &Choices) -> String {
    let Compared {
        library,
        comparisons,
    } = compared;
    let violated: Vec<&Comparison> = comparisons.iter().filter(|c| c.is_violated()).collect();
    let mut text = format!(
        "# mpi-bench guidelines, {ranks} ranks, {library}: {} of {} violated by more than a tenth\n",
        violated.len(),
        comparisons.len()
    );
    for comparison in violated {
        let Comparison {
            guideline,
            size,
            left,
            right,
        } = comparison;
        text += &format!(
            "{guideline}: {size} bytes, {} us > {} us ({:.2})\n",
            number(*left),
            number(*right),
            left / right
        );
        for line in chosen(comparison, choices) {
            text += &format!("    {line}\n");
        }
    }
    text
}

fn json(ranks: u32, compared: &Compared, choices: &Choices) -> String {
    let lines = compared.comparisons.iter().map(|comparison| {
        let violated = comparison.is_violated();
        let line = Line {
            ranks,
            comparison,
            violated,
            chosen: match violated {
                true => chosen(comparison, choices),
                false => Vec::new(),
            },
        };
        // The conversion of strings and numbers to JSON cannot fail.
        serde_json::to_string(&line).unwrap_or_default() + "\n"
    });
    lines.collect()
}

/// Returns the chosen algorithms of both sides, one line for each call.
fn chosen(comparison: &Comparison, choices: &Choices) -> Vec<String> {
    let guideline = GUIDELINES
        .iter()
        .find(|guideline| guideline.to_string() == comparison.guideline);
    let calls = guideline.map(Guideline::calls).unwrap_or_default();
    let lines = calls.iter().map(|call| choices.of(*call));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(left: f64, right: f64) -> Compared {
        Compared {
            library: "X".into(),
            comparisons: vec![Comparison {
                guideline: GUIDELINES[0].to_string(),
                size: 4096,
                left,
                right,
            }],
        }
    }

    const EXPLAINED: &str = "\
explain: coll on MPI_COMM_WORLD: shm, then tuned for bcast, reduce, allreduce
explain: coll on MPI_COMM_WORLD: shm does bcast by cells; reduce by a tree; allreduce by cells
explain: coll on MPI_COMM_WORLD: tuned does bcast by binomial; allreduce by ring";

    #[test]
    fn a_violated_guideline_is_printed_with_the_choices_of_both_sides() {
        let text = text(4, &compared(3.0, 2.0), &Choices::read(EXPLAINED));
        assert_eq!(
            text,
            "# mpi-bench guidelines, 4 ranks, X: 1 of 1 violated by more than a tenth\n\
             allreduce <= reduce + bcast: 4096 bytes, 3.000 us > 2.000 us (1.50)\n    \
             allreduce: shm by cells, then tuned by ring\n    \
             reduce: shm by a tree, then tuned\n    \
             bcast: shm by cells, then tuned by binomial\n"
        );
    }

    #[test]
    fn a_side_that_is_slower_by_less_than_a_tenth_is_no_violation() {
        let text = text(2, &compared(2.1, 2.0), &Choices::read(""));
        assert_eq!(
            text,
            "# mpi-bench guidelines, 2 ranks, X: 0 of 1 violated by more than a tenth\n"
        );
    }

    #[test]
    fn a_line_of_json_has_both_times() {
        let line = json(4, &compared(3.0, 2.0), &Choices::read(EXPLAINED));
        let line: serde_json::Value = serde_json::from_str(&line).expect("a line");
        assert_eq!(line["left"], 3.0);
        assert_eq!(line["violated"], true);
        assert_eq!(line["chosen"].as_array().map(Vec::len), Some(3));
    }
}
