//! Collectives (`osu_barrier`, `osu_allreduce` and others), nonblocking forms, and `osu_init`.
//!
//! As in the OSU loops each call is timed separately and followed by an untimed barrier.
//! So the late ranks of one operation do not delay the next operation.
//! The figure of a rank is the rank's average over the iterations.
//! The table shows the average, minimum and maximum over the ranks.

use std::time::{Duration, Instant};

use crate::buffer::Buffer;
use crate::measure::bare::Bare;
use crate::mpi::{Collectives, Combine, MpiError, World};
use crate::pace::Pace;
use crate::row::Row;

/// Times operations of all ranks back to back; `ranks` becomes the row's size.
///
/// Used for operations that synchronise all ranks: an additional barrier would add to the figure.
pub fn in_a_row<'w>(
    world: &'w World<'w>,
    ranks: usize,
    pace: Pace,
    operation: fn(&Collectives<'w>) -> Result<(), MpiError>,
) -> Result<Row, MpiError> {
    beside(world, ranks, pace, operation, None)
}

/// Times `MPI_Barrier`, and the barrier without MPI for comparison.
pub fn barrier(world: &World<'_>, ranks: usize, pace: Pace) -> Result<Row, MpiError> {
    beside(world, ranks, pace, Collectives::barrier, Bare::new(world)?)
}

/// Times an operation, and the barrier without MPI in two halves: before and after the operation.
/// So a migration of a rank to another core affects both figures alike.
fn beside<'w>(
    world: &'w World<'w>,
    ranks: usize,
    pace: Pace,
    operation: fn(&Collectives<'w>) -> Result<(), MpiError>,
    mut bare: Option<Bare>,
) -> Result<Row, MpiError> {
    let all = world.collectives();
    let iterations = pace.settle(world, |n| (0..n).try_for_each(|_| operation(&all)))?;
    let half = iterations.div_ceil(2);
    let mut run_bare = || bare.as_mut().map(|bare| bare.run(half));
    let before = run_bare();
    let begin = Instant::now();
    for _ in 0..iterations {
        operation(&all)?;
    }
    let took = begin.elapsed();
    let after = run_bare();
    let row = spread(world, ranks, iterations, took)?;
    let bare = match before.zip(after) {
        Some((before, after)) => Some(spread(world, ranks, 2 * half, before + after)?.avg),
        None => None,
    };
    Ok(Row { bare, ..row })
}

/// Times a broadcast from rank 0.
pub fn bcast<'w>(
    world: &'w World<'w>,
    operation: fn(&Collectives<'w>, &mut [u8], i32) -> Result<(), MpiError>,
    size: usize,
    pace: Pace,
) -> Result<Row, MpiError> {
    let (all, mut data) = (world.collectives(), Buffer::new(size, b'a'));
    separated(world, size, pace, || operation(&all, data.bytes_mut(), 0))
}

/// A collective that sends blocks of one buffer and receives blocks into another.
type Blocks<'w> = fn(&Collectives<'w>, &[u8], &mut [u8]) -> Result<(), MpiError>;

/// The number of blocks in a buffer of a collective.
#[derive(Clone, Copy)]
pub enum BlockCount {
    One,
    OneForEachRank,
}

impl BlockCount {
    fn bytes(self, world: &World<'_>, size: usize) -> usize {
        match self {
            BlockCount::One => size,
            BlockCount::OneForEachRank => size * usize::try_from(world.size()).unwrap_or(1),
        }
    }
}

/// Times a collective that reads one buffer and writes another.
pub fn blocks<'w>(
    world: &'w World<'w>,
    operation: Blocks<'w>,
    (sent, received): (BlockCount, BlockCount),
    size: usize,
    pace: Pace,
) -> Result<Row, MpiError> {
    let all = world.collectives();
    let sent = Buffer::new(sent.bytes(world, size), 1);
    let mut received = Buffer::new(received.bytes(world, size), 0);
    separated(world, size, pace, || {
        operation(&all, sent.bytes(), received.bytes_mut())
    })
}

/// Measures the overlap of a nonblocking sum with computation in percent, as `osu_iallreduce`.
/// The computation takes as long as the sum alone.
pub fn overlap(world: &World<'_>, size: usize, pace: Pace) -> Result<Row, MpiError> {
    let sent = Buffer::new(size, 1);
    let mut received = Buffer::new(size, 0);
    let mut sum = |compute: Duration| {
        separated(world, size, pace, || {
            let begin = Instant::now();
            world
                .collectives()
                .allreduce_while(sent.bytes(), received.bytes_mut(), || {
                    begin.elapsed() >= compute
                })
        })
    };
    let alone = sum(Duration::ZERO)?;
    let compute = Duration::from_secs_f64(alone.avg / 1e6);
    let both = sum(compute)?;
    let hidden = 100.0 * (1.0 - (both.avg - alone.avg) / alone.avg);
    Ok(Row {
        avg: hidden.clamp(0.0, 100.0),
        min: None,
        max: None,
        ..both
    })
}

/// Returns the row for the time of `MPI_Init`, in milliseconds.
pub fn start(world: &World<'_>, ranks: usize, took: Duration) -> Result<Row, MpiError> {
    across(world, ranks, took.as_secs_f64() * 1e3)
}

/// Times each operation separately, with an untimed barrier after each.
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

/// Returns the row for the ranks' averages, in microseconds.
fn spread(
    world: &World<'_>,
    size: usize,
    iterations: u64,
    took: Duration,
) -> Result<Row, MpiError> {
    let micros = took.as_secs_f64() * 1e6 / iterations as f64;
    Ok(Row {
        iterations,
        ..across(world, size, micros)?
    })
}

/// Combines one figure of each rank to a row.
pub fn across(world: &World<'_>, size: usize, figure: f64) -> Result<Row, MpiError> {
    Ok(Row {
        size,
        avg: world.collectives().combine(figure, Combine::Sum)? / f64::from(world.size()),
        min: Some(world.collectives().combine(figure, Combine::Min)?),
        max: Some(world.collectives().combine(figure, Combine::Max)?),
        iterations: 1,
        bare: None,
    })
}
