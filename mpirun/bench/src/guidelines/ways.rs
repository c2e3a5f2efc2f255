//! The ways to a result: sequences of collective calls on the same buffers.

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

    /// Returns the name of the call whose algorithms serve it: that of the blocking form.
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

/// The buffers of all calls of one size.
pub struct Memory {
    sent: Buffer,
    received: Buffer,
    ranks: usize,
}

impl Memory {
    /// Buffers of `size` bytes for each rank.
    pub fn new(world: &World<'_>, size: usize) -> Memory {
        let ranks = usize::try_from(world.size()).unwrap_or(1);
        Memory {
            sent: Buffer::new(size * ranks, 1),
            received: Buffer::new(size * ranks, 0),
            ranks,
        }
    }

    /// Runs calls one after the other, each with blocks of its own size.
    pub fn run(&mut self, world: &World<'_>, calls: &[(Call, usize)]) -> Result<(), MpiError> {
        calls
            .iter()
            .try_for_each(|(call, size)| self.call(world, *call, *size))
    }

    fn call(&mut self, world: &World<'_>, call: Call, size: usize) -> Result<(), MpiError> {
        let each = (size * self.ranks).min(self.sent.bytes().len());
        let one = size.min(self.sent.bytes().len());
        let (sent, received) = (self.sent.bytes(), self.received.bytes_mut());
        match call {
            Call::Barrier => world.barrier(),
            Call::Bcast => world.bcast(&mut received[..one], 0),
            Call::Reduce => world.reduce_floats(&sent[..one], &mut received[..one]),
            Call::Allreduce => world.allreduce_floats(&sent[..one], &mut received[..one]),
            Call::ReduceScatter => world.reduce_scatter_floats(&sent[..each], &mut received[..one]),
            Call::Scan => world.scan_floats(&sent[..one], &mut received[..one]),
            Call::Exscan => world.exscan_floats(&sent[..one], &mut received[..one]),
            Call::Gather => world.gather(&sent[..one], &mut received[..each]),
            Call::Scatter => world.scatter(&sent[..each], &mut received[..one]),
            Call::Allgather => world.allgather(&sent[..one], &mut received[..each]),
            Call::Alltoall => world.alltoall(&sent[..each], &mut received[..each]),
            Call::Gatherv => world.gatherv(&sent[..one], &mut received[..each]),
            Call::Scatterv => world.scatterv(&sent[..each], &mut received[..one]),
            Call::Allgatherv => world.allgatherv(&sent[..one], &mut received[..each]),
            Call::Alltoallv => world.alltoallv(&sent[..each], &mut received[..each]),
            Call::Ibarrier => world.ibarrier(),
            Call::Ibcast => world.ibcast(&mut received[..one], 0),
            Call::Ireduce => world.ireduce_floats(&sent[..one], &mut received[..one]),
            Call::Iallreduce => world.iallreduce_floats(&sent[..one], &mut received[..one]),
            Call::Iallgather => world.iallgather(&sent[..one], &mut received[..each]),
            Call::Ialltoall => world.ialltoall(&sent[..each], &mut received[..each]),
        }
    }
}
