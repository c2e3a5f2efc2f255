//! Operations of all ranks.

use super::{MpiError, World, check, count};
use std::ptr;

/// How values are combined over the ranks.
#[derive(Clone, Copy, Debug)]
pub enum Combine {
    Sum,
    Min,
    Max,
}

impl World<'_> {
    /// Makes a communicator of all ranks and frees it.
    pub fn dup_and_free(&self) -> Result<(), MpiError> {
        let mut twin = ptr::null();
        // SAFETY: the handle is written by the first call and given back by the second.
        unsafe {
            check(
                "MPI_Comm_dup",
                (self.call().comm_dup)(self.handles().world, &raw mut twin),
            )?;
            check("MPI_Comm_free", (self.call().comm_free)(&raw mut twin))
        }
    }

    pub fn bcast(&self, data: &mut [u8], root: i32) -> Result<(), MpiError> {
        let (h, len) = (self.handles(), count(data.len()));
        // SAFETY: the buffer has the length that is given and is ours alone until the call returns.
        check("MPI_Bcast", unsafe {
            (self.call().bcast)(data.as_mut_ptr().cast(), len, h.char_, root, h.world)
        })
    }

    /// Sums as many `MPI_FLOAT` as fit into the bytes.
    pub fn allreduce_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.handles();
        let floats = count(sent.len().min(received.len()) / size_of::<f32>());
        // SAFETY: both buffers hold that many floats (any bytes are floats) and begin on a page, so they are aligned.
        let code = unsafe {
            (self.call().allreduce)(
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

    /// One number combined over all ranks.
    pub fn combine(&self, value: f64, how: Combine) -> Result<f64, MpiError> {
        let h = self.handles();
        let op = match how {
            Combine::Sum => h.sum,
            Combine::Min => h.min,
            Combine::Max => h.max,
        };
        let mut result = 0.0;
        // SAFETY: one double each, alive until the call returns.
        let code = unsafe {
            (self.call().allreduce)(
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

    /// How many floats a reduction of these buffers has.
    pub(super) fn floats(sent: &[u8], received: &[u8]) -> i32 {
        count(sent.len().min(received.len()) / size_of::<f32>())
    }

    /// Sums floats to rank 0.
    pub fn reduce_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let (h, floats) = (self.handles(), Self::floats(sent, received));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: as for the sum to all.
        check("MPI_Reduce", unsafe {
            (self.call().reduce)(from, to, floats, h.float, h.sum, 0, h.world)
        })
    }

    /// Sums floats over the ranks up to each.
    pub fn scan_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let (h, floats) = (self.handles(), Self::floats(sent, received));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: as for the sum to all.
        check("MPI_Scan", unsafe {
            (self.call().scan)(from, to, floats, h.float, h.sum, h.world)
        })
    }

    /// Sums floats over the ranks before each.
    pub fn exscan_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let (h, floats) = (self.handles(), Self::floats(sent, received));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: as for the sum to all.
        check("MPI_Exscan", unsafe {
            (self.call().exscan)(from, to, floats, h.float, h.sum, h.world)
        })
    }

    /// Sums floats and leaves each rank its block; `sent` holds a block for each rank.
    pub fn reduce_scatter_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.handles();
        let floats = count(self.block(sent.len()).min(received.len()) / size_of::<f32>());
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: `sent` holds that many floats for each rank and `received` for one; both begin on a page.
        check("MPI_Reduce_scatter_block", unsafe {
            (self.call().reduce_scatter_block)(from, to, floats, h.float, h.sum, h.world)
        })
    }

    /// How long a block is of which a buffer has one for each rank.
    pub(super) fn block(&self, all: usize) -> usize {
        all / usize::try_from(self.size()).unwrap_or(1).max(1)
    }

    /// A block from each rank to rank 0.
    pub fn gather(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.handles();
        let n = count(sent.len().min(self.block(received.len())));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: `received` has room for as many bytes from each rank; both are borrowed until the call returns.
        check("MPI_Gather", unsafe {
            (self.call().gather)(from, n, h.char_, to, n, h.char_, 0, h.world)
        })
    }

    /// A block from rank 0 to each rank.
    pub fn scatter(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.handles();
        let n = count(self.block(sent.len()).min(received.len()));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: `sent` has as many bytes for each rank; both are borrowed until the call returns.
        check("MPI_Scatter", unsafe {
            (self.call().scatter)(from, n, h.char_, to, n, h.char_, 0, h.world)
        })
    }

    /// A block from each rank to every rank.
    pub fn allgather(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.handles();
        let n = count(sent.len().min(self.block(received.len())));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: as for the gather.
        check("MPI_Allgather", unsafe {
            (self.call().allgather)(from, n, h.char_, to, n, h.char_, h.world)
        })
    }

    /// A block of its own from each rank to every rank.
    pub fn alltoall(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.handles();
        let n = count(self.block(sent.len().min(received.len())));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: both hold as many bytes for each rank; both are borrowed until the call returns.
        check("MPI_Alltoall", unsafe {
            (self.call().alltoall)(from, n, h.char_, to, n, h.char_, h.world)
        })
    }

    /// Starts a sum of floats over all ranks, calls `meanwhile` until it says that it has done enough, testing in between, and waits.
    pub fn allreduce_while(
        &self,
        sent: &[u8],
        received: &mut [u8],
        mut meanwhile: impl FnMut() -> bool,
    ) -> Result<(), MpiError> {
        let (h, floats) = (self.handles(), Self::floats(sent, received));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        let mut request = ptr::null();
        // SAFETY: the buffers are borrowed until this function returns, and it waits for the request.
        check("MPI_Iallreduce", unsafe {
            (self.call().iallreduce)(from, to, floats, h.float, h.sum, h.world, &raw mut request)
        })?;
        let mut tested = Ok(());
        let mut done = 0;
        while !meanwhile() {
            if done == 0 && tested.is_ok() {
                // SAFETY: the request is the one just started, or null after it has completed; a null status is ignored.
                tested = check("MPI_Test", unsafe {
                    (self.call().test)(&raw mut request, &raw mut done, ptr::null_mut())
                });
            }
        }
        // SAFETY: as above; a null request is complete.
        let waited = check("MPI_Waitall", unsafe {
            (self.call().waitall)(1, &raw mut request, ptr::null_mut())
        });
        tested.and(waited)
    }
}
