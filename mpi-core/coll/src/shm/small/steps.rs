//! What the short collectives are made of: showing data in a cell, waiting for those of others, taking them.

use super::data::{Given, Room};
use super::{Placed, Turn};
use crate::Error;
use crate::shm::barrier::Kind;
use crate::shm::wait::Waits;
use mpi_base::cells::Place;
use std::ops::Range;

/// Waits until a turn's rank may write its cell.
///
/// What is nearly always there is asked for before a future is made to wait for it: that costs as much as half a short call.
/// So does a future that asks, since the compiler leaves the polling of those that several calls share a function of its own.
macro_rules! await_room {
    ($turn:expr) => {
        if !$turn.cells.has_room($turn.spot) {
            $turn.make_room().await;
        }
    };
}

/// Shows data in the cell of a turn's rank, as soon as that may be written.
macro_rules! show {
    ($turn:expr, $data:expr) => {{
        await_room!($turn);
        $turn.show_at_once($data);
    }};
}

/// Waits until a place shows its data, at once where that is possible.
macro_rules! await_cell {
    ($turn:expr, $place:expr) => {
        if !$turn
            .wait
            .at_once($turn.engine, $turn.cells.watch($place, $turn.spot))
        {
            $turn.await_cell($place).await;
        }
    };
}

pub(super) use {await_cell, await_room, show};

impl<W: Waits> Turn<'_, W> {
    #[inline(always)]
    pub(super) fn me(&self) -> u32 {
        self.members.me()
    }
}

impl<W: Waits> Placed<'_, '_, W> {
    /// Shows data in this rank's cell, for which there is room.
    #[inline(always)]
    pub(super) fn show_at_once(&self, data: &impl Given) {
        self.fill(self.me(), data);
        self.publish_of(data.bytes());
    }

    #[cold]
    pub(super) async fn make_room(&self) {
        self.cells
            .make_room(self.wait, self.engine, self.spot)
            .await;
    }

    /// Writes data into a cell of this rank, or of the result.
    #[inline(always)]
    pub(super) fn fill(&self, place: impl Into<Place> + Copy, data: &impl Given) {
        let len = data.bytes();
        self.cells
            .compose(place, self.spot, 0..len, |room| data.pack(room));
    }

    /// Shows what this rank's cell has been filled with, and asks for the line of the next one, where no other rank needs the core meanwhile.
    #[inline(always)]
    fn publish(&self) {
        self.publish_of(0);
    }

    /// The same, which says how long it is.
    #[inline(always)]
    fn publish_of(&self, bytes: usize) {
        self.cells.publish_of(self.me(), self.spot, bytes);
        if self.kind == Kind::Flags {
            self.cells.fetch_next(self.spot);
        }
    }

    /// Shows data but for some of the packed bytes, which no rank asks for.
    #[inline]
    pub(super) async fn show_around(&self, data: &impl Given, but: Range<usize>) {
        let Some(data) = data.run() else {
            show!(self, data);
            return;
        };
        await_room!(self);
        let before = data.get(..but.start).unwrap_or(&[]);
        let behind = data.get(but.end..).unwrap_or(&[]);
        let (cells, me) = (self.cells, self.me());
        cells.fill(me, self.spot, 0, before);
        cells.fill(me, self.spot, but.end, behind);
        self.publish();
    }

    /// Shows data side by side.
    pub(super) async fn show_row<G: Given>(&self, row: impl Iterator<Item = G>) {
        await_room!(self);
        row.fold(0, |at, data| {
            let len = data.bytes();
            self.cells
                .compose(self.me(), self.spot, at..at + len, |room| data.pack(room));
            at + len
        });
        self.publish();
    }

    /// Whether a place shows its data.
    #[inline(always)]
    pub(super) fn seen(&self, place: impl Into<Place> + Copy) -> bool {
        self.cells.seen(place, self.spot)
    }

    /// Whether a rank shows its data, by one that will wait for them otherwise ([`PollDelay`](crate::shm::poll_delay::PollDelay)).
    #[inline(always)]
    pub(super) fn comes(&self, rank: u32) -> bool {
        self.cells.patience().look(|| self.seen(rank))
    }

    #[cold]
    pub(super) async fn await_cell(&self, place: impl Into<Place> + Copy) {
        let seen = self.cells.watch(place, self.spot);
        self.wait.until(self.engine, seen).await;
    }

    #[inline]
    pub(super) async fn await_cells(&self, ranks: impl Iterator<Item = u32>) {
        // Every other rank that is waited for has had time meanwhile.
        for (looked, rank) in ranks.enumerate() {
            let there = match looked {
                0 => self.comes(rank),
                _ => self.seen(rank),
            };
            if !there {
                await_cell!(self, rank);
            }
        }
    }

    /// Takes what a place shows, from byte `at` on.
    #[inline]
    pub(super) fn take(&self, place: impl Into<Place> + Copy, at: usize, room: &impl Room) {
        let bytes = at..at + room.bytes();
        self.cells
            .inspect(place, self.spot, bytes, |data| room.take(data));
    }

    #[inline(always)]
    pub(super) fn ring_others(&self) {
        match self.kind {
            Kind::Flags => self.members.ring_each(),
            Kind::Counter => self.members.ring_all(),
        }
    }

    /// Waits until every rank has shown its data.
    /// Where ranks share cores the last to come does the `work` for all and shows it as the result; true for those that find it there.
    #[inline]
    pub(super) async fn meet(
        &self,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<bool, Error> {
        if self.kind == Kind::Flags {
            self.ring_others();
            self.await_cells(self.members.others()).await;
            return Ok(false);
        }
        let is_last = self.cells.arrive(self.spot);
        self.meet_having_arrived(is_last, work).await
    }

    /// The same where ranks share cores, by one that has arrived.
    #[inline]
    pub(super) async fn meet_having_arrived(
        &self,
        is_last: bool,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<bool, Error> {
        if !is_last {
            await_cell!(self, Place::Result);
            return Ok(true);
        }
        self.cells.fetch_all(self.spot);
        self.cells.forget_arrivals(self.spot);
        let outcome = work();
        self.members.ring_all();
        outcome.map(|()| true)
    }

    /// Shows the result of an operation in place of all ranks.
    pub(super) fn conclude(&self, result: &impl Given) {
        self.fill(Place::Result, result);
        self.conclude_empty();
    }

    /// Shows as the result what its cell has been filled with, if anything.
    pub(super) fn conclude_empty(&self) {
        self.cells.publish(Place::Result, self.spot);
    }

    /// Tells the root that this rank has shown its data.
    #[inline]
    pub(super) fn report(&self, root: u32) {
        if self.kind == Kind::Flags || self.cells.arrive(self.spot) {
            self.members.ring(root);
        }
    }

    /// Waits, at the root, until every rank has shown its data.
    #[inline]
    pub(super) async fn await_reports(&self) {
        if self.kind == Kind::Flags {
            return self.await_cells(self.members.others()).await;
        }
        await_room!(self);
        let (cells, spot) = (self.cells, self.spot);
        if !cells.arrive(spot) {
            let arrived = || cells.all_arrived(spot);
            if !self.wait.at_once(self.engine, arrived) {
                self.wait.until(self.engine, arrived).await;
            }
        }
        cells.fetch_all(spot);
        cells.forget_arrivals(spot);
    }
}
