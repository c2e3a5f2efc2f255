//! What the short collectives are made of: showing data in a cell, waiting for those of others, taking them.

use super::Turn;
use crate::Error;
use crate::coll::shm::cells::{Cells, LONGEST};
use crate::coll::shm::gate::Kind;
use crate::coll::shm::wait::Waits;
use crate::datatype::{RecvBuf, SendBuf};
use std::ops::Range;

impl<W: Waits> Turn<'_, W> {
    pub(super) fn cells(&self) -> &Cells {
        &self.small.cells
    }

    pub(super) fn me(&self) -> u32 {
        self.members.me
    }

    /// Shows a buffer in this rank's cell.
    #[inline]
    pub(super) async fn show(&self, buf: &SendBuf) {
        if !self.has_room() {
            self.make_room().await;
        }
        self.put(buf);
    }

    /// Whether this rank's cell may be written.
    ///
    /// What is nearly always there is asked for before a future is made to wait for it: that costs as much as half a short call.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.cells().has_room(self.number)
    }

    #[cold]
    pub(super) async fn make_room(&self) {
        let engine = self.cx.engine();
        self.cells().make_room(self.wait, engine, self.number).await;
    }

    /// Shows a buffer in this rank's cell, which may be written.
    #[inline]
    pub(super) fn put(&self, buf: &SendBuf) {
        let cells = self.cells();
        packed(buf, |data| cells.show(self.me(), self.number, data));
        self.fetch_next();
    }

    /// Shows what this rank's cell has been filled with.
    #[inline]
    pub(super) fn publish(&self) {
        self.cells().publish(self.me(), self.number);
        self.fetch_next();
    }

    /// Asks for the line of the next cell, where nobody else needs the core meanwhile.
    #[inline]
    pub(super) fn fetch_next(&self) {
        if self.small.kind == Kind::Flags {
            self.cells().fetch_next(self.number);
        }
    }

    /// Shows a buffer but for some of its packed bytes, which nobody asks for.
    #[inline]
    pub(super) async fn show_around(&self, buf: &SendBuf, but: Range<usize>) {
        let Some(data) = buf.contiguous() else {
            return self.show(buf).await;
        };
        if !self.has_room() {
            self.make_room().await;
        }
        let cells = self.cells();
        let before = data.get(..but.start).unwrap_or(&[]);
        let behind = data.get(but.end..).unwrap_or(&[]);
        cells.fill(self.me(), self.number, 0, before);
        cells.fill(self.me(), self.number, but.end, behind);
        self.publish();
    }

    /// Whether a place shows its data.
    #[inline]
    pub(super) fn seen(&self, place: u32) -> bool {
        self.cells().seen(place, self.number)
    }

    #[inline]
    pub(super) async fn await_cell(&self, place: u32) {
        let (cells, number) = (self.cells(), self.number);
        let seen = || cells.seen(place, number);
        self.wait.until(self.cx.engine(), seen).await;
    }

    #[inline]
    pub(super) async fn await_cells(&self, ranks: impl Iterator<Item = u32>) {
        for rank in ranks {
            if !self.seen(rank) {
                self.await_cell(rank).await;
            }
        }
    }

    /// Takes what a place shows, from byte `at` on, into a buffer.
    #[inline]
    pub(super) fn take(&self, place: u32, at: usize, buf: &RecvBuf) {
        let mut buf = buf.clone();
        match buf.contiguous() {
            Some(data) => self.cells().read(place, self.number, at, data),
            None => {
                self.take_apart(place, at, &mut buf);
            }
        }
    }

    /// The same for a buffer that is not one run.
    #[cold]
    fn take_apart(&self, place: u32, at: usize, buf: &mut RecvBuf) {
        let len = buf.bytes() as usize;
        let mut copy = [0; LONGEST];
        let data = &mut copy[..len.min(LONGEST)];
        self.cells().read(place, self.number, at, data);
        buf.unpack_at(0, data);
    }

    #[inline]
    pub(super) fn ring_others(&self) {
        match self.small.kind {
            Kind::Flags => self
                .members
                .others()
                .for_each(|rank| self.members.ring(rank)),
            Kind::Counter => self.members.ring_all(),
        }
    }

    /// Waits until everybody has shown his data.
    /// Where ranks share cores the last to come does the `work` for all and shows it as the result; true for those who find it there.
    #[inline]
    pub(super) async fn meet(
        &self,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<bool, Error> {
        if self.small.kind == Kind::Flags {
            self.ring_others();
            self.await_cells(self.members.others()).await;
            return Ok(false);
        }
        if !self.cells().arrive(self.number) {
            self.await_cell(self.cells().result()).await;
            return Ok(true);
        }
        self.cells().fetch_all(self.number);
        self.cells().forget_arrivals(self.number);
        let outcome = work();
        self.members.ring_all();
        outcome.map(|()| true)
    }

    /// Shows the result of an operation in place of all ranks.
    pub(super) fn conclude(&self, result: &[u8]) {
        let cells = self.cells();
        cells.show(cells.result(), self.number, result);
    }

    /// Tells the root that this rank has shown its data.
    #[inline]
    pub(super) fn report(&self, root: u32) {
        if self.small.kind == Kind::Flags || self.cells().arrive(self.number) {
            self.members.ring(root);
        }
    }

    /// Waits, at the root, until everybody has shown his data.
    #[inline]
    pub(super) async fn await_reports(&self) {
        if self.small.kind == Kind::Flags {
            return self.await_cells(self.members.others()).await;
        }
        let (cells, number, engine) = (self.cells(), self.number, self.cx.engine());
        cells.make_room(self.wait, engine, number).await;
        if !cells.arrive(number) {
            let arrived = || cells.all_arrived(number);
            self.wait.until(engine, arrived).await;
        }
        cells.fetch_all(number);
        cells.forget_arrivals(number);
    }

    /// Waits until everybody has shown his data, which each then reads for himself.
    #[inline]
    pub(super) async fn meet_only(&self) -> Result<bool, Error> {
        self.meet(|| {
            self.conclude(&[]);
            Ok(())
        })
        .await
    }
}

/// Calls `with` with the packed data of a buffer, which fit a cell.
#[inline]
pub(super) fn packed(buf: &SendBuf, with: impl FnOnce(&[u8])) {
    match buf.contiguous() {
        Some(data) => with(data),
        None => pack(buf, with),
    }
}

#[cold]
fn pack(buf: &SendBuf, with: impl FnOnce(&[u8])) {
    let mut copy = [0; LONGEST];
    let len = buf.pack_at(0, &mut copy);
    with(&copy[..len]);
}
