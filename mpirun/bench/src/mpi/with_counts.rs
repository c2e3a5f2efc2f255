//! Collectives with separate counts and displacements; here all blocks are equal and in rank order.

use super::{Collectives, MpiError, check, count};

/// The counts and displacements of equal blocks.
struct Blocks {
    counts: Vec<i32>,
    starts: Vec<i32>,
}

impl Collectives<'_> {
    fn equal_blocks(&self, bytes: i32) -> Blocks {
        let ranks = usize::try_from(self.world.size()).unwrap_or(1);
        Blocks {
            counts: vec![bytes; ranks],
            // All blocks together have at most `i32::MAX` bytes.
            starts: (0..self.world.size())
                .map(|rank| rank.wrapping_mul(bytes))
                .collect(),
        }
    }

    /// Gathers as [`Collectives::gather`] does, by `MPI_Gatherv`.
    pub fn gatherv(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.world.handles();
        let n = count(sent.len().min(self.block(received.len())));
        let Blocks { counts, starts } = self.equal_blocks(n);
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        let (counts, starts) = (counts.as_ptr(), starts.as_ptr());
        // SAFETY: `received` has `n` bytes for each rank and `sent` at least `n`.
        // The buffers, and the arrays with one element for each rank, live until the call returns.
        check("MPI_Gatherv", unsafe {
            (self.world.call().gatherv)(from, n, h.char_, to, counts, starts, h.char_, 0, h.world)
        })
    }

    /// Scatters as [`Collectives::scatter`] does, by `MPI_Scatterv`.
    pub fn scatterv(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.world.handles();
        let n = count(self.block(sent.len()).min(received.len()));
        let Blocks { counts, starts } = self.equal_blocks(n);
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        let (counts, starts) = (counts.as_ptr(), starts.as_ptr());
        // SAFETY: `sent` has `n` bytes for each rank and `received` at least `n`.
        // The buffers, and the arrays with one element for each rank, live until the call returns.
        check("MPI_Scatterv", unsafe {
            (self.world.call().scatterv)(from, counts, starts, h.char_, to, n, h.char_, 0, h.world)
        })
    }

    /// Gathers as [`Collectives::allgather`] does, by `MPI_Allgatherv`.
    pub fn allgatherv(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.world.handles();
        let n = count(sent.len().min(self.block(received.len())));
        let Blocks { counts, starts } = self.equal_blocks(n);
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        let (counts, starts) = (counts.as_ptr(), starts.as_ptr());
        // SAFETY: `received` has `n` bytes for each rank and `sent` at least `n`.
        // The buffers, and the arrays with one element for each rank, live until the call returns.
        check("MPI_Allgatherv", unsafe {
            (self.world.call().allgatherv)(from, n, h.char_, to, counts, starts, h.char_, h.world)
        })
    }

    /// Exchanges blocks as [`Collectives::alltoall`] does, by `MPI_Alltoallv`.
    pub fn alltoallv(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.world.handles();
        let n = count(self.block(sent.len().min(received.len())));
        let Blocks { counts, starts } = self.equal_blocks(n);
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        let (counts, starts) = (counts.as_ptr(), starts.as_ptr());
        // SAFETY: both buffers have `n` bytes and both arrays one element for each rank.
        // Buffers and arrays live until the call returns.
        check("MPI_Alltoallv", unsafe {
            (self.world.call().alltoallv)(
                from, counts, starts, h.char_, to, counts, starts, h.char_, h.world,
            )
        })
    }
}
