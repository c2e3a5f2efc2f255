//! Long collectives that combine data.

use super::{BLOCK, Turn};
use crate::Error;
use crate::coll::algo::{self, share};
use crate::coll::shm::wait::Waits;
use crate::datatype::{Datatype, RecvBuf, Scratch, SendBuf};
use crate::op::Op;
use std::ops::Range;

/// A worker's piece is not shorter than this: below, one more read costs more than it saves.
const PIECE: i64 = 16 << 10;

impl<W: Waits> Turn<'_, W> {
    /// To `recv` at the root, or at all ranks if there is none; `recv` is `Some` where there is a result.
    pub(super) async fn reduce(
        &self,
        own: &SendBuf,
        recv: Option<&RecvBuf>,
        op: &Op,
        root: Option<u32>,
    ) -> Result<(), Error> {
        let (inputs, results) = (self.number, self.number + 1);
        self.show(inputs, own.ptr().addr() as u64).await;
        let team = Team {
            workers: (own.bytes() / PIECE).clamp(1, self.size().into()) as u32,
            first: root.unwrap_or(0),
            size: self.size(),
        };
        let piece = |worker: u32| share(own.count(), team.workers, worker);

        let mut outcome = Ok(());
        // Where operands come to, and this rank's piece of the result is, until everybody has read it.
        let mut room = None;
        if let Some(worker) = team.worker(self.me()) {
            let piece = piece(worker);
            let spaces = 2 * block(own.datatype()).min(piece.end - piece.start);
            let result = if recv.is_some() {
                0
            } else {
                piece.end - piece.start
            };
            let room: &Scratch = room.insert(self.large.room(spaces + result, own.datatype())?);
            let operands = room.recv(0..spaces);
            let place = match recv {
                Some(recv) => recv.slice(piece.clone()),
                None => room.recv(spaces..spaces + piece.end - piece.start),
            };
            outcome = self
                .combine(inputs, self.size(), own, piece.start, &place, &operands, op)
                .await;
            self.show(results, place.ptr().addr() as u64).await;
        }
        for worker in 0..team.workers {
            let rank = team.rank(worker);
            if rank == self.me() {
                continue;
            }
            // Without a result to read, this still says that the worker has read our data.
            let at = self.address(results, rank).await;
            if let Some(recv) = recv {
                let place = recv.slice(piece(worker));
                outcome = outcome.and_then(|()| self.read(rank, at, &place));
            }
        }
        let is_worker = team.worker(self.me()).is_some();
        let reads = |rank| is_worker && root.is_none_or(|root| root == rank);
        self.end(inputs);
        self.end_with(results, reads).await;
        if let Some(room) = room {
            self.large.keep(room);
        }
        outcome
    }

    /// Each rank gets the sum of its elements: who reads them works on them, and nothing is left to be read from others.
    pub(super) async fn reduce_scatter(
        &self,
        send: Option<&SendBuf>,
        whole: &RecvBuf,
        mine: Range<i64>,
        op: &Op,
    ) -> Result<(), Error> {
        let own = operand(send, whole)?;
        self.show(self.number, own.ptr().addr() as u64).await;
        let place = whole.slice(0..mine.end - mine.start);
        let outcome = self
            .combine_alone(self.size(), &own, mine.start, &place, op)
            .await;
        self.end_with(self.number, |_| true).await;
        outcome
    }

    /// Combines the data of the first `ranks`: all up to this one, or all before it.
    pub(super) async fn scan(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
        ranks: u32,
    ) -> Result<(), Error> {
        let own = operand(send, recv)?;
        self.show(self.number, own.ptr().addr() as u64).await;
        let outcome = self.combine_alone(ranks, &own, 0, recv, op).await;
        let me = self.me();
        self.end_with(self.number, |rank| rank > me).await;
        outcome
    }

    /// Combines elements of the first `ranks` into `place`, for this rank only.
    async fn combine_alone(
        &self,
        ranks: u32,
        own: &SendBuf,
        start: i64,
        place: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        let spaces = 2 * block(own.datatype()).min(place.count());
        let room = self.large.room(spaces, own.datatype())?;
        let operands = room.recv(0..spaces);
        let outcome = self
            .combine(self.number, ranks, own, start, place, &operands, op)
            .await;
        self.large.keep(room);
        outcome
    }

    /// Combines elements of the first `ranks` from `start` on, from the last rank to the first, into `place`; `operands` has room for two blocks.
    #[allow(clippy::too_many_arguments)]
    async fn combine(
        &self,
        inputs: u64,
        ranks: u32,
        own: &SendBuf,
        start: i64,
        place: &RecvBuf,
        operands: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        let Some(last) = ranks.checked_sub(1) else {
            return Ok(());
        };
        let mut addresses = Vec::with_capacity(ranks as usize);
        for rank in 0..ranks {
            addresses.push(match rank == self.me() {
                true => own.ptr().addr() as u64,
                false => self.address(inputs, rank).await,
            });
        }
        let width = place.datatype().size().max(1);
        let each = operands.count() / 2;
        // In place our own operand is where the result goes, so the sum grows elsewhere.
        let shares_place = own.slice(start..start + place.count()).ptr() == place.ptr();
        let mut at = 0;
        while at < place.count() {
            let count = each.min(place.count() - at);
            let home = place.slice(at..at + count);
            let sum = match shares_place && last != self.me() {
                true => operands.slice(0..count),
                false => home.clone(),
            };
            let left = operands.slice(each..each + count);
            let mine = own.slice(start + at..start + at + count);
            let offset = ((start + at) * width) as u64;
            let fetch = |rank: u32, into: &RecvBuf| {
                self.read(rank, addresses[rank as usize] + offset, into)
            };
            match last == self.me() {
                true if shares_place => {}
                true => algo::copy(&mine, &sum),
                false => fetch(last, &sum)?,
            }
            for rank in (0..last).rev() {
                let operand = match rank == self.me() {
                    true => mine.clone(),
                    false => {
                        fetch(rank, &left)?;
                        left.as_send()
                    }
                };
                op.apply(&operand, &mut sum.clone())?;
            }
            if sum.ptr() != home.ptr() {
                algo::copy(&sum.as_send(), &home);
            }
            at += count;
        }
        Ok(())
    }
}

/// A rank's operand where others read it while the result comes in: a copy if both are in one place.
fn operand(send: Option<&SendBuf>, recv: &RecvBuf) -> Result<SendBuf, Error> {
    if let Some(send) = send {
        return Ok(send.clone());
    }
    let own = algo::elements(recv.count(), recv.datatype())?.all();
    algo::copy(&recv.as_send(), &own);
    Ok(own.as_send())
}

/// The elements of a block.
fn block(datatype: &Datatype) -> i64 {
    (BLOCK / datatype.size().max(1)).max(1)
}

/// Which ranks work on a reduction.
struct Team {
    workers: u32,
    first: u32,
    size: u32,
}

impl Team {
    fn rank(&self, worker: u32) -> u32 {
        algo::ahead(self.first, worker, self.size)
    }

    fn worker(&self, rank: u32) -> Option<u32> {
        let worker = algo::behind(rank, self.first, self.size);
        (worker < self.workers).then_some(worker)
    }
}
