//! Matching with long queues: a ping-pong while posted receives or unexpected messages are pending.
//!
//! The row's size is the depth of the queue; the figure is half a round trip of 8 bytes, as in `latency`.

use crate::measure::point_to_point::latency;
use crate::mpi::{MpiError, World};
use crate::pace::Pace;
use crate::row::Row;

const MESSAGE: usize = 8;
/// The first tag of the pending messages.
const WAITING: i32 = 1000;

/// Both ranks have `depth` receives posted, each with a tag of its own that the ping-pong does not use.
pub fn posted(world: &World<'_>, depth: usize, pace: Pace) -> Result<Row, MpiError> {
    let peer = 1 - world.rank();
    let mut row = None;
    world.behind_posted(depth, peer, WAITING, || {
        row = Some(ping_pong(world, depth, pace)?);
        world.barrier()
    })?;
    Ok(row.unwrap_or_default())
}

/// Both ranks have `depth` unexpected messages pending, each with a tag of its own.
pub fn unexpected(world: &World<'_>, depth: usize, pace: Pace) -> Result<Row, MpiError> {
    let peer = 1 - world.rank();
    let tags = WAITING..WAITING + i32::try_from(depth).unwrap_or(i32::MAX - WAITING);
    for tag in tags.clone() {
        world.send(&[0; MESSAGE], peer, tag)?;
    }
    let row = ping_pong(world, depth, pace)?;
    let mut byte = [0; MESSAGE];
    // The last first, which is the worst order for a list.
    for tag in tags.rev() {
        world.recv(&mut byte, peer, tag)?;
    }
    Ok(row)
}

fn ping_pong(world: &World<'_>, depth: usize, pace: Pace) -> Result<Row, MpiError> {
    let row = latency(world, MESSAGE, pace)?;
    Ok(Row { size: depth, ..row })
}
