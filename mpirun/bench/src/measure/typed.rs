//! Ping-pong of non-contiguous data, in memory layouts of applications.
//!
//! The row's size is the number of data bytes. The figure is half a round trip with packing.

use crate::measure::point_to_point::{one_way, timed};
use crate::mpi::{Layout, MpiError, World};
use crate::pace::Pace;
use crate::row::Row;

const DATA: i32 = 1;

/// A function that creates a memory layout for a number of elements.
pub type Shape<'w> = for<'a> fn(&'a World<'w>, usize) -> Result<Layout<'a>, MpiError>;

pub fn latency<'w>(
    world: &World<'w>,
    shape: Shape<'w>,
    size: usize,
    pace: Pace,
) -> Result<Row, MpiError> {
    let doubles = (size / size_of::<f64>()).max(1);
    let sent = shape(world, doubles)?;
    let mut received = shape(world, doubles)?;
    let mut ping_pong = |n: u64| {
        for _ in 0..n {
            if world.rank() == 0 {
                sent.send(1, DATA)?;
                received.recv(1, DATA)?;
            } else {
                received.recv(0, DATA)?;
                sent.send(0, DATA)?;
            }
        }
        Ok(())
    };
    let (iterations, took) = timed(world, pace, &mut ping_pong)?;
    Ok(one_way(size, iterations, took))
}
