//! Short collectives that move data as they are.

use super::Turn;
use super::data::{CopyTo, Given, Room};
use super::steps::{await_room, show};
use crate::Error;
use crate::coll::shm::wait::Waits;
use mpi_base::copy::copy;

impl<W: Waits> Turn<'_, W> {
    #[inline]
    pub(super) async fn bcast(&self, buf: &impl Room, root: u32) {
        if self.me() == root {
            show!(self, buf);
            self.ring_others();
        } else {
            if !self.seen(root) {
                self.await_cell(root).await;
            }
            self.take(root, 0, buf);
        }
        self.cells.end(self.members, self.number);
    }

    /// `recv` has a block of `len` bytes for each rank; without `send` this rank's own is in its place.
    #[inline]
    pub(super) async fn allgather<R: Room>(
        &self,
        send: Option<&impl Given>,
        recv: &R,
        len: usize,
    ) -> Result<(), Error> {
        let members = self.members.count();
        let block = |rank: u32| recv.part(rank as usize * len, len);
        match send {
            Some(send) => show!(self, send),
            None => show!(self, &block(self.me())),
        }
        let step = len.next_multiple_of(8);
        // One run of lines is read sooner than a line of each rank.
        let joined = step * members as usize <= self.cells.capacity();
        let work = || {
            if joined {
                self.join(step, len);
            }
            self.conclude_empty();
            Ok(())
        };
        let joined = self.meet(work).await? && joined;
        match joined {
            // What lies there as it goes here is copied at once.
            true if step == len => self.take(self.cells.result(), 0, recv),
            _ => {
                for rank in 0..members {
                    match joined {
                        true => self.take(self.cells.result(), rank as usize * step, &block(rank)),
                        false => self.take(rank, 0, &block(rank)),
                    }
                }
            }
        }
        self.cells.end_together(self.members, self.number);
        Ok(())
    }

    /// Writes to the result the blocks of `len` bytes that all show, each `step` behind the one before.
    #[cold]
    fn join(&self, step: usize, len: usize) {
        for rank in 0..self.members.count() {
            let at = rank as usize * step;
            self.cells.pass_on(self.number, rank, 0..len, at);
        }
    }

    /// `send`, or without it `recv`, has a block of `len` bytes for each rank.
    #[inline]
    pub(super) async fn alltoall<R: Room>(
        &self,
        send: Option<&impl Given>,
        recv: &R,
        len: usize,
    ) -> Result<(), Error> {
        let members = self.members.count();
        match send {
            Some(send) => show!(self, send),
            None => show!(self, recv),
        }
        let (count, mine) = (members as usize, self.me() as usize);
        let joined = len * count * count <= self.cells.capacity();
        let work = || {
            if joined {
                self.transpose(len);
            }
            self.conclude_empty();
            Ok(())
        };
        match self.meet(work).await? && joined {
            true => self.take(self.cells.result(), mine * count * len, recv),
            false => {
                for rank in 0..members {
                    self.take(rank, mine * len, &recv.part(rank as usize * len, len));
                }
            }
        }
        self.cells.end_together(self.members, self.number);
        Ok(())
    }

    /// Writes to the result, for one rank after another, the blocks of `len` bytes that all have for it.
    #[cold]
    fn transpose(&self, len: usize) {
        let (cells, number, ranks) = (self.cells, self.number, self.members.count());
        let count = ranks as usize;
        let all = 0..count * count * len;
        cells.compose(cells.result(), number, all, |room| {
            for rank in 0..ranks {
                cells.inspect(rank, number, 0..count * len, |data| {
                    for (to, block) in data.chunks_exact(len.max(1)).enumerate() {
                        let at = (to * count + rank as usize) * len;
                        copy(block, &mut room[at..at + len]);
                    }
                });
            }
        });
    }

    /// At the root `recv` has a block of `len` bytes for each rank.
    #[inline]
    pub(super) async fn gather<R: Room>(
        &self,
        send: Option<&impl CopyTo<R>>,
        recv: Option<&R>,
        len: usize,
        root: u32,
    ) {
        if let (true, Some(recv)) = (self.me() == root, recv) {
            let block = |rank: u32| recv.part(rank as usize * len, len);
            if let Some(send) = send {
                send.copy_to(&block(root));
            }
            self.await_reports().await;
            for rank in self.members.others() {
                self.take(rank, 0, &block(rank));
            }
        } else if let Some(send) = send {
            show!(self, send);
            self.report(root);
        }
        self.cells.end(self.members, self.number);
    }

    /// At the root `send` has a block of `len` bytes for each rank.
    #[inline]
    pub(super) async fn scatter<R: Room>(
        &self,
        send: Option<&impl CopyTo<R>>,
        recv: Option<&R>,
        len: usize,
        root: u32,
    ) {
        if let (true, Some(send)) = (self.me() == root, send) {
            show!(self, send);
            self.ring_others();
            if let Some(recv) = recv {
                send.part(root as usize * len, len).copy_to(recv);
            }
        } else if let Some(recv) = recv {
            if !self.seen(root) {
                self.await_cell(root).await;
            }
            self.take(root, self.me() as usize * len, recv);
        }
        self.cells.end(self.members, self.number);
    }
}
