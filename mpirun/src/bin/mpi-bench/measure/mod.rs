//! The measurements: which loop a benchmark runs, over which sizes, how often.

mod collective;
mod point_to_point;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cli::{Benchmark, Options, Sizes, powers_of_two};
use crate::mpi::{MpiError, World};
use crate::pace::Pace;

/// Above this a message counts as large and is sent less often, as in the OSU benchmarks.
const LARGE: usize = 8192;

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Bytes, or ranks for `barrier` and `init`.
    pub size: usize,
    /// Microseconds, MB/s for the bandwidths, milliseconds for `init`.
    pub avg: f64,
    /// Fastest and slowest rank, where ranks can differ.
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub iterations: u64,
}

/// Why nothing could be measured.
#[derive(Debug)]
pub enum MeasureError {
    /// The loop is defined for another number of ranks.
    Ranks {
        benchmark: Benchmark,
        needed: i32,
        given: i32,
    },
    /// The library refused.
    Mpi(MpiError),
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ranks {
                benchmark,
                needed,
                given,
            } => write!(
                f,
                "{} measures between exactly {needed} ranks, this job has {given}",
                benchmark.name()
            ),
            Self::Mpi(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MeasureError {}

impl From<MpiError> for MeasureError {
    fn from(error: MpiError) -> Self {
        Self::Mpi(error)
    }
}

/// Runs the benchmark; every rank gets the same rows. `init` is what `MPI_Init` took on this rank.
pub fn run(options: &Options, world: &World<'_>, init: Duration) -> Result<Vec<Row>, MeasureError> {
    let benchmark = options.benchmark;
    let pairwise = matches!(
        benchmark,
        Benchmark::Latency | Benchmark::Bw | Benchmark::Bibw
    );
    if pairwise && world.size() != 2 {
        return Err(MeasureError::Ranks {
            benchmark,
            needed: 2,
            given: world.size(),
        });
    }
    let sizes = match benchmark {
        Benchmark::Barrier | Benchmark::Init => {
            Sizes(vec![usize::try_from(world.size()).unwrap_or(0)])
        }
        _ => options
            .sizes
            .clone()
            .unwrap_or_else(|| default_sizes(benchmark)),
    };
    sizes
        .0
        .into_iter()
        .map(|size| {
            let pace = pace(options, size);
            match benchmark {
                Benchmark::Latency => point_to_point::latency(world, size, pace),
                Benchmark::Bw => point_to_point::bandwidth(world, size, pace),
                Benchmark::Bibw => point_to_point::bidirectional(world, size, pace),
                Benchmark::Barrier => collective::barrier(world, size, pace),
                Benchmark::Allreduce => collective::allreduce(world, size, pace),
                Benchmark::Bcast => collective::bcast(world, size, pace),
                Benchmark::Init => collective::start(world, size, init),
            }
            .map_err(MeasureError::from)
        })
        .collect()
}

fn default_sizes(benchmark: Benchmark) -> Sizes {
    match benchmark {
        Benchmark::Allreduce => powers_of_two(4, 1 << 20),
        Benchmark::Bcast => powers_of_two(1, 1 << 20),
        _ => powers_of_two(1, 4 << 20),
    }
}

/// The OSU defaults: (warm-up, iterations) for small and for large messages.
fn defaults(benchmark: Benchmark, size: usize) -> (u64, u64) {
    let (small, large) = match benchmark {
        Benchmark::Latency => ((100, 10_000), (10, 1_000)),
        Benchmark::Bw | Benchmark::Bibw => ((10, 100), (2, 20)),
        _ => ((100, 1_000), (10, 100)),
    };
    let sized = !matches!(benchmark, Benchmark::Barrier | Benchmark::Init);
    if sized && size > LARGE { large } else { small }
}

fn pace(options: &Options, size: usize) -> Pace {
    let (warmup, iterations) = defaults(options.benchmark, size);
    Pace {
        warmup: options.warmup.unwrap_or(warmup),
        iterations: options.iterations.unwrap_or(iterations),
        budget: options.max_seconds,
    }
}
