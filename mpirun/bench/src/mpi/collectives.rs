//! Blocking collective operations on MPI_COMM_WORLD.

use super::{MpiError, World, check, count};
use std::ptr;

/// The operation of a reduction.
#[derive(Clone, Copy, Debug)]
pub enum Combine {
    Sum,
    Min,
    Max,
}

impl World<'_> {
    /// Returns the blocking collectives on MPI_COMM_WORLD.
    pub fn collectives(&self) -> Collectives<'_> {
        Collectives { world: self }
    }
}

/// The blocking collectives; the module `started` adds the nonblocking collectives.
pub struct Collectives<'a> {
    pub(super) world: &'a World<'a>,
}

impl Collectives<'_> {
    pub fn barrier(&self) -> Result<(), MpiError> {
        self.world.barrier()
    }

    /// Duplicates MPI_COMM_WORLD and frees the duplicate.
    pub fn dup_and_free(&self) -> Result<(), MpiError> {
        let mut twin = ptr::null();
        // SAFETY: MPI_Comm_dup writes the handle to a local variable, and MPI_Comm_free frees it.
        unsafe {
            check(
                "MPI_Comm_dup",
                (self.world.call().comm_dup)(self.world.handles().world, &raw mut twin),
            )?;
            check(
                "MPI_Comm_free",
                (self.world.call().comm_free)(&raw mut twin),
            )
        }
    }

    pub fn bcast(&self, data: &mut [u8], root: i32) -> Result<(), MpiError> {
        let (h, len) = (self.world.handles(), count(data.len()));
        // SAFETY: the buffer has `len` bytes and is exclusively borrowed until the call returns.
        check("MPI_Bcast", unsafe {
            (self.world.call().bcast)(data.as_mut_ptr().cast(), len, h.char_, root, h.world)
        })
    }

    /// Sums `MPI_FLOAT` values over all ranks; the shorter buffer determines their number.
    pub fn allreduce_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.world.handles();
        let floats = count(sent.len().min(received.len()) / size_of::<f32>());
        // SAFETY: both buffers have `floats` floats and are page-aligned; any bytes are valid floats.
        let code = unsafe {
            (self.world.call().allreduce)(
                sent.as_ptr().cast(),
                received.as_mut_ptr().cast(),
                floats,
                h.float,
                h.sum,
                h.world,
            )
        };
        check("MPI_Allreduce", code)
    }

    /// Reduces one number over all ranks.
    pub fn combine(&self, value: f64, how: Combine) -> Result<f64, MpiError> {
        let h = self.world.handles();
        let op = match how {
            Combine::Sum => h.sum,
            Combine::Min => h.min,
            Combine::Max => h.max,
        };
        let mut result = 0.0;
        // SAFETY: both pointers are to local doubles that live until the call returns.
        let code = unsafe {
            (self.world.call().allreduce)(
                (&raw const value).cast(),
                (&raw mut result).cast(),
                1,
                h.double,
                op,
                h.world,
            )
        };
        check("MPI_Allreduce", code)?;
        Ok(result)
    }

    /// Returns the number of floats that fit into both buffers of a reduction.
    pub(super) fn floats(sent: &[u8], received: &[u8]) -> i32 {
        count(sent.len().min(received.len()) / size_of::<f32>())
    }

    /// Sums floats over all ranks into rank 0's `received`.
    pub fn reduce_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let (h, floats) = (self.world.handles(), Self::floats(sent, received));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: both buffers have at least `floats` floats and are page-aligned.
        // Both are borrowed until the call returns.
        check("MPI_Reduce", unsafe {
            (self.world.call().reduce)(from, to, floats, h.float, h.sum, 0, h.world)
        })
    }

    /// Sums floats over ranks 0 to r at each rank r.
    pub fn scan_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let (h, floats) = (self.world.handles(), Self::floats(sent, received));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: both buffers have at least `floats` floats and are page-aligned.
        // Both are borrowed until the call returns.
        check("MPI_Scan", unsafe {
            (self.world.call().scan)(from, to, floats, h.float, h.sum, h.world)
        })
    }

    /// Sums floats over ranks 0 to r - 1 at each rank r.
    pub fn exscan_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let (h, floats) = (self.world.handles(), Self::floats(sent, received));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: both buffers have at least `floats` floats and are page-aligned.
        // Both are borrowed until the call returns.
        check("MPI_Exscan", unsafe {
            (self.world.call().exscan)(from, to, floats, h.float, h.sum, h.world)
        })
    }

    /// Sums floats and scatters the blocks of the sum; `sent` has one block for each rank.
    pub fn reduce_scatter_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.world.handles();
        let floats = count(self.block(sent.len()).min(received.len()) / size_of::<f32>());
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: `sent` has `floats` floats per rank, `received` has `floats`; both are aligned.
        check("MPI_Reduce_scatter_block", unsafe {
            (self.world.call().reduce_scatter_block)(from, to, floats, h.float, h.sum, h.world)
        })
    }

    /// Returns the length of a block, in a buffer with one block for each rank.
    pub(super) fn block(&self, all: usize) -> usize {
        all / usize::try_from(self.world.size()).unwrap_or(1).max(1)
    }

    /// Gathers a block from each rank at rank 0.
    pub fn gather(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.world.handles();
        let n = count(sent.len().min(self.block(received.len())));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: `received` has `n` bytes per rank, `sent` at least `n`; both outlive the call.
        check("MPI_Gather", unsafe {
            (self.world.call().gather)(from, n, h.char_, to, n, h.char_, 0, h.world)
        })
    }

    /// Scatters a block from rank 0 to each rank.
    pub fn scatter(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.world.handles();
        let n = count(self.block(sent.len()).min(received.len()));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: `sent` has `n` bytes per rank, `received` at least `n`; both outlive the call.
        check("MPI_Scatter", unsafe {
            (self.world.call().scatter)(from, n, h.char_, to, n, h.char_, 0, h.world)
        })
    }

    /// Gathers a block from each rank at every rank.
    pub fn allgather(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.world.handles();
        let n = count(sent.len().min(self.block(received.len())));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: `received` has `n` bytes per rank, `sent` at least `n`; both outlive the call.
        check("MPI_Allgather", unsafe {
            (self.world.call().allgather)(from, n, h.char_, to, n, h.char_, h.world)
        })
    }

    /// Exchanges a separate block between each pair of ranks.
    pub fn alltoall(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.world.handles();
        let n = count(self.block(sent.len().min(received.len())));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: both buffers have `n` bytes for each rank and are borrowed during the call.
        check("MPI_Alltoall", unsafe {
            (self.world.call().alltoall)(from, n, h.char_, to, n, h.char_, h.world)
        })
    }

    /// Starts a sum of floats, calls `meanwhile` until it returns true, and waits for the sum.
    /// An `MPI_Test` follows each call of `meanwhile`.
    pub fn allreduce_while(
        &self,
        sent: &[u8],
        received: &mut [u8],
        mut meanwhile: impl FnMut() -> bool,
    ) -> Result<(), MpiError> {
        let (h, floats) = (self.world.handles(), Self::floats(sent, received));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        let mut request = ptr::null();
        // SAFETY: the buffers are borrowed until this function has waited for the request.
        check("MPI_Iallreduce", unsafe {
            (self.world.call().iallreduce)(
                from,
                to,
                floats,
                h.float,
                h.sum,
                h.world,
                &raw mut request,
            )
        })?;
        let mut tested = Ok(());
        let mut done = 0;
        while !meanwhile() {
            if done == 0 && tested.is_ok() {
                // SAFETY: the request was started above or is null after its completion.
                tested = check("MPI_Test", unsafe {
                    (self.world.call().test)(&raw mut request, &raw mut done, ptr::null_mut())
                });
            }
        }
        // SAFETY: the request was started above, or is null after MPI_Test has completed it;
        // MPI_Waitall ignores a null request.
        let waited = check("MPI_Waitall", unsafe {
            (self.world.call().waitall)(1, &raw mut request, ptr::null_mut())
        });
        tested.and(waited)
    }
}
