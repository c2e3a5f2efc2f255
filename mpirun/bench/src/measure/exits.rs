//! Exit skew of `MPI_Barrier`: the time from the first rank's exit to the last rank's exit.
//!
//! Each rank computes for a random time before each barrier, so the last rank to arrive varies.
//! Ranks on one host share a clock. For other hosts, rank 0 reads each clock before and after the
//! barriers, as ReproMPI does. The last row states the maximum error of a clock difference.

use mpi_base::clock::now_ns;
use mpi_base::random::SplitMix64;
use mpi_report::exit_skew::ExitSkew;
use mpi_report::trace::clock::{Clock, Reading};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use crate::mpi::{Combine, MpiError, World};
use crate::pace::Pace;
use crate::row::Row;

/// The names of the rows; a row's `size` is the index of its name.
pub const ROWS: &[&str] = &["median", "90 %", "99 %", "largest", "clocks, +-"];

/// The maximum time in nanoseconds for which a rank computes before a barrier.
const WORK_NS: u64 = 10_000;

/// The number of times that rank 0 reads the clock of each other rank in succession.
const QUESTIONS: u32 = 64;

const TAG: i32 = 9;

/// Measures the distribution of the exit skew; every rank gets the same rows.
/// With `estimate`, clocks are read by messages although all ranks share one clock.
pub fn rows(world: &World<'_>, pace: Pace, estimate: bool) -> Result<Vec<Row>, MpiError> {
    let mut random = SplitMix64(u64::try_from(world.rank()).unwrap_or(0) + 1);
    let mut computed_barrier = || {
        let work = Duration::from_nanos(random.below(WORK_NS));
        let begin = Instant::now();
        while begin.elapsed() < work {
            std::hint::spin_loop();
        }
        world.barrier()
    };
    let iterations = pace.settle(world, |n| (0..n).try_for_each(|_| computed_barrier()))?;
    let is_estimated = estimate || !have_one_clock(world)?;
    let mut clocks = vec![Clock::default(); usize::try_from(world.size()).unwrap_or(1)];
    if is_estimated {
        compare(world, &mut clocks)?;
    }
    let mut own = Vec::with_capacity(usize::try_from(iterations).unwrap_or(0));
    for _ in 0..iterations {
        computed_barrier()?;
        own.push(now_ns());
    }
    if is_estimated {
        compare(world, &mut clocks)?;
    }
    let skew = gathered(world, &own)?.and_then(|mut exits| {
        for (exits, clock) in exits.iter_mut().zip(&clocks) {
            exits.iter_mut().for_each(|at| *at = clock.ours(*at));
        }
        let errors: Vec<u64> = clocks.iter().filter_map(Clock::precision).collect();
        ExitSkew::of(&exits, &errors)
    });
    let figures = skew.map_or([0; 5], |skew| {
        [skew.median, skew.p90, skew.p99, skew.max, skew.uncertainty]
    });
    let row = |(size, figure)| {
        Ok(Row {
            size,
            avg: world.bcast_number(figure)? as f64 / 1e3,
            iterations,
            ..Row::default()
        })
    };
    figures.into_iter().enumerate().map(row).collect()
}

/// Returns true if all ranks have the same monotonic clock: the same boot and time namespace.
fn have_one_clock(world: &World<'_>) -> Result<bool, MpiError> {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::metadata("/proc/self/ns/time").map_or(0, |about| about.ino());
    let own = boot.iter().fold(namespace, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    let is_known = !boot.is_empty() && world.bcast_number(own)? == own;
    let vote = if is_known { 1.0 } else { 0.0 };
    Ok(world.collectives().combine(vote, Combine::Min)? > 0.5)
}

/// Reads the clocks of all other ranks from rank 0, one rank after the other.
fn compare(world: &World<'_>, clocks: &mut [Clock]) -> Result<(), MpiError> {
    let mut word = [0; 8];
    if world.rank() == 0 {
        for (rank, clock) in (0..).zip(clocks).skip(1) {
            clock.begin();
            for _ in 0..QUESTIONS {
                let asked = now_ns();
                world.send(&word, rank, TAG)?;
                world.recv(&mut word, rank, TAG)?;
                clock.read(Reading::between(asked, now_ns(), u64::from_ne_bytes(word)));
            }
        }
    } else {
        for _ in 0..QUESTIONS {
            world.recv(&mut word, 0, TAG)?;
            world.send(&now_ns().to_ne_bytes(), 0, TAG)?;
        }
    }
    world.barrier()
}

/// Gathers the exit times of all ranks at rank 0.
fn gathered(world: &World<'_>, own: &[u64]) -> Result<Option<Vec<Vec<u64>>>, MpiError> {
    let bytes: Vec<u8> = own.iter().flat_map(|at| at.to_ne_bytes()).collect();
    let ranks = usize::try_from(world.size()).unwrap_or(1);
    let mut all = vec![0; bytes.len() * ranks];
    world.collectives().gather(&bytes, &mut all)?;
    let numbers = |bytes: &[u8]| {
        let words = bytes.as_chunks::<8>().0;
        words.iter().copied().map(u64::from_ne_bytes).collect()
    };
    Ok((world.rank() == 0).then(|| all.chunks(bytes.len().max(1)).map(numbers).collect()))
}
