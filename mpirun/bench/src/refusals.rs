//! Checks of a command line that the parser of options cannot make, before anything is measured:
//! each figure must be of what its row names.

use std::fmt;
use std::path::PathBuf;

use crate::benchmark::Benchmark;
use crate::cli::{Options, Pattern};

/// The largest number of threads of a rank in the benchmark `threads`.
const MOST_THREADS: usize = 1024;

/// The reason why a command line is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The benchmark transfers whole elements only.
    Element {
        benchmark: Benchmark,
        size: usize,
        element: usize,
    },
    /// The benchmark transfers exactly one element.
    OneElement {
        benchmark: Benchmark,
        size: usize,
        element: usize,
    },
    /// A row of this size has no figure.
    Size {
        what: &'static str,
        size: usize,
        smallest: usize,
        largest: usize,
    },
    /// The option has no effect on this task.
    Option {
        option: &'static str,
        task: String,
        wanted: &'static str,
    },
    /// The task compares operations between ranks.
    OneRank { task: &'static str },
    /// The folder of the benchmark's files does not exist.
    NoFolder { folder: PathBuf },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Element {
                benchmark,
                size,
                element,
            } => write!(
                f,
                "{} transfers whole elements of {element} bytes, and --sizes {size} is no multiple of {element}; the next one is {}",
                benchmark.name(),
                size.next_multiple_of(*element).max(*element)
            ),
            Self::OneElement {
                benchmark,
                size,
                element,
            } => write!(
                f,
                "{} transfers one element of {element} bytes, and --sizes has {size}",
                benchmark.name()
            ),
            Self::Size {
                what,
                size,
                smallest,
                largest,
            } => write!(
                f,
                "{what}, from {smallest} to {largest}, and --sizes has {size}"
            ),
            Self::Option {
                option,
                task,
                wanted,
            } => write!(f, "{option} has no effect on {task}; {wanted}"),
            Self::OneRank { task } => write!(
                f,
                "{task} measures operations between ranks: -n 2 or more is expected"
            ),
            Self::NoFolder { folder } => write!(
                f,
                "--directory {}: there is no such folder",
                folder.display()
            ),
        }
    }
}

impl std::error::Error for Refusal {}

/// Checks the options of a benchmark.
pub fn of_benchmark(options: &Options) -> Result<(), Refusal> {
    if options.output.is_some() {
        return Err(Refusal::Option {
            option: "--output",
            task: options.benchmark.name(),
            wanted: "only tune writes a file; redirect the standard output",
        });
    }
    if options.benchmark.has_files() && !options.files.directory.is_dir() {
        return Err(Refusal::NoFolder {
            folder: options.files.directory.clone(),
        });
    }
    let tile = options.benchmark == Benchmark::Io && options.files.pattern == Pattern::Tile;
    sizes(options, options.benchmark, tile)
}

/// Checks the options of `tune`, whose sizes are also those of reductions.
pub fn of_tune(options: &Options) -> Result<(), Refusal> {
    between_ranks("tune", options)?;
    no_json("tune", options)?;
    sizes(options, Benchmark::Allreduce, false)
}

/// Checks the options of `guidelines`, whose sizes are also those of reductions.
pub fn of_guidelines(options: &Options) -> Result<(), Refusal> {
    between_ranks("guidelines", options)?;
    sizes(options, Benchmark::Allreduce, false)
}

/// Checks the options of `endings`.
pub fn of_endings(options: &Options) -> Result<(), Refusal> {
    no_json("endings", options)
}

fn between_ranks(task: &'static str, options: &Options) -> Result<(), Refusal> {
    match options.ranks() {
        1 => Err(Refusal::OneRank { task }),
        _ => Ok(()),
    }
}

fn no_json(task: &'static str, options: &Options) -> Result<(), Refusal> {
    match options.json {
        true => Err(Refusal::Option {
            option: "--json",
            task: task.into(),
            wanted: "its output is a table",
        }),
        false => Ok(()),
    }
}

fn sizes(options: &Options, benchmark: Benchmark, tile: bool) -> Result<(), Refusal> {
    let sizes = options.sizes.iter().flat_map(|sizes| sizes.0.iter());
    for &size in sizes {
        if let Some(element) = benchmark.element() {
            let is_one = benchmark.is_of_one_element();
            if is_one && size != element {
                return Err(Refusal::OneElement {
                    benchmark,
                    size,
                    element,
                });
            }
            // A layout of no elements is measured as one of one element.
            let is_too_short = benchmark.is_of_layouts() && size < element;
            if is_too_short || size % element != 0 {
                return Err(Refusal::Element {
                    benchmark,
                    size,
                    element,
                });
            }
        }
        let (what, largest) = match benchmark {
            Benchmark::Threads => (
                "a size of threads is the number of threads of a rank",
                MOST_THREADS,
            ),
            Benchmark::Farm => (
                "a size of farm is the duration of a task in microseconds",
                i32::MAX as usize,
            ),
            _ if tile => (
                "a size of the pattern tile is the length of the tile's edge",
                i32::MAX as usize,
            ),
            _ => continue,
        };
        if !(1..=largest).contains(&size) {
            return Err(Refusal::Size {
                what,
                size,
                smallest: 1,
                largest,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn options(words: &str) -> Options {
        let words = std::iter::once("mpi-bench").chain(words.split(' '));
        Options::try_parse_from(words).unwrap()
    }

    /// A row that names 7 bytes, and measures 4 of them, is refused.
    #[test]
    fn sizes_that_are_not_measured_as_they_are_named_are_refused() {
        let refused = [
            "allreduce --sizes 7",
            "reduce --sizes 1:64",
            "overlap --sizes 4,6",
            "acc --sizes 4",
            "get-acc --sizes 8,12",
            "fop --sizes 16",
            "cas --sizes 0",
            "column --sizes 0",
            "indexed --sizes 12",
            "threads --sizes 0",
            "threads --sizes 100000",
            "farm --sizes 0,50",
            "io --pattern tile --sizes 0",
        ];
        for words in refused {
            let refusal = of_benchmark(&options(words)).unwrap_err().to_string();
            assert!(refusal.contains("--sizes"), "{words}: {refusal}");
        }
        let told = of_benchmark(&options("acc --sizes 5"))
            .unwrap_err()
            .to_string();
        assert_eq!(
            told,
            "acc transfers whole elements of 8 bytes, and --sizes 5 is no multiple of 8; the next one is 8"
        );
        let accepted = [
            "allreduce --sizes 0,4,8",
            "bcast --sizes 0,7",
            "latency --sizes 1:64",
            "acc --sizes 0,8",
            "fop --sizes 8",
            "column --sizes 8,64",
            "threads --sizes 1,2",
            "io --sizes 7",
            "allreduce",
        ];
        for words in accepted {
            assert_eq!(of_benchmark(&options(words)), Ok(()), "{words}");
        }
    }

    #[test]
    fn options_without_effect_are_refused() {
        let told = |outcome: Result<(), Refusal>| outcome.unwrap_err().to_string();
        assert!(told(of_benchmark(&options("latency -o FILE"))).contains("--output has no effect"));
        assert!(told(of_endings(&options("barrier --json"))).contains("--json has no effect"));
        assert!(told(of_tune(&options("barrier --json"))).contains("--json has no effect"));
        assert!(told(of_tune(&options("barrier -n 1"))).contains("-n 2 or more"));
        assert!(told(of_guidelines(&options("barrier -n 1"))).contains("-n 2 or more"));
        assert_eq!(of_tune(&options("barrier -o FILE -n 4")), Ok(()));
        let told = told(of_benchmark(&options("open --directory /no/such")));
        assert_eq!(told, "--directory /no/such: there is no such folder");
    }
}
