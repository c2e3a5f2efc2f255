//! Short collectives that move data as they are.

use super::Turn;
use crate::Error;
use crate::coll::algo::{self, Blocks};
use crate::coll::shm::wait::Waits;
use crate::datatype::{RecvBuf, SendBuf};
use std::ops::Range;

impl<W: Waits> Turn<'_, W> {
    #[inline]
    pub(super) async fn bcast(&self, buf: &RecvBuf, root: u32) -> Result<(), Error> {
        if self.me() == root {
            if !self.has_room() {
                self.make_room().await;
            }
            self.put(&buf.as_send());
            self.ring_others();
        } else {
            if !self.seen(root) {
                self.await_cell(root).await;
            }
            self.take(root, 0, buf);
        }
        self.cells().end(self.members, self.number);
        Ok(())
    }

    #[inline]
    pub(super) async fn allgather(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
    ) -> Result<(), Error> {
        let members = self.members.count();
        let blocks = Blocks::equal(recv, members);
        if !self.has_room() {
            self.make_room().await;
        }
        match send {
            Some(send) => self.put(send),
            None => self.put(&blocks.of(self.me()).as_send()),
        }
        let len = recv.bytes() as usize;
        let step = len.next_multiple_of(8);
        // One run of lines is read sooner than a line of each rank.
        let joined = step * members as usize <= self.cells().capacity();
        let work = || {
            match joined {
                true => self.join(step, (0..members).map(|rank| (rank, 0..len))),
                false => self.conclude(&[]),
            }
            Ok(())
        };
        let joined = self.meet(work).await? && joined;
        for rank in 0..members {
            match joined {
                true => self.take(
                    self.cells().result(),
                    rank as usize * step,
                    &blocks.of(rank),
                ),
                false => self.take(rank, 0, &blocks.of(rank)),
            }
        }
        self.cells().end_together(self.members, self.number);
        Ok(())
    }

    /// Shows as the result a row of pieces, each `step` behind the one before: bytes of the cells of ranks.
    pub(super) fn join(&self, step: usize, pieces: impl Iterator<Item = (u32, Range<usize>)>) {
        for (i, (rank, bytes)) in pieces.enumerate() {
            self.cells().pass_on(self.number, rank, bytes, i * step);
        }
        self.conclude(&[]);
    }

    #[inline]
    pub(super) async fn alltoall(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
    ) -> Result<(), Error> {
        let members = self.members.count();
        let whole = |one: i64| one * i64::from(members);
        let all = match send {
            Some(send) => send.with_count(whole(send.count())),
            None => recv.with_count(whole(recv.count())).as_send(),
        };
        if !self.has_room() {
            self.make_room().await;
        }
        self.put(&all);
        let (len, count) = (recv.bytes() as usize, members as usize);
        let joined = len * count * count <= self.cells().capacity();
        let work = || {
            let piece = |i: usize| ((i % count) as u32, i / count * len..(i / count + 1) * len);
            match joined {
                true => self.join(len, (0..count * count).map(piece)),
                false => self.conclude(&[]),
            }
            Ok(())
        };
        let joined = self.meet(work).await? && joined;
        let (blocks, mine) = (Blocks::equal(recv, members), self.me() as usize);
        for rank in 0..members {
            let block = blocks.of(rank);
            match joined {
                true => {
                    let at = (mine * count + rank as usize) * len;
                    self.take(self.cells().result(), at, &block);
                }
                false => self.take(rank, mine * len, &block),
            }
        }
        self.cells().end_together(self.members, self.number);
        Ok(())
    }

    #[inline]
    pub(super) async fn gather(
        &self,
        send: Option<&SendBuf>,
        recv: Option<&RecvBuf>,
        root: u32,
    ) -> Result<(), Error> {
        if let (true, Some(recv)) = (self.me() == root, recv) {
            let blocks = Blocks::equal(recv, self.members.count());
            if let Some(send) = send {
                algo::copy(send, &blocks.of(root));
            }
            self.await_reports().await;
            for rank in self.members.others() {
                self.take(rank, 0, &blocks.of(rank));
            }
        } else if let Some(send) = send {
            if !self.has_room() {
                self.make_room().await;
            }
            self.put(send);
            self.report(root);
        }
        self.cells().end(self.members, self.number);
        Ok(())
    }

    #[inline]
    pub(super) async fn scatter(
        &self,
        send: Option<&SendBuf>,
        recv: Option<&RecvBuf>,
        root: u32,
    ) -> Result<(), Error> {
        if let (true, Some(send)) = (self.me() == root, send) {
            let members = self.members.count();
            if !self.has_room() {
                self.make_room().await;
            }
            self.put(&send.with_count(send.count() * i64::from(members)));
            self.ring_others();
            if let Some(recv) = recv {
                algo::copy(&Blocks::equal(send, members).of(root), recv);
            }
        } else if let Some(recv) = recv {
            if !self.seen(root) {
                self.await_cell(root).await;
            }
            let at = self.me() as usize * recv.bytes() as usize;
            self.take(root, at, recv);
        }
        self.cells().end(self.members, self.number);
        Ok(())
    }
}
