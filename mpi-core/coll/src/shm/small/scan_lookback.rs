//! Scans where ranks share cores: each rank shows what all up to it give together, and the next one goes on from that.
//!
//! So a rank that comes after the one before it reads one cell and writes one, however many ranks there are, and in a row of scans rank 0 may be as far ahead as there are cells.
//!
//! A rank that comes before that does not wait for it to go on itself: it offers its operand, and looks at its own cell only.
//! A rank that has finished looks whether the next rank has offered something; if so it claims that, puts what it has in front of it, shows it in the other's name, and looks further.
//! So a rank that several wait for does the work of all of them, and a rank that is switched in finds it done.
//! A rank that finds, after it has offered, that the one before has come meanwhile, claims its own offer; one of the two gets it.
//!
//! It is the look-back of D. Merrill, M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA Technical Report NVR-2016-002,
//! turned round, since a rank that waits here should look at one line.
//!
//! Operands are combined from the first rank on, one after another, whichever rank does it, so the result does not depend on which came when.

use super::Placed;
use super::data::{CopyTo, Room};
use super::steps::{await_cell, await_room};
use crate::op::DenseOp;
use crate::shm::cells::FEW;
use crate::shm::wait::Waits;
use mpi_base::atomic::{Ordering, fence};

impl<W: Waits> Placed<'_, '_, W> {
    /// Combines what all up to this rank give, `with_own`, or all before it.
    #[inline]
    pub(super) async fn scan_on<G: CopyTo<R>, R: Room>(
        &self,
        send: Option<&G>,
        recv: &R,
        op: &DenseOp,
        with_own: bool,
    ) {
        let (me, before) = (self.me(), self.me().checked_sub(1));
        await_room!(self);
        self.cells.fetch_ahead(self.spot, 2, before.unwrap_or(me));
        match send {
            Some(send) => self.fill(me, send),
            None => self.fill(me, recv),
        }
        if before.is_none_or(|before| self.seen(before)) || self.comes_after_all() {
            self.add_own(me, recv.bytes(), op);
        } else if self.members.count() > FEW {
            let wait = self.wait;
            wait.until_unlike_others(self.engine, || self.seen(me))
                .await;
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
    }

    /// Offers this rank's operand; true if no rank claims it since the rank before has shown its result meanwhile.
    #[cold]
    fn comes_after_all(&self) -> bool {
        let (cells, me) = (self.cells, self.me());
        cells.offer(self.spot);
        self.seen(me - 1) && cells.claim(me, self.spot)
    }

    /// Puts what all before a rank give in front of its operand, which is in its cell, and shows that.
    #[inline(always)]
    fn add_own(&self, rank: u32, len: usize, op: &DenseOp) {
        let (cells, spot) = (self.cells, self.spot);
        if let Some(before) = rank.checked_sub(1) {
            cells.inspect(before, spot, 0..len, |data| {
                cells.compose(rank, spot, 0..len, |sum| op.combine(data, sum));
            });
        }
        cells.publish(rank, spot);
    }

    /// Does the work of the next ranks if they wait for it.
    ///
    /// What this rank's result says was shown before it ended the operation, which has a fence.
    #[inline(always)]
    fn help(&self, len: usize, op: &DenseOp) {
        let next = self.me() + 1;
        if next < self.members.count() && self.cells.claim(next, self.spot) {
            self.help_on(next, len, op);
        }
    }

    #[cold]
    fn help_on(&self, first: u32, len: usize, op: &DenseOp) {
        for rank in first..self.members.count() {
            if rank > first && !self.cells.claim(rank, self.spot) {
                return;
            }
            self.add_own(rank, len, op);
            // SYNC POINT cells.offered
            fence(Ordering::SeqCst);
            self.members.ring(rank);
        }
    }
}
