//! `mpi-bench tune`: measures every algorithm of every collective and writes a decision table.
//!
//! The decision table is for `coll_tuned_rules` on this machine.
//! The library runs under its own launcher, with `coll` = `tuned,basic` and one forced algorithm.
//! The algorithms alternate in rounds, and their medians over the rounds are compared.
//! A longer message keeps the algorithm of the shorter one unless another is 5 % faster.
//! Otherwise noise could become a rule.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use mpi_core::coll::{CallId, algorithms};

use crate::benchmark::Benchmark;
use crate::cli::Options;
use crate::find;
use crate::launcher::{Installation, RunError};
use crate::output::{self, OutputError};
use crate::sizes::powers_of_two;
use crate::versus::{benchmark_arguments, median, own_library, progress};

/// The collective calls to tune, each with the benchmark that measures the call.
const CALLS: [(Benchmark, CallId); 10] = [
    (Benchmark::Barrier, CallId::Barrier),
    (Benchmark::Bcast, CallId::Bcast),
    (Benchmark::Gather, CallId::Gather),
    (Benchmark::Scatter, CallId::Scatter),
    (Benchmark::Allgather, CallId::Allgather),
    (Benchmark::Alltoall, CallId::Alltoall),
    (Benchmark::Reduce, CallId::Reduce),
    (Benchmark::Allreduce, CallId::Allreduce),
    (Benchmark::ReduceScatter, CallId::ReduceScatterBlock),
    (Benchmark::Scan, CallId::Scan),
];

/// An algorithm replaces that of the next shorter size only below this fraction of its time.
const CLEARLY: f64 = 0.95;

/// The reason why no decision table was written.
#[derive(Debug)]
pub enum TuneError {
    NoOwnLibrary(find::NotFound),
    Launcher(RunError),
    Write {
        file: PathBuf,
        reason: std::io::Error,
    },
    Output(OutputError),
}

impl fmt::Display for TuneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOwnLibrary(error) => error.fmt(f),
            Self::Launcher(error) => error.fmt(f),
            Self::Output(error) => error.fmt(f),
            Self::Write { file, reason } => {
                write!(f, "cannot write the table {}: {reason}", file.display())
            }
        }
    }
}

impl std::error::Error for TuneError {}

/// A row of the decision table.
#[derive(Debug, PartialEq, Eq)]
struct Rule {
    call: CallId,
    ranks: u32,
    bytes: u64,
    /// Whether the ranks were oversubscribed during the measurement.
    shared: bool,
    algorithm: &'static str,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule {
            call,
            ranks,
            bytes,
            shared,
            algorithm,
        } = self;
        let cores = if *shared { "shared" } else { "any" };
        let call = call.name();
        write!(f, "{call:<24}{ranks:<8}{bytes:<10}{cores:<8}{algorithm}")
    }
}

/// Measures all calls and writes the decision table.
pub fn run(options: &Options) -> Result<(), TuneError> {
    let folder = own_library(options).map_err(TuneError::NoOwnLibrary)?;
    let ours = Installation::at(&folder).map_err(TuneError::Launcher)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!(
        "# Measured by mpi-bench tune on up to {} ranks and {cores} cores; of the rows that a call meets the last one counts.\n\
         # call                  ranks   bytes     cores   algorithm\n",
        options.ranks()
    );
    for ranks in rank_counts(options.ranks()) {
        for (benchmark, call) in CALLS {
            let figures = measure(options, &ours, ranks, benchmark, call);
            for rule in rules(call, ranks, ranks as usize > cores, &figures) {
                text += &format!("{rule}\n");
            }
        }
    }
    progress("");
    match &options.output {
        Some(file) => std::fs::write(file, &text).map_err(|reason| TuneError::Write {
            file: file.clone(),
            reason,
        }),
        None => output::say(&text).map_err(TuneError::Output),
    }
}

/// Returns 2, its doublings below `most`, and `most`.
pub fn rank_counts(most: u32) -> Vec<u32> {
    let mut counts: Vec<u32> = std::iter::successors(Some(2), |n: &u32| n.checked_mul(2))
        .take_while(|n| *n < most)
        .collect();
    counts.push(most);
    counts
}

/// The median time by size and algorithm; a failing algorithm is reported and omitted.
type Figures = BTreeMap<usize, Vec<(&'static str, f64)>>;

fn measure(
    options: &Options,
    ours: &Installation,
    ranks: u32,
    benchmark: Benchmark,
    call: CallId,
) -> Figures {
    let sizes = options.sizes.clone().unwrap_or(powers_of_two(4, 1 << 20));
    let job = Options {
        benchmark,
        ranks: Some(ranks),
        sizes: Some(sizes),
        ..options.clone()
    };
    let arguments = benchmark_arguments(&job);
    let mut times: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    let names: Vec<&'static str> = algorithms(call).collect();
    let mut failed = vec![false; names.len()];
    for round in 1..=options.rounds {
        for (which, name) in names.iter().enumerate().filter(|(_, _)| names.len() > 1) {
            progress(&format!(
                "{ranks} ranks, {call}, {name}: round {round} of {}",
                options.rounds
            ));
            if failed[which] {
                continue;
            }
            let forced = format!("coll_tuned_{}_algorithm", call.name());
            let mut extra = options.our_arg.clone();
            extra
                .extend(["--mca", "coll", "tuned,basic", "--mca", &forced, name].map(String::from));
            match ours.run_as_it_comes(ranks, &extra, &arguments, options.timeout) {
                Ok((report, _)) => {
                    for row in report.rows {
                        times.entry((row.size, which)).or_default().push(row.avg);
                    }
                }
                Err(error) => {
                    failed[which] = true;
                    // The error may contain a program's output.
                    printable::to_stderr(&format!(
                        "mpi-bench: not measured: {call} by {name} on {ranks} ranks: {error}\n"
                    ));
                }
            }
        }
    }
    let mut figures = Figures::new();
    for ((size, which), values) in times {
        if let (false, Some(time)) = (failed[which], median(&values)) {
            figures.entry(size).or_default().push((names[which], time));
        }
    }
    figures
}

/// Returns the rules for one call: one rule at each size at which the best algorithm changes.
fn rules(call: CallId, ranks: u32, shared: bool, figures: &Figures) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for (size, times) in figures {
        let Some((best, time)) = times.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else {
            continue;
        };
        let of = |name: &str| times.iter().find(|(n, _)| *n == name).map(|(_, t)| *t);
        let before = rules.last().and_then(|rule| of(rule.algorithm));
        if before.is_some_and(|before| *time >= before * CLEARLY) {
            continue;
        }
        // A rule's size is the whole input of a reduce-scatter; the benchmark's size is one block.
        let block = *size as u64;
        let bytes = match call {
            CallId::ReduceScatterBlock => block * u64::from(ranks),
            _ => block,
        };
        rules.push(Rule {
            call,
            ranks,
            bytes: if rules.is_empty() { 0 } else { bytes },
            shared,
            algorithm: best,
        });
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(rows: &[(usize, f64, f64)]) -> Figures {
        let row = |(size, a, b): &(usize, f64, f64)| (*size, vec![("ring", *a), ("linear", *b)]);
        rows.iter().map(row).collect()
    }

    #[test]
    fn a_rule_begins_where_another_algorithm_is_clearly_better() {
        let measured = figures(&[(8, 1.0, 2.0), (64, 2.0, 1.99), (512, 4.0, 3.0)]);
        let rules = rules(CallId::Allreduce, 4, true, &measured);
        let lines: Vec<String> = rules.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "allreduce               4       0         shared  ring",
                "allreduce               4       512       shared  linear"
            ]
        );
    }

    #[test]
    fn bytes_of_a_reduce_scatter_are_those_of_all_blocks() {
        let measured = figures(&[(8, 1.0, 2.0), (64, 2.0, 1.0)]);
        let rules = rules(CallId::ReduceScatterBlock, 4, false, &measured);
        assert_eq!(rules[1].bytes, 256);
    }

    #[test]
    fn ranks_double_up_to_the_number_asked_for() {
        assert_eq!(rank_counts(2), [2]);
        assert_eq!(rank_counts(6), [2, 4, 6]);
        assert_eq!(rank_counts(8), [2, 4, 8]);
    }
}
