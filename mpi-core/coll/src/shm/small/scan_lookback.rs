//! Scans on oversubscribed ranks: each rank publishes the prefix up to its own operand, from which the next rank continues.
//!
//! If a rank arrives after its predecessor, it reads one cell and writes one, for any number of ranks.
//! In a series of scans, rank 0 may be ahead of the others by the number of cells in the ring.
//!
//! If a rank arrives before its predecessor's prefix has been published, it offers its operand to the predecessor, and polls only its own cell.
//! A rank that has finished checks whether the next rank has offered its operand.
//! If so, it claims the offer, combines its prefix with the operand,
//! publishes the result in the next rank's cell, and checks the rank after that.
//! So if several ranks wait for one rank, that rank does the work of all of them,
//! and a rank that is scheduled in later finds its result.
//! If a rank sees its predecessor's prefix after it has made its offer, it tries to claim the offer itself;
//! only one of the two ranks can claim an offer.
//!
//! D. Merrill, M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back",
//! NVIDIA Technical Report NVR-2016-002, describes this look-back in the other direction.
//! Here the finishing rank looks ahead instead, so that a waiting rank polls only one cache line.
//!
//! Operands are always combined one after another from rank 0 on,
//! so the result does not depend on timing.

use super::OpInCell;
use super::data::{CopyTo, Target};
use super::steps::{await_cell, await_room};
use crate::Error;
use crate::op::DenseOp;
use crate::shm::layout::FEW;
use crate::shm::wait::Wait;
use mpi_base::atomic::{Ordering, fence};

impl<W: Wait> OpInCell<'_, '_, W> {
    /// Inclusive scan if `with_own` is true, otherwise exclusive scan.
    #[inline]
    pub(super) async fn scan_on<G: CopyTo<R>, R: Target>(
        &self,
        send: Option<&G>,
        recv: &R,
        op: &DenseOp,
        with_own: bool,
    ) -> Result<(), Error> {
        let (me, before) = (self.me(), self.me().checked_sub(1));
        await_room!(self);
        self.cells
            .prefetch()
            .both(self.address, 2, before.unwrap_or(me));
        match send {
            Some(send) => self.fill(me, send),
            None => self.fill(me, recv),
        }
        if before.is_none_or(|before| self.seen(before)) || self.comes_after_all() {
            self.add_own(me, recv.bytes(), op);
        } else if self.members.count() > FEW {
            let wait = self.wait;
            wait.until_unlike_others(self.engine, || self.seen(me))
                .await?;
        } else {
            await_cell!(self, me);
        }
        match before {
            _ if with_own => self.take(me, 0, recv),
            Some(before) => self.take(before, 0, recv),
            None => {}
        }
        self.cells.end(self.members, self.number);
        self.help(recv.bytes(), op);
        Ok(())
    }

    /// Offers this rank's operand to its predecessor.
    /// Returns true if this rank has then seen the predecessor's prefix and claimed the offer itself.
    #[cold]
    fn comes_after_all(&self) -> bool {
        let (cells, me) = (self.cells, self.me());
        cells.offer(self.address);
        self.seen(me - 1) && cells.claim(me, self.address)
    }

    /// Combines the predecessor's prefix with the operand in the cell of `rank`, and publishes the result.
    #[inline(always)]
    fn add_own(&self, rank: u32, len: usize, op: &DenseOp) {
        let (cells, address) = (self.cells, self.address);
        if let Some(before) = rank.checked_sub(1) {
            cells.inspect(before, address, 0..len, |data| {
                cells.compose(rank, address, 0..len, |sum| op.combine(data, sum));
            });
        }
        cells.publish(rank, address);
    }

    /// Computes the prefixes of the following ranks that have offered their operands.
    ///
    /// This rank has published its prefix before it ended the operation, and the end executes a fence.
    /// So if an offer comes too late to be seen here, the offering rank finds the prefix.
    #[inline(always)]
    fn help(&self, len: usize, op: &DenseOp) {
        let next = self.me() + 1;
        if next < self.members.count() && self.cells.claim(next, self.address) {
            self.help_on(next, len, op);
        }
    }

    #[cold]
    fn help_on(&self, first: u32, len: usize, op: &DenseOp) {
        for rank in first..self.members.count() {
            if rank > first && !self.cells.claim(rank, self.address) {
                return;
            }
            self.add_own(rank, len, op);
            // SYNC POINT cells.offered
            fence(Ordering::SeqCst);
            self.members.ring(rank);
        }
    }
}
