//! Message matching with long queues: ping-pong beside many posted receives or unexpected messages.
//!
//! The row's size is the queue's length; the figure is half a round trip of 8 bytes.

use crate::measure::point_to_point::latency;
use crate::mpi::{MpiError, World};
use crate::pace::Pace;
use crate::row::Row;

const MESSAGE: usize = 8;
/// The first tag of the messages in the queue.
const WAITING: i32 = 1000;

/// Measures the ping-pong while both ranks have `depth` posted receives with other tags.
pub fn posted(world: &World<'_>, depth: usize, pace: Pace) -> Result<Row, MpiError> {
    let peer = 1 - world.rank();
    let mut row = None;
    world.behind_posted(depth, peer, WAITING, || {
        row = Some(ping_pong(world, depth, pace)?);
        world.barrier()
    })?;
    Ok(row.unwrap_or_default())
}

/// Measures the ping-pong while both ranks have `depth` unexpected messages, each with its own tag.
pub fn unexpected(world: &World<'_>, depth: usize, pace: Pace) -> Result<Row, MpiError> {
    let peer = 1 - world.rank();
    let tags = WAITING..WAITING + i32::try_from(depth).unwrap_or(i32::MAX - WAITING);
    for tag in tags.clone() {
        world.send(&[0; MESSAGE], peer, tag)?;
    }
    let row = ping_pong(world, depth, pace)?;
    let mut byte = [0; MESSAGE];
    // Receives the last message first, the worst order for a list.
    for tag in tags.rev() {
        world.recv(&mut byte, peer, tag)?;
    }
    Ok(row)
}

fn ping_pong(world: &World<'_>, depth: usize, pace: Pace) -> Result<Row, MpiError> {
    let row = latency(world, MESSAGE, pace)?;
    Ok(Row { size: depth, ..row })
}
