//! Point-to-point benchmarks of two ranks: `osu_latency`, `osu_bw` and `osu_bibw`.

use std::time::{Duration, Instant};

use crate::buffer::Buffer;
use crate::choices::Buffers;
use crate::mpi::{Flights, MpiError, World};
use crate::pace::Pace;
use crate::row::Row;

/// The number of messages in flight, as in `osu_bw`.
const WINDOW: usize = 64;
const DATA: i32 = 1;
const BACK: i32 = 10;
const ACK: i32 = 101;

/// Measures a ping-pong: half a round trip.
pub fn latency(world: &World<'_>, size: usize, pace: Pace) -> Result<Row, MpiError> {
    let sent = Buffer::new(size, b'a');
    let mut received = Buffer::new(size, b'b');
    let mut ping_pong = |n: u64| {
        for _ in 0..n {
            if world.rank() == 0 {
                world.send(sent.bytes(), 1, DATA)?;
                world.recv(received.bytes_mut(), 1, DATA)?;
            } else {
                world.recv(received.bytes_mut(), 0, DATA)?;
                world.send(sent.bytes(), 0, DATA)?;
            }
        }
        Ok(())
    };
    let (iterations, took) = timed(world, pace, &mut ping_pong)?;
    Ok(one_way(size, iterations, took))
}

/// Returns a row with half of an average round trip, in microseconds.
pub fn one_way(size: usize, iterations: u64, took: Duration) -> Row {
    Row {
        size,
        avg: took.as_secs_f64() * 1e6 / (2.0 * iterations as f64),
        iterations,
        ..Row::default()
    }
}

/// Measures the bandwidth from rank 0 to rank 1 in MB/s; each window of messages is acknowledged.
pub fn bandwidth(
    world: &World<'_>,
    buffers: Buffers,
    size: usize,
    pace: Pace,
) -> Result<Row, MpiError> {
    let mut data = Buffer::new(buffers.memory(size, WINDOW), b'a');
    let mut flights = Flights::new(WINDOW, size);
    let (iterations, took) = in_windows(world, pace, || match world.rank() {
        0 => world.send_many(data.bytes(), 1, DATA, &mut flights),
        _ => world.recv_many(data.bytes_mut(), 0, DATA, &mut flights),
    })?;
    Ok(megabytes(size, 1, iterations, took))
}

/// Measures the summed bandwidth of both directions in MB/s; both ranks send at the same time.
pub fn bidirectional(
    world: &World<'_>,
    buffers: Buffers,
    size: usize,
    pace: Pace,
) -> Result<Row, MpiError> {
    let memory = buffers.memory(size, WINDOW);
    let sent = Buffer::new(memory, b'a');
    let mut received = Buffer::new(memory, b'b');
    let mut flights = Flights::new(WINDOW, size);
    let (peer, ours, theirs) = match world.rank() {
        0 => (1, DATA, BACK),
        _ => (0, BACK, DATA),
    };
    let (iterations, took) = in_windows(world, pace, || {
        let (sent, received) = ((sent.bytes(), ours), (received.bytes_mut(), theirs));
        world.exchange_many(sent, received, peer, &mut flights)
    })?;
    Ok(megabytes(size, 2, iterations, took))
}

/// Times windows of messages; rank 1 acknowledges each window.
fn in_windows(
    world: &World<'_>,
    pace: Pace,
    mut window: impl FnMut() -> Result<(), MpiError>,
) -> Result<(u64, Duration), MpiError> {
    let mut ack = [0; 4];
    timed(world, pace, &mut |n: u64| {
        for _ in 0..n {
            window()?;
            match world.rank() {
                0 => world.recv(&mut ack, 1, ACK)?,
                _ => world.send(&ack, 0, ACK)?,
            }
        }
        Ok(())
    })
}

/// Runs the warm-up and the measured iterations; both ranks get rank 0's time.
pub fn timed(
    world: &World<'_>,
    pace: Pace,
    body: &mut impl FnMut(u64) -> Result<(), MpiError>,
) -> Result<(u64, Duration), MpiError> {
    let iterations = pace.settle(world, &mut *body)?;
    world.barrier()?;
    let begin = Instant::now();
    body(iterations)?;
    let nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok((iterations, Duration::from_nanos(world.bcast_number(nanos)?)))
}

fn megabytes(size: usize, directions: u32, iterations: u64, took: Duration) -> Row {
    let bytes = size as f64 * WINDOW as f64 * iterations as f64 * f64::from(directions);
    Row {
        size,
        avg: bytes / 1e6 / took.as_secs_f64(),
        iterations,
        ..Row::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_counts_the_window_and_both_directions() {
        let row = megabytes(1_000_000, 2, 10, Duration::from_secs(1));
        assert_eq!(row.avg, 2.0 * 64.0 * 10.0);
    }
}
