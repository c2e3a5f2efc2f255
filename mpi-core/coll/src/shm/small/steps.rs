//! Steps of the short collectives: publish data in a cell, wait for other ranks' cells, copy from them.

use super::data::{Given, Target};
use super::{OpInCell, SmallOp};
use crate::Error;
use crate::shm::wait::Wait;
use mpi_base::cells::CellOf;
use mpi_base::occupancy::Occupancy;
use std::ops::Range;

/// Waits until this rank may write to its cell.
///
/// The macro polls before it creates a future,
/// since the cell is nearly always free and a future takes half of the time of a short call.
/// An async function that polls first would cost as much as a future, because the compiler does not inline its poll if several calls share it.
macro_rules! await_room {
    ($op:expr) => {
        if !$op.cells.has_room($op.address) {
            $op.make_room().await?;
        }
    };
}

/// Waits until this rank's cell may be written, then publishes data in it.
macro_rules! show {
    ($op:expr, $data:expr) => {{
        await_room!($op);
        $op.show_at_once($data);
    }};
}

/// Waits until a cell's data have been published; polls first, without a future.
macro_rules! await_cell {
    ($op:expr, $cell:expr) => {
        if !$op
            .wait
            .at_once($op.engine, $op.cells.watch($cell, $op.address))?
        {
            $op.await_cell($cell).await?;
        }
    };
}

pub(super) use {await_cell, await_room, show};

impl<W: Wait> SmallOp<'_, W> {
    #[inline(always)]
    pub(super) fn me(&self) -> u32 {
        self.members.me()
    }
}

impl<W: Wait> OpInCell<'_, '_, W> {
    /// Publishes data in this rank's cell, which must be free.
    #[inline(always)]
    pub(super) fn show_at_once(&self, data: &impl Given) {
        self.fill(self.me(), data);
        self.publish_of(data.bytes());
    }

    #[cold]
    pub(super) async fn make_room(&self) -> Result<(), Error> {
        self.cells
            .make_room(self.wait, self.engine, self.address)
            .await
    }

    /// Writes data to this rank's cell or to the result cell, without publishing them.
    #[inline(always)]
    pub(super) fn fill(&self, cell: impl Into<CellOf> + Copy, data: &impl Given) {
        let len = data.bytes();
        self.cells
            .compose(cell, self.address, 0..len, |buffer| data.pack(buffer));
    }

    /// Publishes this rank's cell; with a core per rank, also prefetches the line of the next cell.
    #[inline(always)]
    fn publish(&self) {
        self.publish_of(0);
    }

    /// Publishes the header in another member's cell, to which this rank has written; `bytes` is the length of the data.
    pub(super) fn publish_for(&self, cell: u32, bytes: usize) {
        self.cells.publish_of(cell, self.address, bytes);
        if self.occupancy == Occupancy::Dedicated {
            self.cells.prefetch().next_of(cell, self.address);
        }
    }

    /// Publishes this rank's cell with the length of the data, in bytes.
    #[inline(always)]
    pub(super) fn publish_of(&self, bytes: usize) {
        self.cells.publish_of(self.me(), self.address, bytes);
        if self.occupancy == Occupancy::Dedicated {
            self.cells.prefetch().next(self.address);
        }
    }

    /// Publishes data except for the range `but` of packed bytes, which no rank reads.
    #[inline]
    pub(super) async fn show_around(
        &self,
        data: &impl Given,
        but: Range<usize>,
    ) -> Result<(), Error> {
        let Some(data) = data.run() else {
            show!(self, data);
            return Ok(());
        };
        await_room!(self);
        let before = data.get(..but.start).unwrap_or(&[]);
        let behind = data.get(but.end..).unwrap_or(&[]);
        let (cells, me) = (self.cells, self.me());
        cells.fill(me, self.address, 0, before);
        cells.fill(me, self.address, but.end, behind);
        self.publish();
        Ok(())
    }

    /// Publishes the data of all items in `row`, packed one after another, in this rank's cell.
    pub(super) async fn show_row<G: Given>(
        &self,
        row: impl Iterator<Item = G>,
    ) -> Result<(), Error> {
        await_room!(self);
        row.fold(0, |at, data| {
            let len = data.bytes();
            self.cells
                .compose(self.me(), self.address, at..at + len, |buffer| {
                    data.pack(buffer)
                });
            at + len
        });
        self.publish();
        Ok(())
    }

    /// Returns true if the data of a cell have been published.
    #[inline(always)]
    pub(super) fn seen(&self, cell: impl Into<CellOf> + Copy) -> bool {
        self.cells.seen(cell, self.address)
    }

    /// Polls for a rank's data before the wait for them; the poll is delayed
    /// if a delay is useful ([`PollDelay`](crate::shm::poll_delay::PollDelay)).
    #[inline(always)]
    pub(super) fn is_shown_soon(&self, rank: u32) -> bool {
        self.cells.poll_delay().poll(|| self.seen(rank))
    }

    #[cold]
    pub(super) async fn await_cell(&self, cell: impl Into<CellOf> + Copy) -> Result<(), Error> {
        let seen = self.cells.watch(cell, self.address);
        self.wait.until(self.engine, seen).await
    }

    #[inline]
    pub(super) async fn await_cells(&self, ranks: impl Iterator<Item = u32>) -> Result<(), Error> {
        // During the first rank's poll the other ranks have had time to arrive,
        // so these are polled without a delay.
        for (polled, rank) in ranks.enumerate() {
            let there = match polled {
                0 => self.is_shown_soon(rank),
                _ => self.seen(rank),
            };
            if !there {
                await_cell!(self, rank);
            }
        }
        Ok(())
    }

    /// Copies the data of a cell, from byte `at` on, to a buffer.
    #[inline]
    pub(super) fn take(&self, cell: impl Into<CellOf> + Copy, at: usize, buffer: &impl Target) {
        let bytes = at..at + buffer.bytes();
        self.cells
            .inspect(cell, self.address, bytes, |data| buffer.take(data));
    }

    #[inline(always)]
    pub(super) fn ring_others(&self) {
        match self.occupancy {
            Occupancy::Dedicated => self.members.ring_each(),
            Occupancy::Oversubscribed => self.members.ring_all(),
        }
    }

    /// Waits until every rank has published its data.
    /// If ranks are oversubscribed, the last rank to arrive does the `work` for all ranks
    /// and publishes the result; returns true if there is a published result.
    /// Returns the error of `work`, or of a wait that cannot complete: see [`or_leave`](crate::shm::wait::or_leave).
    #[inline]
    pub(super) async fn meet(
        &self,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<bool, Error> {
        if self.occupancy == Occupancy::Dedicated {
            self.ring_others();
            self.await_cells(self.members.others()).await?;
            return Ok(false);
        }
        let is_last = self.cells.arrive(self.address);
        self.meet_having_arrived(is_last, work).await
    }

    /// The part of [`Self::meet`] for oversubscribed ranks, after this rank's arrival.
    #[inline]
    pub(super) async fn meet_having_arrived(
        &self,
        is_last: bool,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<bool, Error> {
        if !is_last {
            await_cell!(self, CellOf::Result);
            return Ok(true);
        }
        self.cells.prefetch().all(self.address);
        self.cells.forget_arrivals(self.address);
        let outcome = work();
        self.members.ring_all();
        outcome.map(|()| true)
    }

    /// Publishes the result of an operation for all ranks.
    pub(super) fn conclude(&self, result: &impl Given) {
        self.fill(CellOf::Result, result);
        self.conclude_empty();
    }

    /// Publishes the result cell with its present contents.
    pub(super) fn conclude_empty(&self) {
        self.cells.publish(CellOf::Result, self.address);
    }

    /// Notifies the root that this rank has published its data.
    #[inline]
    pub(super) fn report(&self, root: u32) {
        if self.occupancy == Occupancy::Dedicated || self.cells.arrive(self.address) {
            self.members.ring(root);
        }
    }

    /// On the root: waits until every rank has published its data.
    #[inline]
    pub(super) async fn await_reports(&self) -> Result<(), Error> {
        if self.occupancy == Occupancy::Dedicated {
            return self.await_cells(self.members.others()).await;
        }
        await_room!(self);
        let (cells, address) = (self.cells, self.address);
        if !cells.arrive(address) {
            let arrived = || cells.all_arrived(address);
            if !self.wait.at_once(self.engine, arrived)? {
                self.wait.until(self.engine, arrived).await?;
            }
        }
        cells.prefetch().all(address);
        cells.forget_arrivals(address);
        Ok(())
    }
}
