//! Duplicate of MPI_COMM_WORLD, with the operations of the benchmark `first`.

use super::{Handle, MpiError, World, check};
use std::ptr;

/// A communicator that `MPI_Comm_dup` has created.
pub struct Duplicate<'a> {
    world: &'a World<'a>,
    handle: Handle,
}

impl<'a> World<'a> {
    /// Duplicates MPI_COMM_WORLD; all ranks must call this function.
    pub fn duplicate(&'a self) -> Result<Duplicate<'a>, MpiError> {
        let mut handle = ptr::null();
        // SAFETY: `handle` is a local variable that the call writes.
        check("MPI_Comm_dup", unsafe {
            (self.call().comm_dup)(self.handles().world, &raw mut handle)
        })?;
        Ok(Duplicate {
            world: self,
            handle,
        })
    }
}

impl Duplicate<'_> {
    /// Sums a number over all ranks.
    pub fn sum(&self, value: f64) -> Result<f64, MpiError> {
        let (call, h) = (self.world.call(), self.world.handles());
        let mut sum = 0.0_f64;
        // SAFETY: both buffers are local doubles that live until the call returns.
        // The communicator lives as long as `self`.
        check("MPI_Allreduce", unsafe {
            (call.allreduce)(
                (&raw const value).cast(),
                (&raw mut sum).cast(),
                1,
                h.double,
                h.sum,
                self.handle,
            )
        })?;
        Ok(sum)
    }

    pub fn barrier(&self) -> Result<(), MpiError> {
        // SAFETY: the communicator lives until `free` consumes `self`.
        check("MPI_Barrier", unsafe {
            (self.world.call().barrier)(self.handle)
        })
    }

    /// Frees the communicator; all ranks must call this function.
    pub fn free(mut self) -> Result<(), MpiError> {
        // SAFETY: `self` is consumed, so the communicator is not used after this call.
        // No operation on the communicator is pending, since all operations of this type block.
        check("MPI_Comm_free", unsafe {
            (self.world.call().comm_free)(&raw mut self.handle)
        })
    }
}
