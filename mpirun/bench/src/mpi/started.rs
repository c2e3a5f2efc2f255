//! Nonblocking collectives, each followed by `MPI_Wait`.

use super::collectives::Collectives;
use super::{Handle, MpiError, check, count};
use std::ffi::c_int;
use std::ptr;

impl Collectives<'_> {
    /// Waits for the request that `start` creates.
    ///
    /// # Safety
    /// If `start` returns success, it must have created a request.
    /// The request's buffers must stay borrowed until this function returns.
    unsafe fn started(
        &self,
        function: &'static str,
        start: impl FnOnce(*mut Handle) -> c_int,
    ) -> Result<(), MpiError> {
        let mut request = ptr::null();
        check(function, start(&raw mut request))?;
        // SAFETY: by this function's contract `start` has just created the request.
        check("MPI_Wait", unsafe {
            (self.world.call().wait)(&raw mut request, ptr::null_mut())
        })
    }

    pub fn ibarrier(&self) -> Result<(), MpiError> {
        let world = self.world.handles().world;
        // SAFETY: a barrier has no buffers.
        unsafe { self.started("MPI_Ibarrier", |r| (self.world.call().ibarrier)(world, r)) }
    }

    pub fn ibcast(&self, data: &mut [u8], root: i32) -> Result<(), MpiError> {
        let (h, len) = (self.world.handles(), count(data.len()));
        // SAFETY: the buffer has `len` bytes and is exclusively borrowed during this call.
        unsafe {
            self.started("MPI_Ibcast", |r| {
                (self.world.call().ibcast)(data.as_mut_ptr().cast(), len, h.char_, root, h.world, r)
            })
        }
    }

    /// Sums floats over all ranks into rank 0's `received`.
    pub fn ireduce_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let (h, floats) = (self.world.handles(), Self::floats(sent, received));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: both buffers have at least `floats` floats and are page-aligned.
        // Both are borrowed until this function returns, which waits for the request.
        unsafe {
            self.started("MPI_Ireduce", |r| {
                (self.world.call().ireduce)(from, to, floats, h.float, h.sum, 0, h.world, r)
            })
        }
    }

    /// Sums floats over all ranks.
    pub fn iallreduce_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let (h, floats) = (self.world.handles(), Self::floats(sent, received));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: both buffers have at least `floats` floats and are page-aligned.
        // Both are borrowed until this function returns, which waits for the request.
        unsafe {
            self.started("MPI_Iallreduce", |r| {
                (self.world.call().iallreduce)(from, to, floats, h.float, h.sum, h.world, r)
            })
        }
    }

    /// Gathers a block from each rank at every rank.
    pub fn iallgather(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.world.handles();
        let n = count(sent.len().min(self.block(received.len())));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: `received` has `n` bytes for each rank and `sent` at least `n`.
        // Both are borrowed until this function returns, which waits for the request.
        unsafe {
            self.started("MPI_Iallgather", |r| {
                (self.world.call().iallgather)(from, n, h.char_, to, n, h.char_, h.world, r)
            })
        }
    }

    /// Exchanges a separate block between each pair of ranks.
    pub fn ialltoall(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.world.handles();
        let n = count(self.block(sent.len().min(received.len())));
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: both buffers have `n` bytes for each rank and outlive this function's call.
        unsafe {
            self.started("MPI_Ialltoall", |r| {
                (self.world.call().ialltoall)(from, n, h.char_, to, n, h.char_, h.world, r)
            })
        }
    }
}
