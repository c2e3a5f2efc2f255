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

/// The same where one rank alone wants the result and has to read all pieces but its own a second time.
const ROOTS_PIECE: i64 = 256 << 10;

/// What one rank combines: everybody's elements from `start` on, as many as `place` has room for.
struct Job<'a> {
    start: i64,
    place: &'a RecvBuf,
}

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
        // In place, two ranks would read what the other's result overwrites.
        let moved = match (recv, self.size(), root) {
            (Some(recv), 2, None) if recv.ptr().cast_const() == own.ptr() => operand(None, recv)?,
            _ => own.clone(),
        };
        let own = &moved;
        self.show(inputs, own.ptr().addr() as u64).await;
        let piece = match root {
            None => PIECE,
            Some(_) => ROOTS_PIECE,
        };
        let team = Team {
            workers: (own.bytes() / piece).clamp(1, self.size().into()) as u32,
            first: root.unwrap_or(0),
            size: self.size(),
        };
        if self.size() == 2 || (root.is_some() && team.workers == 1) {
            return self.reduce_alone(own, recv, op, root).await;
        }
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
            let job = Job {
                start: piece.start,
                place: &place,
            };
            outcome = self.combine(own, job, &operands, op, || ()).await;
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

    /// Who wants the result works alone, and lets the others go when it has read what they have.
    async fn reduce_alone(
        &self,
        own: &SendBuf,
        recv: Option<&RecvBuf>,
        op: &Op,
        root: Option<u32>,
    ) -> Result<(), Error> {
        let (inputs, results) = (self.number, self.number + 1);
        let read = || self.end(inputs);
        let mut outcome = Ok(());
        match recv {
            Some(recv) => {
                let job = Job {
                    start: 0,
                    place: recv,
                };
                outcome = self.combine_alone(own, job, op, read).await;
            }
            None => read(),
        }
        let reads = |rank| root.is_none_or(|root| root == rank);
        self.await_readers(inputs, reads).await;
        self.end(results);
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
        let job = Job {
            start: mine.start,
            place: &whole.slice(0..mine.end - mine.start),
        };
        let read = || self.end(self.number);
        let outcome = self.combine_alone(&own, job, op, read).await;
        self.await_readers(self.number, |_| true).await;
        outcome
    }

    /// Combines what all ranks up to this one have: from rank to rank, each reads what the one before has combined.
    pub(super) async fn scan(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        let own = send.cloned().unwrap_or_else(|| recv.as_send());
        let copy_own = || {
            if let Some(send) = send {
                algo::copy(send, recv);
            }
        };
        let Some(before) = self.before() else {
            // The next rank reads sooner what nobody has just written.
            self.pass_on(own.ptr().addr() as u64, copy_own).await;
            return Ok(());
        };
        copy_own();
        let outcome = self.prepend(before, recv, op).await;
        // Also where something has failed, for somebody waits.
        self.pass_on(recv.ptr().addr() as u64, || ()).await;
        outcome
    }

    /// The same of all ranks before this one, which has to combine more than it keeps.
    pub(super) async fn exscan(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        let own = send.cloned().unwrap_or_else(|| recv.as_send());
        let Some(before) = self.before() else {
            self.pass_on(own.ptr().addr() as u64, || ()).await;
            return Ok(());
        };
        let sum = algo::elements(recv.count(), recv.datatype())?.all();
        algo::copy(&own, &sum);
        let at = self.address(self.number, before).await;
        let mut outcome = self.read(before, at, recv);
        if outcome.is_ok() {
            outcome = op
                .apply(&recv.as_send(), &mut sum.clone())
                .map_err(Error::from);
        }
        self.pass_on(sum.ptr().addr() as u64, || ()).await;
        outcome
    }

    /// The rank before this one.
    fn before(&self) -> Option<u32> {
        self.me().checked_sub(1)
    }

    /// `place = what another rank shows op place`
    async fn prepend(&self, rank: u32, place: &RecvBuf, op: &Op) -> Result<(), Error> {
        let at = self.address(self.number, rank).await;
        let datatype = place.datatype();
        let spaces = block(datatype).min(place.count());
        let room = self.large.room(spaces, datatype)?;
        let mut done = 0;
        while done < place.count() {
            let count = spaces.min(place.count() - done);
            let left = room.recv(0..count);
            self.read(rank, at + datatype.bytes(done) as u64, &left)?;
            op.apply(&left.as_send(), &mut place.slice(done..done + count))?;
            done += count;
        }
        self.large.keep(room);
        Ok(())
    }

    /// Lets the next rank read what has been combined so far, and waits until it has; what is to do `meanwhile` changes nothing of it.
    async fn pass_on(&self, at: u64, meanwhile: impl FnOnce()) {
        let next = self.me() + 1;
        self.end(self.number);
        if next == self.size() {
            return meanwhile();
        }
        self.place(self.number, at).await;
        self.members.ring(next);
        meanwhile();
        self.await_readers(self.number, |rank| rank == next).await;
    }

    /// As [`Turn::combine`], in room of its own; `read` is called in any case.
    async fn combine_alone(
        &self,
        own: &SendBuf,
        job: Job<'_>,
        op: &Op,
        read: impl FnOnce(),
    ) -> Result<(), Error> {
        let mut read = Some(read);
        let mut end_reading = || {
            if let Some(read) = read.take() {
                read();
            }
        };
        let spaces = 2 * block(own.datatype()).min(job.place.count());
        let outcome = match self.large.room(spaces, own.datatype()) {
            Ok(room) => {
                let operands = room.recv(0..spaces);
                let outcome = self
                    .combine(own, job, &operands, op, &mut end_reading)
                    .await;
                self.large.keep(room);
                outcome
            }
            Err(e) => Err(e),
        };
        end_reading();
        outcome
    }

    /// Combines, from the last rank to the first; `operands` has room for two blocks.
    /// `read` is called when nothing more will be read from others, unless something fails.
    async fn combine(
        &self,
        own: &SendBuf,
        job: Job<'_>,
        operands: &RecvBuf,
        op: &Op,
        read: impl FnOnce(),
    ) -> Result<(), Error> {
        let Job { start, place } = job;
        let last = self.size() - 1;
        let mut addresses = Vec::with_capacity(self.size() as usize);
        for rank in 0..self.size() {
            addresses.push(match rank == self.me() {
                true => own.ptr().addr() as u64,
                false => self.address(self.number, rank).await,
            });
        }
        let width = place.datatype().size().max(1);
        let each = operands.count() / 2;
        // In place our own operand is where the result goes, so the sum grows elsewhere.
        let shares_place = own.slice(start..start + place.count()).ptr() == place.ptr();
        let mut read = Some(read);
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
            let is_last = at + count == place.count();
            // The lowest rank whose data are somebody else's.
            let end = u32::from(self.me() == 0);
            let mut end_reading = |rank| {
                if let Some(read) = read.take_if(|_| is_last && rank <= end) {
                    read();
                }
            };
            end_reading(last);
            for rank in (0..last).rev() {
                let operand = match rank == self.me() {
                    true => mine.clone(),
                    false => {
                        fetch(rank, &left)?;
                        end_reading(rank);
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
