//! Measurement of each benchmark: its loop, sizes and iterations.

mod bare;
pub mod beside;
mod collective;
pub mod error;
pub mod exits;
mod farm;
mod files;
pub mod first;
mod memory;
mod pairs;
mod point_to_point;
mod queues;
mod typed;
mod windows;

use std::time::Duration;

use crate::benchmark::Benchmark;
use crate::cli::Options;
use crate::measure::error::MeasureError;
use crate::mpi::{Access, Collectives, MpiError, World};
use crate::pace::{self, Pace};
use crate::row::Row;
use crate::sizes::{Sizes, powers_of_two};

/// The size in bytes above which the OSU benchmarks use fewer iterations.
const LARGE: usize = 8192;

/// Runs the benchmark; every rank gets the same rows.
/// `init` is the time of `MPI_Init` on this rank.
pub fn run(options: &Options, world: &World<'_>, init: Duration) -> Result<Vec<Row>, MeasureError> {
    let benchmark = options.benchmark;
    if benchmark.is_pairwise() && world.size() != 2 {
        return Err(MeasureError::Ranks {
            benchmark,
            needed: 2,
            given: world.size(),
        });
    }
    if benchmark.is_in_pairs() && world.size() % 2 != 0 {
        return Err(MeasureError::Odd {
            benchmark,
            given: world.size(),
        });
    }
    if benchmark == Benchmark::Threads && !world.has_threads() {
        return Err(MeasureError::Threads);
    }
    if benchmark == Benchmark::First {
        return Ok(first::rows(&options.files, world)?);
    }
    if matches!(
        benchmark,
        Benchmark::Beside | Benchmark::Farm | Benchmark::ExitSkew
    ) && world.size() < 2
    {
        return Err(MeasureError::Alone { benchmark });
    }
    if benchmark == Benchmark::ExitSkew {
        pace::keep_busy(world, options.settle)?;
        let pace = pace(options, 0);
        return Ok(exits::rows(world, pace, options.estimate_clocks)?);
    }
    let sizes = match benchmark {
        Benchmark::Beside => Sizes((0..beside::ROWS.len()).collect()),
        Benchmark::Barrier
        | Benchmark::Ibarrier
        | Benchmark::Dup
        | Benchmark::Open
        | Benchmark::Init
        | Benchmark::Launch
        | Benchmark::Memory
        | Benchmark::LauncherMemory
        | Benchmark::Lock
        | Benchmark::LockAll
        | Benchmark::Flush
        | Benchmark::Fence
        | Benchmark::Pscw
        | Benchmark::Counter => Sizes(vec![usize::try_from(world.size()).unwrap_or(0)]),
        _ => options
            .sizes
            .clone()
            .unwrap_or_else(|| default_sizes(options)),
    };
    if benchmark.is_of_loops() {
        pace::keep_busy(world, options.settle)?;
    }
    sizes
        .0
        .into_iter()
        .map(|size| {
            let pace = pace(options, size);
            match benchmark {
                Benchmark::Io => files::row(&options.files, world, size, pace),
                Benchmark::Open => files::open(&options.files, world, size, pace),
                _ => measure(options, world, size, pace, init).map_err(MeasureError::from),
            }
        })
        .collect()
}

fn measure(
    options: &Options,
    world: &World<'_>,
    size: usize,
    pace: Pace,
    init: Duration,
) -> Result<Row, MpiError> {
    use Benchmark as B;
    use collective::BlockCount::{One, OneForEachRank as Each};
    let buffers = options.buffers;
    let (kind, how) = (options.window, (options.window, options.sync));
    match options.benchmark {
        B::Latency => point_to_point::latency(world, size, pace),
        B::Bw => point_to_point::bandwidth(world, buffers, size, pace),
        B::Bibw => point_to_point::bidirectional(world, buffers, size, pace),
        B::Rate => pairs::rate(world, buffers, size, pace),
        B::Multilat => pairs::latency(world, size, pace),
        B::Threads => pairs::threads(world, size, pace),
        B::Posted => queues::posted(world, size, pace),
        B::Unexpected => queues::unexpected(world, size, pace),
        B::Column => typed::latency(world, World::column, size, pace),
        B::Face => typed::latency(world, World::face, size, pace),
        B::Indexed => typed::latency(world, World::indexed, size, pace),
        B::Arrays => typed::latency(world, World::arrays, size, pace),
        B::Barrier => collective::barrier(world, size, pace),
        B::Dup => collective::in_a_row(world, size, pace, Collectives::dup_and_free),
        B::Bcast => collective::bcast(world, Collectives::bcast, size, pace),
        B::Allreduce => {
            collective::blocks(world, Collectives::allreduce_floats, (One, One), size, pace)
        }
        B::Reduce => collective::blocks(world, Collectives::reduce_floats, (One, One), size, pace),
        B::Scan => collective::blocks(world, Collectives::scan_floats, (One, One), size, pace),
        B::Exscan => collective::blocks(world, Collectives::exscan_floats, (One, One), size, pace),
        B::ReduceScatter => collective::blocks(
            world,
            Collectives::reduce_scatter_floats,
            (Each, One),
            size,
            pace,
        ),
        B::Gather => collective::blocks(world, Collectives::gather, (One, Each), size, pace),
        B::Scatter => collective::blocks(world, Collectives::scatter, (Each, One), size, pace),
        B::Allgather => collective::blocks(world, Collectives::allgather, (One, Each), size, pace),
        B::Alltoall => collective::blocks(world, Collectives::alltoall, (Each, Each), size, pace),
        B::Ibarrier => collective::in_a_row(world, size, pace, Collectives::ibarrier),
        B::Ibcast => collective::bcast(world, Collectives::ibcast, size, pace),
        B::Ireduce => {
            collective::blocks(world, Collectives::ireduce_floats, (One, One), size, pace)
        }
        B::Iallreduce => collective::blocks(
            world,
            Collectives::iallreduce_floats,
            (One, One),
            size,
            pace,
        ),
        B::Iallgather => {
            collective::blocks(world, Collectives::iallgather, (One, Each), size, pace)
        }
        B::Ialltoall => collective::blocks(world, Collectives::ialltoall, (Each, Each), size, pace),
        B::Overlap => collective::overlap(world, size, pace),
        B::Put => windows::latency(world, how, Access::Put, size, pace),
        B::Get => windows::latency(world, how, Access::Get, size, pace),
        B::Acc => windows::latency(world, how, Access::Accumulate, size, pace),
        B::GetAcc => windows::latency(world, how, Access::GetAccumulate, size, pace),
        B::Fop => windows::latency(world, how, Access::FetchAndOp, size, pace),
        B::Cas => windows::latency(world, how, Access::CompareAndSwap, size, pace),
        B::PutBw => windows::bandwidth(world, kind, Access::Put, false, size, pace),
        B::GetBw => windows::bandwidth(world, kind, Access::Get, false, size, pace),
        B::PutBibw => windows::bandwidth(world, kind, Access::Put, true, size, pace),
        B::Lock => windows::alone(world, kind, false, pace, windows::lock_and_put),
        B::LockAll => windows::alone(world, kind, false, pace, windows::lock_all),
        B::Flush => windows::alone(world, kind, true, pace, windows::flush),
        B::Fence => windows::together(world, kind, false, pace, windows::fence),
        B::Pscw => windows::together(world, kind, false, pace, windows::epoch),
        B::Counter => windows::together(world, kind, true, pace, windows::count),
        // Only `Init` is measured here: `Launch` runs a program without MPI.
        // The other benchmarks have their own functions.
        B::Init | B::Launch | B::Io | B::Open | B::First | B::ExitSkew => {
            collective::start(world, size, init)
        }
        B::Beside => beside::row(world, size, pace),
        B::Farm => farm::row(world, size, pace),
        B::Memory => memory::of_ranks(world, size),
        B::LauncherMemory => memory::of_launcher(world, size),
    }
}

fn default_sizes(options: &Options) -> Sizes {
    use Benchmark as B;
    match options.benchmark {
        B::Io => files::default_sizes(options.files.pattern),
        B::Latency | B::Bw | B::Bibw => powers_of_two(1, 4 << 20),
        B::Rate | B::Multilat | B::Fop | B::Cas => powers_of_two(8, 8),
        B::Put | B::Get | B::PutBw | B::GetBw | B::PutBibw => powers_of_two(1, 4 << 20),
        B::Acc | B::GetAcc => powers_of_two(8, 1 << 20),
        B::Threads => powers_of_two(1, 8),
        B::Farm => Sizes(vec![50, 200, 1_000, 10_000]),
        B::Posted | B::Unexpected => Sizes(vec![1, 10, 100, 1_000, 10_000]),
        B::Column | B::Face | B::Indexed | B::Arrays => powers_of_two(64, 256 << 10),
        B::Bcast | B::Ibcast => powers_of_two(1, 1 << 20),
        _ => powers_of_two(4, 1 << 20),
    }
}

/// Returns the OSU defaults for a size: the numbers of warm-up and of measured iterations.
fn defaults(benchmark: Benchmark, size: usize) -> (u64, u64) {
    use Benchmark as B;
    let (small, large) = match benchmark {
        // An access takes about 1/100 of the time of a message.
        b if b.is_access() || matches!(b, B::Lock | B::LockAll | B::Flush) => {
            ((1_000, 100_000), (10, 1_000))
        }
        B::Io => ((2, 50), (1, 20)),
        B::ExitSkew => ((100, 10_000), (100, 10_000)),
        // The time limit of a row determines the number of iterations.
        B::Beside => ((10, 1_000_000), (10, 1_000_000)),
        b if b.is_windowed() => ((10, 100), (2, 20)),
        b if b.is_pairwise() || b == Benchmark::Multilat => ((100, 10_000), (10, 1_000)),
        _ => ((100, 1_000), (10, 100)),
    };
    let sized = !matches!(
        benchmark,
        B::Barrier
            | B::Ibarrier
            | B::Dup
            | B::Open
            | B::Init
            | B::Launch
            | B::Posted
            | B::Unexpected
            | B::Threads
    ) && !benchmark.is_of_windows();
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
