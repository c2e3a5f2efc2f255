//! Short collectives that combine data.

use super::Turn;
use super::steps::packed;
use crate::Error;
use crate::coll::algo;
use crate::coll::shm::cells::LONGEST;
use crate::coll::shm::gate::Kind;
use crate::coll::shm::wait::Waits;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;
use std::ops::Range;

impl<W: Waits> Turn<'_, W> {
    #[inline]
    pub(super) async fn allreduce(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        if !self.has_room() {
            self.make_room().await;
        }
        match send {
            Some(send) => self.put(send),
            None => self.put(&recv.as_send()),
        }
        let concluded = self.meet(|| {
            let outcome = self.fold_all(send, recv, op);
            packed(&recv.as_send(), |sum| self.conclude(sum));
            outcome
        });
        let outcome = match concluded.await {
            Ok(true) => {
                self.take(self.cells().result(), 0, recv);
                Ok(())
            }
            Ok(false) => self.fold_all(send, recv, op),
            Err(e) => Err(e),
        };
        self.cells().end_together(self.members, self.number);
        outcome
    }

    /// Combines what all ranks show.
    #[inline]
    pub(super) fn fold_all(
        &self,
        own: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        self.fold(self.members.count(), 0, own, recv, op)
    }

    /// Combines what the first ranks show from byte `at` on, from the last of them to the first, into `recv`;
    /// `own` is this rank's operand unless that is in its cell.
    #[inline]
    pub(super) fn fold(
        &self,
        ranks: u32,
        at: usize,
        own: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        let own = |rank: u32| own.filter(|_| rank == self.me());
        let Some(last) = ranks.checked_sub(1) else {
            return Ok(());
        };
        match own(last) {
            Some(own) => algo::copy(own, recv),
            None => self.take(last, at, recv),
        }
        let (mut sum, mut room) = (recv.clone(), None);
        for rank in (0..last).rev() {
            if let Some(own) = own(rank) {
                op.apply(own, &mut sum)?;
                continue;
            }
            let left = match &room {
                Some(left) => left,
                None => room.insert(self.operand(recv)?),
            };
            self.take(rank, at, left);
            op.apply(&left.as_send(), &mut sum)?;
        }
        Ok(())
    }

    /// Room for one operand like `recv`.
    #[inline]
    pub(super) fn operand(&self, recv: &RecvBuf) -> Result<RecvBuf, Error> {
        let (count, datatype) = (recv.count(), recv.datatype());
        if let Some(kept) = &*self.small.operand.borrow()
            && kept.datatype().as_named() == datatype.as_named()
            && kept.count() >= count
        {
            return Ok(kept.recv(0..count));
        }
        let most = LONGEST as i64 / datatype.size().max(1);
        let new = algo::elements(most.max(count), datatype)?;
        let room = new.recv(0..count);
        *self.small.operand.borrow_mut() = Some(new);
        Ok(room)
    }

    #[inline]
    pub(super) async fn reduce(
        &self,
        send: Option<&SendBuf>,
        recv: Option<&RecvBuf>,
        op: &Op,
        root: u32,
    ) -> Result<(), Error> {
        let outcome = match (recv, send) {
            (Some(recv), send) if self.me() == root => {
                // Nobody reads the root's cell, but in place the fold looks for its operand there.
                if send.is_none() {
                    self.show(&recv.as_send()).await;
                }
                self.await_reports().await;
                self.fold_all(send, recv, op)
            }
            (_, Some(send)) => {
                if !self.has_room() {
                    self.make_room().await;
                }
                self.put(send);
                self.report(root);
                Ok(())
            }
            _ => Ok(()),
        };
        self.cells().end(self.members, self.number);
        outcome
    }

    /// Combines what the first `ranks` show: all up to this one, or all before it.
    #[inline]
    pub(super) async fn scan(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
        ranks: u32,
    ) -> Result<(), Error> {
        let (me, count) = (self.me(), self.members.count());
        match send {
            // Nobody reads the last rank's cell; but in place the fold looks there, and who counts arrivals shows first.
            Some(_) if me + 1 == count && self.small.kind == Kind::Flags => {}
            _ => {
                if !self.has_room() {
                    self.make_room().await;
                }
                match send {
                    Some(send) => self.put(send),
                    None => self.put(&recv.as_send()),
                }
            }
        }
        if self.small.kind == Kind::Counter {
            // Where ranks share cores it is best to come back once, when all is there.
            self.meet_only().await?;
            let outcome = self.fold(ranks, 0, send, recv, op);
            self.cells().end_together(self.members, self.number);
            return outcome;
        }
        (me + 1..count).for_each(|rank| self.members.ring(rank));
        self.await_cells(0..me).await;
        let outcome = self.fold(ranks, 0, send, recv, op);
        self.cells().end(self.members, self.number);
        outcome
    }

    /// `whole` begins where the result goes, and in place it is all of this rank's operand; `mine` are this rank's elements of it.
    #[inline]
    pub(super) async fn reduce_scatter(
        &self,
        send: Option<&SendBuf>,
        whole: &RecvBuf,
        mine: Range<i64>,
        op: &Op,
    ) -> Result<(), Error> {
        let datatype = whole.datatype();
        let at = datatype.bytes(mine.start) as usize;
        match send {
            Some(send) => {
                let end = datatype.bytes(mine.end) as usize;
                self.show_around(send, at..end).await;
            }
            None => self.show(&whole.as_send()).await,
        }
        self.meet_only().await?;
        let own = send.map(|send| send.slice(mine.clone()));
        let result = whole.slice(0..mine.end - mine.start);
        let outcome = self.fold(self.members.count(), at, own.as_ref(), &result, op);
        self.cells().end_together(self.members, self.number);
        outcome
    }
}
