//! Reductions and scans of long data by single copies.

use super::{BLOCK, LargeOp};
use crate::Error;
use crate::algo::{self, share};
use crate::datatype::{Datatype, RecvBuf, SendBuf};
use crate::op::Op;
use crate::shm::wait::{Wait, or_leave};
use mpi_base::cma::Region;
use std::ops::Range;

/// Minimum size of a worker's piece in bytes: with smaller pieces an additional worker's read costs more time than it saves.
const PIECE: i64 = 16 << 10;

/// Minimum size in bytes of a worker's piece in a reduction to a root,
/// where pieces are also copied to the root.
const ROOTS_PIECE: i64 = 256 << 10;

/// Number of bytes that are copied at a time before they are combined.
const STEP: i64 = 8 << 10;

/// The work of one rank: combines the elements of all operands from index `start` on into `place`.
struct Job<'a> {
    start: i64,
    place: &'a RecvBuf,
}

impl<W: Wait> LargeOp<'_, W> {
    /// Reduces to `recv` on the root, or on all ranks if `root` is `None`;
    /// `recv` is `Some` on the ranks that get the result.
    pub(super) async fn reduce(
        &self,
        own: &SendBuf,
        recv: Option<&RecvBuf>,
        op: &Op,
        root: Option<u32>,
    ) -> Result<(), Error> {
        let is_in_place = recv.is_some_and(|recv| recv.ptr().cast_const() == own.ptr());
        self.show_operand(own, is_in_place).await?;
        let piece = match root {
            None => PIECE,
            Some(_) => ROOTS_PIECE,
        };
        let workers = (own.bytes() / piece).clamp(1, self.size().into()) as u32;
        let team = Team {
            workers,
            root,
            size: self.size(),
        };
        let to_all_by_team =
            root.is_none() && (self.size() > 2 || self.overwrites(is_in_place).await?);
        match (root, recv) {
            (None, Some(recv)) if to_all_by_team => self.reduce_to_all(own, recv, op, &team).await,
            (Some(root), _) if workers > 1 => self.reduce_to_root(own, recv, op, root, &team).await,
            _ => self.reduce_alone(own, recv, op, root).await,
        }
    }

    /// Publishes the address of this rank's operand, and whether the result will overwrite the operand.
    async fn show_operand(&self, own: &SendBuf, is_in_place: bool) -> Result<(), Error> {
        let operand = Region {
            address: own.ptr().addr() as u64,
            len: is_in_place.into(),
        };
        self.place_run(self.number, operand).await?;
        self.members.ring_all();
        Ok(())
    }

    /// Returns true if the result overwrites the operand on one of two ranks; both ranks get the same result.
    ///
    /// Then no rank may combine all data alone, because the other rank reads its operand at the same time.
    async fn overwrites(&self, is_in_place: bool) -> Result<bool, Error> {
        let other = self.run_of(self.number, 1 - self.me()).await?;
        Ok(is_in_place || other.len != 0)
    }

    /// Allreduce: each worker combines a piece into its result buffer, and every rank reads the other workers' pieces.
    async fn reduce_to_all(
        &self,
        own: &SendBuf,
        recv: &RecvBuf,
        op: &Op,
        team: &Team,
    ) -> Result<(), Error> {
        let (inputs, results) = (self.number, self.number + 1);
        let mut outcome = Ok(());
        let worker = team.worker(self.me());
        if let Some(worker) = worker {
            let piece = team.piece(own.count(), worker);
            let place = recv.slice(piece.clone());
            let job = Job {
                start: piece.start,
                place: &place,
            };
            outcome = or_leave(
                self.invocation.comm(),
                self.combine_alone(own, job, op, |_| ()).await,
            )?;
            self.show(results, place.ptr().addr() as u64).await?;
        }
        for worker in 0..team.workers {
            let rank = team.rank(worker);
            if rank == self.me() {
                continue;
            }
            // The worker has read this rank's data before it publishes this address.
            let at = self.address(results, rank).await?;
            let place = recv.slice(team.piece(own.count(), worker));
            outcome = outcome.and_then(|()| self.read(rank, at, &place));
        }
        self.end(inputs);
        self.end_with(results, |_| worker.is_some()).await?;
        outcome
    }

    /// Reduction: each worker combines a piece and writes it to the root's buffer.
    async fn reduce_to_root(
        &self,
        own: &SendBuf,
        recv: Option<&RecvBuf>,
        op: &Op,
        root: u32,
        team: &Team,
    ) -> Result<(), Error> {
        let (inputs, results) = (self.number, self.number + 1);
        let worker = team.worker(self.me());
        let piece = worker.map_or(0..0, |worker| team.piece(own.count(), worker));
        let outcome = match recv {
            Some(recv) => {
                self.show(results, recv.ptr().expose_provenance() as u64)
                    .await?;
                let place = recv.slice(piece.clone());
                let job = Job {
                    start: piece.start,
                    place: &place,
                };
                self.combine_alone(own, job, op, |_| ()).await
            }
            None => self.combine_for(root, own, piece, op).await,
        };
        let outcome = or_leave(self.invocation.comm(), outcome)?;
        let is_worker = |rank| team.worker(rank).is_some();
        self.end(inputs);
        match recv {
            // A worker writes its result after combining, so when all have written, none reads an operand any more.
            Some(_) => self.end_with(results, is_worker).await?,
            None => {
                self.end(results);
                self.await_readers(inputs, is_worker).await?;
            }
        }
        outcome
    }

    /// Combines a worker's piece block by block, and writes it to the root.
    async fn combine_for(
        &self,
        root: u32,
        own: &SendBuf,
        piece: Range<i64>,
        op: &Op,
    ) -> Result<(), Error> {
        if piece.is_empty() {
            return Ok(());
        }
        let datatype = own.datatype();
        let each = block(datatype).min(piece.end - piece.start);
        let buffer = self.large.scratch(3 * each, datatype)?;
        let operands = buffer.recv(0..2 * each);
        let to = self.address(self.number + 1, root).await?;
        let mut outcome = Ok(());
        let mut start = piece.start;
        while start < piece.end && outcome.is_ok() {
            let count = each.min(piece.end - start);
            let place = buffer.recv(2 * each..2 * each + count);
            let job = Job {
                start,
                place: &place,
            };
            outcome = self.combine(own, job, &operands, op, |_| ()).await;
            let at = to + datatype.bytes(start) as u64;
            outcome = outcome.and_then(|()| self.write(root, at, u64::MAX, &place.as_send()));
            start += count;
        }
        self.large.keep(buffer);
        outcome
    }

    /// Every rank that needs the result combines all data itself, and releases each other rank after reading that rank's data.
    async fn reduce_alone(
        &self,
        own: &SendBuf,
        recv: Option<&RecvBuf>,
        op: &Op,
        root: Option<u32>,
    ) -> Result<(), Error> {
        let (inputs, results) = (self.number, self.number + 1);
        let counts = self.cells_of(results);
        let job = recv.map(|recv| Job {
            start: 0,
            place: recv,
        });
        let mut outcome = Ok(());
        match (root, job) {
            (None, Some(job)) => {
                // There are two ranks, so `read` is called one time, after the other rank's data have been read.
                let mut ended = false;
                let read = |_| {
                    ended = true;
                    self.end(inputs);
                };
                outcome = or_leave(
                    self.invocation.comm(),
                    self.combine_alone(own, job, op, read).await,
                )?;
                if !ended {
                    self.end(inputs);
                }
                self.await_readers(inputs, |_| true).await?;
            }
            (_, Some(job)) => {
                self.count_from_zero(results).await?;
                let mut done = 0;
                let read = |rank| {
                    done += 1;
                    self.cells.count_to(counts, done);
                    self.members.ring(rank);
                };
                outcome = or_leave(
                    self.invocation.comm(),
                    self.combine_alone(own, job, op, read).await,
                )?;
                if outcome.is_err() {
                    self.cells.count_to(counts, self.size().into());
                    self.members.ring_all();
                }
                self.end(inputs);
            }
            (root, None) => {
                self.end(inputs);
                let root = root.unwrap_or(0);
                let behind = self.size() - self.me() - u32::from(root > self.me());
                let read = || self.cells.counted(root, counts) >= Some(behind.into());
                self.wait.until(self.invocation.engine(), read).await?;
            }
        }
        self.end(results);
        outcome
    }

    /// Reduce-scatter: each rank combines its own part of all operands, so no rank reads results from others.
    pub(super) async fn reduce_scatter(
        &self,
        send: Option<&SendBuf>,
        whole: &RecvBuf,
        mine: Range<i64>,
        op: &Op,
    ) -> Result<(), Error> {
        let own = operand(send, whole)?;
        self.show(self.number, own.ptr().addr() as u64).await?;
        let job = Job {
            start: mine.start,
            place: &whole.slice(0..mine.end - mine.start),
        };
        let outcome = or_leave(
            self.invocation.comm(),
            self.combine_alone(&own, job, op, |_| ()).await,
        )?;
        self.end_with(self.number, |_| true).await?;
        outcome
    }

    /// Inclusive scan from rank to rank: each reads its predecessor's result.
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
            // The next rank reads faster if this core has not just read the operand for its own copy,
            // so the operand is published before it is copied.
            return self.pass_on(own.ptr().addr() as u64, copy_own).await;
        };
        copy_own();
        let outcome = or_leave(self.invocation.comm(), self.prepend(before, recv, op).await)?;
        // The prefix is published after a failure too, since the next rank waits for it.
        self.pass_on(recv.ptr().addr() as u64, || ()).await?;
        outcome
    }

    /// Exclusive scan: each rank also computes the inclusive prefix for the next rank.
    pub(super) async fn exscan(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        let own = send.cloned().unwrap_or_else(|| recv.as_send());
        let Some(before) = self.before() else {
            return self.pass_on(own.ptr().addr() as u64, || ()).await;
        };
        let sum = algo::elements(recv.count(), recv.datatype())?.all();
        algo::copy(&own, &sum);
        let at = self.address(self.number, before).await?;
        let mut outcome = self.read(before, at, recv);
        if outcome.is_ok() {
            outcome = op
                .apply(&recv.as_send(), &mut sum.clone())
                .map_err(Error::from);
        }
        self.pass_on(sum.ptr().addr() as u64, || ()).await?;
        outcome
    }

    fn before(&self) -> Option<u32> {
        self.me().checked_sub(1)
    }

    /// Computes `place = (data of rank) op place`.
    async fn prepend(&self, rank: u32, place: &RecvBuf, op: &Op) -> Result<(), Error> {
        let at = self.address(self.number, rank).await?;
        let datatype = place.datatype();
        let spaces = block(datatype).min(place.count());
        let buffer = self.large.scratch(spaces, datatype)?;
        let mut done = 0;
        while done < place.count() {
            let count = spaces.min(place.count() - done);
            let left = buffer.recv(0..count);
            self.read(rank, at + datatype.bytes(done) as u64, &left)?;
            op.apply(&left.as_send(), &mut place.slice(done..done + count))?;
            done += count;
        }
        self.large.keep(buffer);
        Ok(())
    }

    /// Publishes the address of this rank's prefix, calls `meanwhile`, which must not change the prefix, and waits until the next rank has read the prefix.
    async fn pass_on(&self, at: u64, meanwhile: impl FnOnce()) -> Result<(), Error> {
        let next = self.me() + 1;
        self.end(self.number);
        if next == self.size() {
            meanwhile();
            return Ok(());
        }
        self.place(self.number, at).await?;
        self.members.ring(next);
        meanwhile();
        self.await_readers(self.number, |rank| rank == next).await
    }

    /// Calls [`LargeOp::combine`] with temporary memory that it allocates.
    async fn combine_alone(
        &self,
        own: &SendBuf,
        job: Job<'_>,
        op: &Op,
        read: impl FnMut(u32),
    ) -> Result<(), Error> {
        let spaces = 2 * block(own.datatype()).min(job.place.count());
        let buffer = self.large.scratch(spaces, own.datatype())?;
        let operands = buffer.recv(0..spaces);
        let outcome = self.combine(own, job, &operands, op, read).await;
        self.large.keep(buffer);
        outcome
    }

    /// Waits for the address of a rank's operand, and reads from byte `offset` of the operand.
    async fn fetch(&self, rank: u32, offset: u64, into: &RecvBuf) -> Result<(), Error> {
        let at = self.address(self.number, rank).await?;
        self.read(rank, at + offset, into)
    }

    /// Publishes this rank's counter, with value zero, in an operation's cell: it counts the ranks whose data have been read.
    async fn count_from_zero(&self, number: u64) -> Result<(), Error> {
        let engine = self.invocation.engine();
        let address = self.cells_of(number);
        self.cells.make_room(self.wait, engine, address).await?;
        self.cells.count_to(address, 0);
        self.cells.publish(self.me(), address);
        Ok(())
    }

    /// Combines the operands from the last rank to the first; `operands` has space for two blocks.
    /// Calls `read(rank)` for each other rank, in that order, after all data of that rank have been read,
    /// unless an error has occurred.
    async fn combine(
        &self,
        own: &SendBuf,
        job: Job<'_>,
        operands: &RecvBuf,
        op: &Op,
        mut read: impl FnMut(u32),
    ) -> Result<(), Error> {
        let Job { start, place } = job;
        let last = self.size() - 1;
        let width = place.datatype().size().max(1);
        let each = operands.count() / 2;
        // With MPI_IN_PLACE this rank's operand is in the result buffer,
        // so the sum is computed in the temporary memory.
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
            let is_last = at + count == place.count();
            let mut to_copy = false;
            match last == self.me() {
                true => to_copy = !shares_place,
                false => self.fetch(last, offset, &sum).await?,
            }
            if is_last && last != self.me() {
                read(last);
            }
            for rank in (0..last).rev() {
                let operand = match rank == self.me() {
                    true => mine.clone(),
                    false => {
                        self.fetch(rank, offset, &left).await?;
                        if is_last {
                            read(rank);
                        }
                        left.as_send()
                    }
                };
                match std::mem::take(&mut to_copy) {
                    true => copy_and_combine(&mine, &operand, &sum, op)?,
                    false => op.apply(&operand, &mut sum.clone())?,
                }
            }
            if sum.ptr() != home.ptr() {
                algo::copy(&sum.as_send(), &home);
            }
            at += count;
        }
        Ok(())
    }
}

/// Copies `own` to `sum` and computes `sum = left op sum`,
/// both in steps, so that the copied data are still in the nearest cache.
fn copy_and_combine(own: &SendBuf, left: &SendBuf, sum: &RecvBuf, op: &Op) -> Result<(), Error> {
    let step = (STEP / own.datatype().size().max(1)).max(1);
    let mut at = 0;
    while at < sum.count() {
        let part = at..sum.count().min(at + step);
        let mut here = sum.slice(part.clone());
        algo::copy(&own.slice(part.clone()), &here);
        op.apply(&left.slice(part.clone()), &mut here)?;
        at = part.end;
    }
    Ok(())
}

/// Returns this rank's operand, which others read while this rank writes its result: a copy if both would be in one buffer.
fn operand(send: Option<&SendBuf>, recv: &RecvBuf) -> Result<SendBuf, Error> {
    if let Some(send) = send {
        return Ok(send.clone());
    }
    let own = algo::elements(recv.count(), recv.datatype())?.all();
    algo::copy(&recv.as_send(), &own);
    Ok(own.as_send())
}

/// Returns the number of elements of a block of [`BLOCK`] bytes.
fn block(datatype: &Datatype) -> i64 {
    (BLOCK / datatype.size().max(1)).max(1)
}

/// The division of a reduction among workers: consecutive ranks from the root (or rank 0) on.
struct Team {
    workers: u32,
    root: Option<u32>,
    size: u32,
}

impl Team {
    fn first(&self) -> u32 {
        self.root.unwrap_or(0)
    }

    fn rank(&self, worker: u32) -> u32 {
        algo::ahead(self.first(), worker, self.size)
    }

    fn worker(&self, rank: u32) -> Option<u32> {
        let worker = algo::behind(rank, self.first(), self.size);
        (worker < self.workers).then_some(worker)
    }

    /// Returns the range of elements that a worker combines, of `count` elements in total.
    ///
    /// A worker other than the root also writes its result to the root,
    /// which takes as long as reading and combining the data of one more rank.
    /// So the root's range is longer.
    fn piece(&self, count: i64, worker: u32) -> Range<i64> {
        if self.root.is_none() {
            return share(count, self.workers, worker);
        }
        let reads = 2 * (i64::from(self.size) - 1);
        let parts = reads * i64::from(self.workers) + 1;
        let before = |worker: u32| match worker {
            0 => 0,
            _ => reads * i64::from(worker) + 1,
        };
        let at =
            |worker| (i128::from(count) * i128::from(before(worker)) / i128::from(parts)) as i64;
        at(worker)..at(worker + 1)
    }
}
