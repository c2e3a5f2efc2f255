//! Sequences of collective calls that lead to the same result, on the same buffers.

use std::fmt;

use crate::buffer::Buffer;
use crate::mpi::{MpiError, World};

/// A collective call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    /// `MPI_Reduce_scatter_block`
    ReduceScatter,
    Scan,
    Exscan,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Gatherv,
    Scatterv,
    Allgatherv,
    Alltoallv,
    Ibarrier,
    Ibcast,
    Ireduce,
    Iallreduce,
    Iallgather,
    Ialltoall,
}

impl Call {
    fn name(self) -> &'static str {
        match self {
            Call::Barrier => "barrier",
            Call::Bcast => "bcast",
            Call::Reduce => "reduce",
            Call::Allreduce => "allreduce",
            Call::ReduceScatter => "reduce_scatter_block",
            Call::Scan => "scan",
            Call::Exscan => "exscan",
            Call::Gather => "gather",
            Call::Scatter => "scatter",
            Call::Allgather => "allgather",
            Call::Alltoall => "alltoall",
            Call::Gatherv => "gatherv",
            Call::Scatterv => "scatterv",
            Call::Allgatherv => "allgatherv",
            Call::Alltoallv => "alltoallv",
            Call::Ibarrier => "ibarrier",
            Call::Ibcast => "ibcast",
            Call::Ireduce => "ireduce",
            Call::Iallreduce => "iallreduce",
            Call::Iallgather => "iallgather",
            Call::Ialltoall => "ialltoall",
        }
    }

    /// Returns the name of the blocking call; a nonblocking call uses the same algorithms.
    pub fn served_as(self) -> &'static str {
        match self {
            Call::Ibarrier => "barrier",
            Call::Ibcast => "bcast",
            Call::Ireduce => "reduce",
            Call::Iallreduce => "allreduce",
            Call::Iallgather => "allgather",
            Call::Ialltoall => "alltoall",
            blocking => blocking.name(),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The buffers that the calls of one size use.
pub struct Memory {
    sent: Buffer,
    received: Buffer,
    ranks: usize,
}

impl Memory {
    /// Creates buffers with a block of `size` bytes for each rank.
    pub fn new(world: &World<'_>, size: usize) -> Memory {
        let ranks = usize::try_from(world.size()).unwrap_or(1);
        Memory {
            sent: Buffer::new(size * ranks, 1),
            received: Buffer::new(size * ranks, 0),
            ranks,
        }
    }

    /// Executes the calls one after the other, each with its own block size.
    pub fn run(&mut self, world: &World<'_>, calls: &[(Call, usize)]) -> Result<(), MpiError> {
        calls
            .iter()
            .try_for_each(|(call, size)| self.call(world, *call, *size))
    }

    fn call(&mut self, world: &World<'_>, call: Call, size: usize) -> Result<(), MpiError> {
        let each = (size * self.ranks).min(self.sent.bytes().len());
        let one = size.min(self.sent.bytes().len());
        let (sent, received) = (self.sent.bytes(), self.received.bytes_mut());
        let all = world.collectives();
        match call {
            Call::Barrier => world.barrier(),
            Call::Bcast => all.bcast(&mut received[..one], 0),
            Call::Reduce => all.reduce_floats(&sent[..one], &mut received[..one]),
            Call::Allreduce => all.allreduce_floats(&sent[..one], &mut received[..one]),
            Call::ReduceScatter => all.reduce_scatter_floats(&sent[..each], &mut received[..one]),
            Call::Scan => all.scan_floats(&sent[..one], &mut received[..one]),
            Call::Exscan => all.exscan_floats(&sent[..one], &mut received[..one]),
            Call::Gather => all.gather(&sent[..one], &mut received[..each]),
            Call::Scatter => all.scatter(&sent[..each], &mut received[..one]),
            Call::Allgather => all.allgather(&sent[..one], &mut received[..each]),
            Call::Alltoall => all.alltoall(&sent[..each], &mut received[..each]),
            Call::Gatherv => all.gatherv(&sent[..one], &mut received[..each]),
            Call::Scatterv => all.scatterv(&sent[..each], &mut received[..one]),
            Call::Allgatherv => all.allgatherv(&sent[..one], &mut received[..each]),
            Call::Alltoallv => all.alltoallv(&sent[..each], &mut received[..each]),
            Call::Ibarrier => all.ibarrier(),
            Call::Ibcast => all.ibcast(&mut received[..one], 0),
            Call::Ireduce => all.ireduce_floats(&sent[..one], &mut received[..one]),
            Call::Iallreduce => all.iallreduce_floats(&sent[..one], &mut received[..one]),
            Call::Iallgather => all.iallgather(&sent[..one], &mut received[..each]),
            Call::Ialltoall => all.ialltoall(&sent[..each], &mut received[..each]),
        }
    }
}
