//! All ranks together: `osu_barrier`, `osu_allreduce`, `osu_bcast` and `osu_init`.
//!
//! As in the OSU loops each call is timed by itself and a barrier follows that is not timed, so that one operation's stragglers are not charged to the next.
//! A rank's figure is its average over the iterations; the table shows average, smallest and largest over the ranks.

use std::time::{Duration, Instant};

use crate::buffer::Buffer;
use crate::measure::Row;
use crate::mpi::{Combine, MpiError, World};
use crate::pace::Pace;

/// `ranks` is printed as the row's size.
pub fn barrier(world: &World<'_>, ranks: usize, pace: Pace) -> Result<Row, MpiError> {
    // Barriers follow each other directly: a second one between them would be measured with it.
    let iterations = pace.settle(world, |n| (0..n).try_for_each(|_| world.barrier()))?;
    let begin = Instant::now();
    for _ in 0..iterations {
        world.barrier()?;
    }
    spread(world, ranks, iterations, begin.elapsed())
}

/// Sum of floats, as many as fit into `size` bytes.
pub fn allreduce(world: &World<'_>, size: usize, pace: Pace) -> Result<Row, MpiError> {
    let sent = Buffer::new(size, 0);
    let mut received = Buffer::new(size, 0);
    separated(world, size, pace, || {
        world.allreduce_floats(sent.bytes(), received.bytes_mut())
    })
}

/// From rank 0.
pub fn bcast(world: &World<'_>, size: usize, pace: Pace) -> Result<Row, MpiError> {
    let mut data = Buffer::new(size, b'a');
    separated(world, size, pace, || world.bcast(data.bytes_mut(), 0))
}

/// What `MPI_Init` took, in milliseconds.
pub fn start(world: &World<'_>, ranks: usize, took: Duration) -> Result<Row, MpiError> {
    // `spread` answers in microseconds for one iteration; a thousand "iterations" make it milliseconds.
    let row = spread(world, ranks, 1_000, took)?;
    Ok(Row {
        iterations: 1,
        ..row
    })
}

/// Each operation timed by itself, with a barrier after it.
fn separated(
    world: &World<'_>,
    size: usize,
    pace: Pace,
    mut operation: impl FnMut() -> Result<(), MpiError>,
) -> Result<Row, MpiError> {
    let iterations = pace.settle(world, |n| {
        for _ in 0..n {
            operation()?;
            world.barrier()?;
        }
        Ok(())
    })?;
    let mut took = Duration::ZERO;
    for _ in 0..iterations {
        let begin = Instant::now();
        operation()?;
        took += begin.elapsed();
        world.barrier()?;
    }
    spread(world, size, iterations, took)
}

/// The ranks' averages, in microseconds.
fn spread(
    world: &World<'_>,
    size: usize,
    iterations: u64,
    took: Duration,
) -> Result<Row, MpiError> {
    let micros = took.as_secs_f64() * 1e6 / iterations as f64;
    Ok(Row {
        size,
        avg: world.combine(micros, Combine::Sum)? / f64::from(world.size()),
        min: Some(world.combine(micros, Combine::Min)?),
        max: Some(world.combine(micros, Combine::Max)?),
        iterations,
    })
}
