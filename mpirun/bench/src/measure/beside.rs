//! Operations beside processes that compute, and operations of ranks that compute themselves.
//!
//! With `-n` or `--vs`, `mpi-bench` runs one busy loop on each core ([`crate::load`]).
//! A rank (`mpi-bench` under a launcher) starts no loops and measures under the present load.
//! A row's figure is the average time of an operation in a loop, at the slowest rank.

use std::time::{Duration, Instant};

use crate::buffer::Buffer;
use crate::mpi::{Combine, Flights, MpiError, World};
use crate::pace::Pace;
use crate::row::Row;

/// The rows in order of measurement; a ping-pong is a round trip between ranks 0 and 1.
pub const ROWS: &[&str] = &[
    "ping-pong 8",
    "ping-pong 64 KiB",
    "barrier",
    "allreduce 8",
    "allreduce 64 KiB",
    "alltoall 64",
    "64 sends of 1 KiB",
    "200 us of work and an allreduce",
];

/// The number of messages in the row "64 sends of 1 KiB"; `MESSAGE` is the length of each in bytes.
const WINDOW: usize = 64;
const MESSAGE: usize = 1 << 10;

/// The time for which a rank computes between two operations.
const WORK: Duration = Duration::from_micros(200);

const DATA: i32 = 1;
const ANSWER: i32 = 2;

/// Measures row `index` of [`ROWS`].
pub fn row(world: &World<'_>, index: usize, pace: Pace) -> Result<Row, MpiError> {
    let mut operation = operation(world, index);
    let iterations = pace.settle(world, |n| (0..n).try_for_each(|_| operation()))?;
    world.barrier()?;
    let begin = Instant::now();
    (0..iterations).try_for_each(|_| operation())?;
    let slowest = world
        .collectives()
        .combine(begin.elapsed().as_secs_f64(), Combine::Max)?;
    Ok(Row {
        size: index,
        avg: slowest * 1e6 / iterations as f64,
        iterations,
        ..Row::default()
    })
}

/// A function that executes one operation of all ranks.
type Operation<'a> = Box<dyn FnMut() -> Result<(), MpiError> + 'a>;

fn operation<'a>(world: &'a World<'_>, index: usize) -> Operation<'a> {
    match index {
        0 => ping_pong(world, 8),
        1 => ping_pong(world, 64 << 10),
        2 => Box::new(|| world.barrier()),
        3 => allreduce(world, 8, Duration::ZERO),
        4 => allreduce(world, 64 << 10, Duration::ZERO),
        5 => alltoall(world, 64),
        6 => sends(world),
        _ => allreduce(world, 8, WORK),
    }
}

fn ping_pong<'a>(world: &'a World<'_>, size: usize) -> Operation<'a> {
    let sent = Buffer::new(size, b'a');
    let mut received = Buffer::new(size, b'b');
    Box::new(move || match world.rank() {
        0 => {
            world.send(sent.bytes(), 1, DATA)?;
            world.recv(received.bytes_mut(), 1, DATA)
        }
        1 => {
            world.recv(received.bytes_mut(), 0, DATA)?;
            world.send(sent.bytes(), 0, DATA)
        }
        _ => Ok(()),
    })
}

fn allreduce<'a>(world: &'a World<'_>, size: usize, work: Duration) -> Operation<'a> {
    let sent = Buffer::new(size, 1);
    let mut received = Buffer::new(size, 0);
    Box::new(move || {
        let begin = Instant::now();
        while begin.elapsed() < work {
            std::hint::black_box(&received);
        }
        world
            .collectives()
            .allreduce_floats(sent.bytes(), received.bytes_mut())
    })
}

fn alltoall<'a>(world: &'a World<'_>, size: usize) -> Operation<'a> {
    let bytes = size * usize::try_from(world.size()).unwrap_or(1);
    let sent = Buffer::new(bytes, 1);
    let mut received = Buffer::new(bytes, 0);
    Box::new(move || {
        world
            .collectives()
            .alltoall(sent.bytes(), received.bytes_mut())
    })
}

/// Returns the operation "64 sends": rank 0 sends [`WINDOW`] messages, rank 1 sends one answer.
fn sends<'a>(world: &'a World<'_>) -> Operation<'a> {
    let mut data = Buffer::new(MESSAGE, b'a');
    let mut flights = Flights::new(WINDOW, MESSAGE);
    let mut answer = [0; 4];
    Box::new(move || match world.rank() {
        0 => {
            world.send_many(data.bytes(), 1, DATA, &mut flights)?;
            world.recv(&mut answer, 1, ANSWER)
        }
        1 => {
            for _ in 0..WINDOW {
                world.recv(data.bytes_mut(), 0, DATA)?;
            }
            world.send(&answer, 0, ANSWER)
        }
        _ => Ok(()),
    })
}
