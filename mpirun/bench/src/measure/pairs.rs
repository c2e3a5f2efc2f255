//! Benchmarks of many pairs (`osu_mbw_mr`, `osu_multi_lat`) and threads (`osu_mt_bw` as a rate).
//!
//! Rank r exchanges messages with rank r + n/2, for r < n/2.

use std::time::Instant;

use crate::buffer::Buffer;
use crate::choices::Buffers;
use crate::mpi::{Combine, Flights, MpiError, World};
use crate::pace::Pace;
use crate::row::Row;

const WINDOW: usize = 64;
const DATA: i32 = 1;
const ACK: i32 = 101;

/// Returns the rank that this rank exchanges messages with, and whether this rank sends first.
fn partner(world: &World<'_>) -> (i32, bool) {
    let half = world.size() / 2;
    match world.rank() < half {
        true => (world.rank() + half, true),
        false => (world.rank() - half, false),
    }
}

/// Measures the message rate of all pairs together, in thousands of messages per second.
pub fn rate(world: &World<'_>, buffers: Buffers, size: usize, pace: Pace) -> Result<Row, MpiError> {
    let (peer, first) = partner(world);
    let mut data = Buffer::new(buffers.memory(size, WINDOW), b'a');
    let mut flights = Flights::new(WINDOW, size);
    let mut windows = |n: u64| {
        for _ in 0..n {
            window(world, data.bytes_mut(), (peer, first, 0), &mut flights)?;
        }
        Ok(())
    };
    let iterations = pace.settle(world, &mut windows)?;
    world.barrier()?;
    let begin = Instant::now();
    windows(iterations)?;
    let slowest = world
        .collectives()
        .combine(begin.elapsed().as_secs_f64(), Combine::Max)?;
    let messages = iterations as f64 * WINDOW as f64 * f64::from(world.size() / 2);
    Ok(thousands(size, messages, slowest, iterations))
}

/// Transfers one window of messages with tags of thread `thread`, and an acknowledgement.
fn window(
    world: &World<'_>,
    data: &mut [u8],
    (peer, first, thread): (i32, bool, i32),
    flights: &mut Flights,
) -> Result<(), MpiError> {
    let (tag, ack) = (DATA + 200 * thread, ACK + 200 * thread);
    let mut answer = [0; 4];
    if first {
        world.send_many(data, peer, tag, flights)?;
        world.recv(&mut answer, peer, ack)
    } else {
        world.recv_many(data, peer, tag, flights)?;
        world.send(&answer, peer, ack)
    }
}

/// Measures half a round trip, averaged over all pairs, in microseconds.
pub fn latency(world: &World<'_>, size: usize, pace: Pace) -> Result<Row, MpiError> {
    let (peer, first) = partner(world);
    let sent = Buffer::new(size, b'a');
    let mut received = Buffer::new(size, b'b');
    let mut ping_pong = |n: u64| {
        for _ in 0..n {
            if first {
                world.send(sent.bytes(), peer, DATA)?;
                world.recv(received.bytes_mut(), peer, DATA)?;
            } else {
                world.recv(received.bytes_mut(), peer, DATA)?;
                world.send(sent.bytes(), peer, DATA)?;
            }
        }
        Ok(())
    };
    let iterations = pace.settle(world, &mut ping_pong)?;
    world.barrier()?;
    let begin = Instant::now();
    ping_pong(iterations)?;
    let micros = begin.elapsed().as_secs_f64() * 1e6 / (2.0 * iterations as f64);
    Ok(Row {
        size,
        avg: world.collectives().combine(micros, Combine::Sum)? / f64::from(world.size()),
        iterations,
        ..Row::default()
    })
}

/// Measures the rate of 8-byte messages between two ranks of `threads` threads each.
/// The unit is thousands of messages per second; the row's size is the number of threads.
pub fn threads(world: &World<'_>, threads: usize, pace: Pace) -> Result<Row, MpiError> {
    let (peer, first) = partner(world);
    let windows = |n: u64| {
        world.in_threads(threads, |world, thread| {
            let mut data = Buffer::new(8, b'a');
            let mut flights = Flights::new(WINDOW, 8);
            let place = (peer, first, i32::try_from(thread).unwrap_or(0));
            (0..n).try_for_each(|_| window(world, data.bytes_mut(), place, &mut flights))
        })
    };
    let iterations = pace.settle(world, windows)?;
    world.barrier()?;
    let begin = Instant::now();
    windows(iterations)?;
    let slowest = world
        .collectives()
        .combine(begin.elapsed().as_secs_f64(), Combine::Max)?;
    let messages = iterations as f64 * WINDOW as f64 * threads as f64;
    Ok(thousands(threads, messages, slowest, iterations))
}

fn thousands(size: usize, messages: f64, seconds: f64, iterations: u64) -> Row {
    Row {
        size,
        avg: messages / 1e3 / seconds,
        iterations,
        ..Row::default()
    }
}
