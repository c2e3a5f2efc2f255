//! One-sided benchmarks, such as `osu_put_latency`: rank 0 accesses rank 1, or all access rank 0.

use std::time::Instant;

use super::collective::across;
use super::point_to_point::timed;
use crate::buffer::Buffer;
use crate::choices::{Sync, WindowKind};
use crate::mpi::{Access, MpiError, Window, World};
use crate::pace::Pace;
use crate::row::Row;

/// The number of accesses before each flush, as in `osu_put_bw`.
const WINDOW: usize = 64;

/// The minimum buffer size in bytes: the operand and the comparison value of compare-and-swap.
const SHORTEST: usize = 16;

/// Times one access and its completion, in microseconds.
pub fn latency(
    world: &World<'_>,
    (kind, sync): (WindowKind, Sync),
    access: Access,
    size: usize,
    pace: Pace,
) -> Result<Row, MpiError> {
    let window = world.window(kind, size.max(SHORTEST))?;
    let mut ours = Buffer::new(size.max(SHORTEST), 0);
    let mut result = Buffer::new(size.max(SHORTEST), 0);
    let first = world.rank() == 0;
    match sync {
        Sync::Flush => window.lock_all()?,
        Sync::Fence => window.fence()?,
        Sync::Lock | Sync::Pscw => {}
    }
    let target = first.then_some(1);
    let mut body = |n: u64| {
        let (ours, result) = (&mut ours.bytes_mut()[..], &mut result.bytes_mut()[..]);
        // Compare-and-swap reads its comparison value after the operand in the same buffer.
        let len = match access {
            Access::CompareAndSwap => ours.len(),
            _ => size,
        };
        let (ours, result) = (&mut ours[..len], &mut result[..len]);
        for _ in 0..n {
            match sync {
                Sync::Flush if first => window.access(access, ours, result, 1, 1)?,
                Sync::Lock if first => window.locked_access(access, ours, result, 1)?,
                Sync::Flush | Sync::Lock => {}
                Sync::Fence => window.fenced_access(access, ours, result, target)?,
                Sync::Pscw => window.posted_access(access, ours, result, target)?,
            }
        }
        Ok(())
    };
    let (iterations, took) = timed(world, pace, &mut body)?;
    if sync == Sync::Flush {
        window.unlock_all()?;
    }
    window.free()?;
    Ok(Row {
        size,
        avg: took.as_secs_f64() * 1e6 / iterations as f64,
        iterations,
        ..Row::default()
    })
}

/// Measures the bandwidth of groups of accesses in MB/s, with one flush for each group.
/// If `both`, ranks 0 and 1 access each other, and the figure is the sum of both directions.
pub fn bandwidth(
    world: &World<'_>,
    kind: WindowKind,
    access: Access,
    both: bool,
    size: usize,
    pace: Pace,
) -> Result<Row, MpiError> {
    let window = world.window(kind, size.max(SHORTEST))?;
    let mut ours = Buffer::new(size.max(SHORTEST), b'a');
    let mut result = Buffer::new(size.max(SHORTEST), 0);
    let acts = both || world.rank() == 0;
    let peer = 1 - world.rank();
    window.lock_all()?;
    let mut body = |n: u64| {
        for _ in 0..n {
            if acts {
                let (ours, result) = (ours.bytes_mut(), result.bytes_mut());
                window.access(access, &mut ours[..size], &mut result[..size], peer, WINDOW)?;
            }
        }
        // The time includes the completion of both directions.
        if both { world.barrier() } else { Ok(()) }
    };
    let (iterations, took) = timed(world, pace, &mut body)?;
    window.unlock_all()?;
    window.free()?;
    let directions = if both { 2.0 } else { 1.0 };
    let bytes = size as f64 * WINDOW as f64 * iterations as f64 * directions;
    Ok(Row {
        size,
        avg: bytes / 1e6 / took.as_secs_f64(),
        iterations,
        ..Row::default()
    })
}

/// Times an operation of rank 0 alone, in microseconds.
pub fn alone(
    world: &World<'_>,
    kind: WindowKind,
    inside: bool,
    pace: Pace,
    operation: fn(&Window<'_>) -> Result<(), MpiError>,
) -> Result<Row, MpiError> {
    let window = world.window(kind, SHORTEST)?;
    if inside {
        window.lock_all()?;
    }
    let mut body = |n: u64| match world.rank() {
        0 => (0..n).try_for_each(|_| operation(&window)),
        _ => Ok(()),
    };
    let (iterations, took) = timed(world, pace, &mut body)?;
    if inside {
        window.unlock_all()?;
    }
    window.free()?;
    Ok(Row {
        size: usize::try_from(world.size()).unwrap_or(0),
        avg: took.as_secs_f64() * 1e6 / iterations as f64,
        iterations,
        ..Row::default()
    })
}

/// Times an operation that all ranks execute at the same time, back to back, in microseconds.
pub fn together(
    world: &World<'_>,
    kind: WindowKind,
    inside: bool,
    pace: Pace,
    operation: fn(&Window<'_>) -> Result<(), MpiError>,
) -> Result<Row, MpiError> {
    let window = world.window(kind, SHORTEST)?;
    if inside {
        window.lock_all()?;
    }
    let mut body = |n: u64| (0..n).try_for_each(|_| operation(&window));
    let iterations = pace.settle(world, &mut body)?;
    world.barrier()?;
    let begin = Instant::now();
    body(iterations)?;
    // The slowest rank determines the time, since all ranks contend for the same target.
    world.barrier()?;
    let micros = begin.elapsed().as_secs_f64() * 1e6 / iterations as f64;
    if inside {
        window.unlock_all()?;
    }
    window.free()?;
    let ranks = usize::try_from(world.size()).unwrap_or(0);
    Ok(Row {
        iterations,
        ..across(world, ranks, micros)?
    })
}

/// Executes a lock, a put of 8 bytes, and an unlock.
pub fn lock_and_put(window: &Window<'_>) -> Result<(), MpiError> {
    window.locked_access(Access::Put, &mut [1; 8], &mut [0; 8], 1)
}

/// Executes `MPI_Win_lock_all` and `MPI_Win_unlock_all`.
pub fn lock_all(window: &Window<'_>) -> Result<(), MpiError> {
    window.lock_all()?;
    window.unlock_all()
}

/// Executes a flush without a preceding access.
pub fn flush(window: &Window<'_>) -> Result<(), MpiError> {
    window.flush(1)
}

/// Executes a fence.
pub fn fence(window: &Window<'_>) -> Result<(), MpiError> {
    window.fence()
}

/// Executes a post-start-complete-wait epoch of all ranks, without an access.
pub fn epoch(window: &Window<'_>) -> Result<(), MpiError> {
    window.posted_access(Access::Put, &mut [], &mut [], None)
}

/// Adds 1 to an integer at rank 0.
pub fn count(window: &Window<'_>) -> Result<(), MpiError> {
    let (mut one, mut old) = (1u64.to_ne_bytes(), [0; 8]);
    window.access(Access::FetchAndOp, &mut one, &mut old, 0, 1)
}
