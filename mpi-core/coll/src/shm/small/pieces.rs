//! Longer data, piece after piece, a cell each: while one is taken, the next ones are on their way.
//!
//! Both sides copy at the same time, and what is copied stays in near caches;
//! one copy by the system costs a call and, for each page, looking it up.
//! Where ranks share cores, the giver is switched out and in for every few pieces, so there they are longer (docs/adr/0013-collectives-go-in-pieces-where-cores-are-free.md);
//! which of the two is faster is measured (docs/adr/0015-collectives-measure-their-way-too.md).

use super::block_rows::goes_in_rows;
use super::cut::Cut;
use super::data::{Combine, CopyTo, Given};
use super::steps::{await_cell, await_room, show};
use super::{Placed, Turn};
use crate::Error;
use crate::algo::{self, Blocks};
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;
use crate::shm::barrier::Kind;
use crate::shm::members::LINE;
use crate::shm::wait::Waits;
use crate::{Call, CallId};
use std::ops::Range;

/// Shorter pieces cost more than they save; where ranks share cores more so, as a switch comes with every few of them.
pub fn shortest(kind: Kind) -> usize {
    match kind {
        Kind::Flags => 2 << 10,
        Kind::Counter => 4 << 10,
    }
}

/// Of `up_to` bytes that may go in pieces, those of a block of this call; none if it is not cut.
pub fn of_a_block(up_to: u64, call: CallId, members: u32, kind: Kind) -> Option<u64> {
    match call {
        CallId::Bcast | CallId::Scatter | CallId::Scan | CallId::Exscan => Some(up_to),
        // These go in rows, if at all.
        _ if goes_in_rows(call, kind) => None,
        // A root, or every rank, takes as much from each of the others.
        CallId::Gather | CallId::Reduce | CallId::Allgather | CallId::Alltoall => {
            Some(up_to / u64::from(members.max(2) - 1))
        }
        // The rank that comes last works for all.
        CallId::Allreduce if kind == Kind::Counter => Some(up_to),
        // Of more than two, every rank would do the work of all.
        CallId::Allreduce | CallId::ReduceScatterBlock if members == 2 => Some(up_to),
        _ => None,
    }
}

/// Whether every rank gives and takes.
pub fn go_both_ways(call: CallId) -> bool {
    matches!(
        call,
        CallId::Allgather | CallId::Alltoall | CallId::Allreduce | CallId::ReduceScatterBlock
    )
}

/// How many pieces are shown before the first is taken, where every rank gives and takes; less than there are cells.
const AHEAD: u64 = 2;

/// The bytes of a block that go at once, in cells that have room for so many.
pub fn of_cell(room: usize, call: CallId, members: u32) -> usize {
    match call {
        // There is a piece for each of the others.
        CallId::Scatter | CallId::Alltoall => room / (members.max(2) as usize - 1) / LINE * LINE,
        _ => room,
    }
}

impl<W: Waits> Turn<'_, W> {
    /// Carries out a call that takes so many pieces, as [`super::Small::shape`] has counted them.
    pub(super) async fn run_in_pieces(&self, call: &Call, pieces: u64) -> Result<(), Error> {
        let for_all = self.kind == Kind::Counter && call.id() == CallId::Allreduce;
        match go_both_ways(call.id()) && !for_all {
            true => self.run_both_ways(call, pieces).await,
            false => self.run_one_by_one(call, pieces).await,
        }
    }

    /// One piece after another, as if each were a call.
    async fn run_one_by_one(&self, call: &Call, pieces: u64) -> Result<(), Error> {
        let mut outcome = Ok(());
        let members = self.members.count();
        let piece = of_cell(self.cells.piece(), call.id(), members);
        for i in 0..pieces {
            let turn = self.behind(i);
            let at = i as usize * piece;
            let bytes = at..at + piece;
            let cut_send = |send: &Option<SendBuf>| send.as_ref().map(|send| send.part(at, piece));
            // An operator may fail, but no rank may be left waiting for the other pieces.
            outcome = outcome.and(match call {
                Call::Bcast { buf, root } => turn.bcast(&Cut::of(buf, &bytes), *root).await,
                Call::Gather { send, recv, root } => {
                    let send = send.as_ref().map(|send| Cut::of(send, &bytes));
                    let recv = recv
                        .as_ref()
                        .map(|recv| Cut::of_each(recv, &bytes, members));
                    let len = recv.as_ref().map_or(0, Cut::each);
                    turn.gather(send.as_ref(), recv.as_ref(), len, *root).await;
                    Ok(())
                }
                Call::Scatter { send, recv, root } => {
                    let blocks = send.as_ref().map(|send| Blocks::equal(send, members));
                    let recv = recv.as_ref().map(|recv| Cut::of(recv, &bytes));
                    turn.long()
                        .scatter_piece(blocks.as_ref(), recv.as_ref(), &bytes, *root)
                        .await;
                    Ok(())
                }
                Call::Reduce {
                    send,
                    recv,
                    op,
                    root,
                } => {
                    let recv = recv.as_ref().map(|recv| recv.part(at, piece));
                    let send = cut_send(send);
                    turn.reduce(send.as_ref(), recv.as_ref(), op, *root).await
                }
                Call::Allreduce { send, recv, op } => {
                    let (send, recv) = (cut_send(send), recv.part(at, piece));
                    turn.allreduce(send.as_ref(), &recv, op).await
                }
                Call::Scan { send, recv, op } => {
                    let (send, recv) = (cut_send(send), recv.part(at, piece));
                    turn.long().scan_piece(send.as_ref(), &recv, op).await
                }
                Call::Exscan { send, recv, op } => {
                    let (send, recv) = (cut_send(send), recv.part(at, piece));
                    turn.long().exscan_piece(send.as_ref(), &recv, op).await
                }
                // The others go both ways, or are not cut.
                _ => Ok(()),
            });
        }
        outcome
    }

    /// Where every rank gives and takes, each shows a few pieces more than it has taken, so that no rank waits for one that is being written.
    async fn run_both_ways(&self, call: &Call, pieces: u64) -> Result<(), Error> {
        let mut outcome = Ok(());
        let piece = of_cell(self.cells.piece(), call.id(), self.members.count());
        let bytes = |i: u64| i as usize * piece..(i as usize + 1) * piece;
        for i in 0..pieces + AHEAD {
            if i < pieces {
                self.behind(i).long().show_piece(call, bytes(i)).await;
            }
            if let Some(i) = i.checked_sub(AHEAD).filter(|i| *i < pieces) {
                // An operator may fail, but no rank may be left waiting for the other pieces.
                outcome = outcome.and(self.behind(i).long().take_piece(call, bytes(i)).await);
                self.cells.end(self.members, self.number + i);
            }
        }
        outcome
    }
}

impl<W: Waits> Placed<'_, '_, W> {
    /// Bytes `piece` of every block: the root shows those of the others side by side.
    async fn scatter_piece(
        &self,
        send: Option<&Blocks<SendBuf>>,
        recv: Option<&Cut<RecvBuf>>,
        piece: &Range<usize>,
        root: u32,
    ) {
        if let (true, Some(blocks)) = (self.me() == root, send) {
            let cut = |rank: u32| Cut::of(&blocks.of(rank), piece);
            self.show_row(self.members.others().map(cut)).await;
            self.ring_others();
            if let Some(recv) = recv {
                cut(root).copy_to(recv);
            }
        } else if let Some(recv) = recv {
            await_cell!(self, root);
            let before = self.me() - u32::from(self.me() > root);
            self.take(root, before as usize * recv.bytes(), recv);
        }
        self.cells.end(self.members, self.number);
    }

    /// A piece of a scan goes from rank to rank, which is the least work of all together: each puts what the one before shows in front of its own.
    async fn scan_piece(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        if let Some(send) = send {
            send.copy_to(recv);
        }
        let outcome = match self.before().await {
            Some(before) => self.prepend(before, recv, op),
            None => Ok(()),
        };
        // Also where something has failed, for the next rank waits.
        self.pass_on(recv).await;
        outcome
    }

    /// The same of all ranks before this one, which combines more than it keeps.
    async fn exscan_piece(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        let own = send.cloned().unwrap_or_else(|| recv.as_send());
        let Some(before) = self.before().await else {
            self.pass_on(&own).await;
            return Ok(());
        };
        let sum = algo::elements(recv.count(), recv.datatype())?.all();
        own.copy_to(&sum);
        self.take(before, 0, recv);
        let outcome = Op::apply(op, &recv.as_send(), &mut sum.clone());
        self.pass_on(&sum).await;
        Ok(outcome?)
    }

    /// The rank before this one, when that shows its data.
    async fn before(&self) -> Option<u32> {
        let before = self.me().checked_sub(1)?;
        self.await_cells(std::iter::once(before)).await;
        Some(before)
    }

    /// `sum = what another rank shows op sum`
    fn prepend(&self, rank: u32, sum: &RecvBuf, op: &Op) -> Result<(), Error> {
        let bytes = 0..Given::bytes(sum);
        self.cells.inspect(rank, self.spot, bytes, |data| {
            Combine::<SendBuf, RecvBuf>::apply_packed(op, data, sum, &mut None)
        })
    }

    /// Shows the next rank, if there is one, what has been combined so far; this one has finished.
    async fn pass_on(&self, sum: &impl Given) {
        let next = self.me() + 1;
        if next < self.members.count() {
            show!(self, sum);
            self.members.ring(next);
        }
        self.cells.end(self.members, self.number);
    }

    /// Shows bytes `piece` of what this rank gives to all others, or side by side of what it gives to each.
    async fn show_piece(&self, call: &Call, piece: Range<usize>) {
        let (count, piece) = (self.members.count(), &piece);
        let row = |send: &SendBuf| {
            let blocks = Blocks::equal(send, count);
            let cut = move |rank| Cut::of(&blocks.of(rank), piece);
            self.members.others().map(cut)
        };
        match call {
            Call::Allgather { send, recv } => {
                let own = || Blocks::equal(recv, count).of(self.me()).as_send();
                let own = send.clone().unwrap_or_else(own);
                show!(self, &Cut::of(&own, piece));
            }
            Call::Allreduce { send, recv, .. } => {
                let own = send.clone().unwrap_or_else(|| recv.as_send());
                show!(self, &Cut::of(&own, piece));
            }
            Call::Alltoall { send, recv } => match send {
                Some(send) => self.show_row(row(send)).await,
                None => self.show_row(row(&recv.as_send())).await,
            },
            Call::ReduceScatterBlock {
                send: Some(send),
                recv,
                ..
            } => self.show_row(row(&send.with_count(recv.count()))).await,
            // In place is not cut, and no other call goes both ways.
            _ => {}
        }
        self.ring_others();
    }

    /// Takes bytes `piece` of what the others give, as soon as they show it.
    async fn take_piece(&self, call: &Call, piece: Range<usize>) -> Result<(), Error> {
        let (me, count) = (self.me(), self.members.count());
        self.await_cells(self.members.others()).await;
        match call {
            Call::Allgather { send, recv } => {
                let blocks = Blocks::equal(recv, count);
                for rank in self.members.others() {
                    self.take(rank, 0, &Cut::of(&blocks.of(rank), &piece));
                }
                if let Some(send) = send {
                    Cut::of(send, &piece).copy_to(&Cut::of(&blocks.of(me), &piece));
                }
            }
            Call::Alltoall { send, recv } => {
                let blocks = Blocks::equal(recv, count);
                for rank in self.members.others() {
                    let block = Cut::of(&blocks.of(rank), &piece);
                    let before = me - u32::from(me > rank);
                    self.take(rank, before as usize * block.bytes(), &block);
                }
                if let Some(send) = send {
                    let own = Blocks::equal(send, count).of(me);
                    Cut::of(&own, &piece).copy_to(&Cut::of(&blocks.of(me), &piece));
                }
            }
            Call::Allreduce { send, recv, op } => {
                let own = send
                    .as_ref()
                    .map(|send| send.part(piece.start, piece.len()));
                let recv = recv.part(piece.start, piece.len());
                return self.fold(count, 0, own.as_ref(), &recv, op);
            }
            Call::ReduceScatterBlock { send, recv, op } => {
                let own = send.as_ref().map(|send| {
                    let own = Blocks::equal(&send.with_count(recv.count()), count).of(me);
                    own.part(piece.start, piece.len())
                });
                let recv = recv.part(piece.start, piece.len());
                return self.fold(count, 0, own.as_ref(), &recv, op);
            }
            _ => {}
        }
        Ok(())
    }
}
