//! Pipelined pieces: longer data are sent through successive cells;
//! the sender fills the next cells while a receiver copies from one.
//!
//! Both sides copy at the same time, and the data stay in near caches,
//! whereas a single copy costs a system call, and a page lookup for each page.
//! When ranks are oversubscribed, the sender is switched out and in every few pieces, so pieces are longer
//! (docs/adr/0013-collectives-go-in-pieces-where-cores-are-free.md).
//! The faster protocol is chosen by measurement (docs/adr/0015-collectives-measure-their-way-too.md).

use super::block_rows::goes_in_rows;
use super::counts::of_allgather;
use super::cut::Cut;
use super::data::{Combine, CopyTo, Given};
use super::steps::{await_cell, await_room, show};
use super::{OpInCell, SmallOp};
use crate::Error;
use crate::algo::{self, Blocks};
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;
use crate::shm::members::LINE;
use crate::shm::wait::{Wait, or_leave};
use crate::{Call, CallId, Unserved};
use mpi_base::occupancy::Occupancy;
use std::ops::Range;

/// Returns the minimum length of a piece in bytes: shorter pieces cost more time than they save.
/// It is longer for oversubscribed ranks, since every few pieces cost a context switch.
pub fn shortest(occupancy: Occupancy) -> usize {
    match occupancy {
        Occupancy::Dedicated => 2 << 10,
        Occupancy::Oversubscribed => 4 << 10,
    }
}

/// Returns the maximum length in bytes of a call's block that is sent in pieces
/// if a rank's data have at most `up_to` bytes in total;
/// `None` if blocks of this collective are not sent in pieces.
pub fn of_a_block(up_to: u64, call: CallId, members: u32, occupancy: Occupancy) -> Option<u64> {
    match call {
        CallId::Bcast | CallId::Scatter | CallId::Scan | CallId::Exscan => Some(up_to),
        // These calls are sent in rows instead.
        _ if goes_in_rows(call, occupancy) => None,
        // The root, or every rank, receives a block from each other rank, so all these blocks together may have `up_to` bytes.
        CallId::Gather
        | CallId::Reduce
        | CallId::Allgather
        | CallId::Allgatherv
        | CallId::Alltoall => Some(up_to / u64::from(members.max(2) - 1)),
        // The rank that arrives last combines the data of all ranks, so the work is done only one time.
        CallId::Allreduce if occupancy == Occupancy::Oversubscribed => Some(up_to),
        // With more than two ranks, every rank would combine the data of all ranks, so these calls are not sent in pieces.
        CallId::Allreduce | CallId::ReduceScatterBlock if members == 2 => Some(up_to),
        _ => None,
    }
}

/// Returns true for collectives in which every rank sends and receives.
pub fn go_both_ways(call: CallId) -> bool {
    matches!(
        call,
        CallId::Allgather
            | CallId::Allgatherv
            | CallId::Alltoall
            | CallId::Allreduce
            | CallId::ReduceScatterBlock
    )
}

/// In calls in which every rank sends and receives:
/// the number of pieces that a rank publishes before it copies the first one.
/// It is less than the number of cells.
const AHEAD: u64 = 2;

/// Returns the number of bytes of a block in each piece, for cells of `space` bytes.
pub fn of_cell(space: usize, call: CallId, members: u32) -> usize {
    match call {
        // The root's or sender's cell holds a piece for each other rank.
        CallId::Scatter | CallId::Alltoall => space / (members.max(2) as usize - 1) / LINE * LINE,
        _ => space,
    }
}

impl<W: Wait> SmallOp<'_, W> {
    /// Carries out a call in `pieces` pieces, the number in its [`super::Shape`].
    pub(super) async fn run_in_pieces(&self, call: &Call, pieces: u64) -> Result<(), Error> {
        let for_all = self.occupancy == Occupancy::Oversubscribed && call.id() == CallId::Allreduce;
        match go_both_ways(call.id()) && !for_all {
            true => self.run_both_ways(call, pieces).await,
            false => self.run_one_by_one(call, pieces).await,
        }
    }

    /// Transfers one piece after another, each like a call of its own.
    async fn run_one_by_one(&self, call: &Call, pieces: u64) -> Result<(), Error> {
        let mut outcome = Ok(());
        let members = self.members.count();
        let piece = of_cell(self.cells.piece(), call.id(), members);
        for i in 0..pieces {
            let cell_op = self.behind(i);
            let at = i as usize * piece;
            let bytes = at..at + piece;
            let cut_send = |send: &Option<SendBuf>| send.as_ref().map(|send| send.part(at, piece));
            // After a failure of the operator the remaining pieces are still sent,
            // since other ranks wait for them.
            let of_this = match call {
                Call::Bcast { buf, root } => cell_op.bcast(&Cut::of(buf, &bytes), *root).await,
                Call::Gather { send, recv, root } => {
                    let send = send.as_ref().map(|send| Cut::of(send, &bytes));
                    let recv = recv
                        .as_ref()
                        .map(|recv| Cut::of_each(recv, &bytes, members));
                    let len = recv.as_ref().map_or(0, Cut::each);
                    cell_op
                        .gather(send.as_ref(), recv.as_ref(), len, *root)
                        .await
                }
                Call::Scatter { send, recv, root } => {
                    let blocks = send.as_ref().map(|send| Blocks::equal(send, members));
                    let recv = recv.as_ref().map(|recv| Cut::of(recv, &bytes));
                    cell_op
                        .piece()
                        .scatter_piece(blocks.as_ref(), recv.as_ref(), &bytes, *root)
                        .await
                }
                Call::Reduce {
                    send,
                    recv,
                    op,
                    root,
                } => {
                    let recv = recv.as_ref().map(|recv| recv.part(at, piece));
                    let send = cut_send(send);
                    cell_op
                        .reduce(send.as_ref(), recv.as_ref(), op, *root)
                        .await
                }
                Call::Allreduce { send, recv, op } => {
                    let (send, recv) = (cut_send(send), recv.part(at, piece));
                    cell_op.allreduce(send.as_ref(), &recv, op).await
                }
                Call::Scan { send, recv, op } => {
                    let (send, recv) = (cut_send(send), recv.part(at, piece));
                    cell_op.piece().scan_piece(send.as_ref(), &recv, op).await
                }
                Call::Exscan { send, recv, op } => {
                    let (send, recv) = (cut_send(send), recv.part(at, piece));
                    cell_op.piece().exscan_piece(send.as_ref(), &recv, op).await
                }
                // Unreachable: in other calls every rank sends and receives, or they are not divided.
                _ => Err(Unserved::on(self.comm, call.id())),
            };
            outcome = outcome.and(or_leave(self.comm, of_this)?);
        }
        outcome
    }

    /// Carries out a call in which every rank sends and receives:
    /// each rank publishes [`AHEAD`] pieces more than it has copied,
    /// so that no rank waits for a piece that is just being written.
    async fn run_both_ways(&self, call: &Call, pieces: u64) -> Result<(), Error> {
        let mut outcome = Ok(());
        let piece = of_cell(self.cells.piece(), call.id(), self.members.count());
        let bytes = |i: u64| i as usize * piece..(i as usize + 1) * piece;
        for i in 0..pieces + AHEAD {
            if i < pieces {
                self.behind(i).piece().show_piece(call, bytes(i)).await?;
            }
            if let Some(i) = i.checked_sub(AHEAD).filter(|i| *i < pieces) {
                // After a failure of the operator the remaining pieces are still sent,
                // since other ranks wait for them.
                let of_this = self.behind(i).piece().take_piece(call, bytes(i)).await;
                outcome = outcome.and(or_leave(self.comm, of_this)?);
                self.cells.end(self.members, self.number + i);
            }
        }
        outcome
    }
}

impl<W: Wait> OpInCell<'_, '_, W> {
    /// Scatters the byte range `piece` of every block:
    /// the root publishes the pieces for the other ranks in one cell.
    async fn scatter_piece(
        &self,
        send: Option<&Blocks<SendBuf>>,
        recv: Option<&Cut<RecvBuf>>,
        piece: &Range<usize>,
        root: u32,
    ) -> Result<(), Error> {
        if let (true, Some(blocks)) = (self.me() == root, send) {
            let cut = |rank: u32| Cut::of(&blocks.of(rank), piece);
            self.show_row(self.members.others().map(cut)).await?;
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
        Ok(())
    }

    /// Scans a piece from rank to rank, which takes the least work:
    /// each rank combines its predecessor's result with its own operand.
    async fn scan_piece(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        if let Some(send) = send {
            send.copy_to(recv);
        }
        let outcome = match self.before().await? {
            Some(before) => self.prepend(before, recv, op),
            None => Ok(()),
        };
        // The result is published after a failure too, since the next rank waits for it.
        self.pass_on(recv).await?;
        outcome
    }

    /// Exclusive scan of a piece: each rank also computes the inclusive prefix for the next rank.
    async fn exscan_piece(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        let own = send.cloned().unwrap_or_else(|| recv.as_send());
        let Some(before) = self.before().await? else {
            return self.pass_on(&own).await;
        };
        let sum = algo::elements(recv.count(), recv.datatype())?.all();
        own.copy_to(&sum);
        self.take(before, 0, recv);
        let outcome = Op::apply(op, &recv.as_send(), &mut sum.clone());
        self.pass_on(&sum).await?;
        Ok(outcome?)
    }

    /// Waits until the previous rank has published its data; returns the previous rank, or `None` on rank 0.
    async fn before(&self) -> Result<Option<u32>, Error> {
        let Some(before) = self.me().checked_sub(1) else {
            return Ok(None);
        };
        self.await_cells(std::iter::once(before)).await?;
        Ok(Some(before))
    }

    /// Computes `sum = (data of rank) op sum`.
    fn prepend(&self, rank: u32, sum: &RecvBuf, op: &Op) -> Result<(), Error> {
        let bytes = 0..Given::bytes(sum);
        self.cells.inspect(rank, self.address, bytes, |data| {
            Combine::<SendBuf, RecvBuf>::apply_packed(op, data, sum, &mut None)
        })
    }

    /// Publishes the partial result for the next rank, if there is one, and ends this rank's operation.
    async fn pass_on(&self, sum: &impl Given) -> Result<(), Error> {
        let next = self.me() + 1;
        if next < self.members.count() {
            show!(self, sum);
            self.members.ring(next);
        }
        self.cells.end(self.members, self.number);
        Ok(())
    }

    /// Publishes the byte range `piece` of this rank's data, or of its block for each rank, one after another in the cell.
    async fn show_piece(&self, call: &Call, piece: Range<usize>) -> Result<(), Error> {
        let (count, piece) = (self.members.count(), &piece);
        let row = |send: &SendBuf| {
            let blocks = Blocks::equal(send, count);
            let cut = move |rank| Cut::of(&blocks.of(rank), piece);
            self.members.others().map(cut)
        };
        if let Some((send, blocks)) = of_allgather(call, count) {
            let own = || blocks.of(self.me()).as_send();
            let own = send.cloned().unwrap_or_else(own);
            show!(self, &Cut::of(&own, piece));
            self.ring_others();
            return Ok(());
        }
        match call {
            Call::Allreduce { send, recv, .. } => {
                let own = send.clone().unwrap_or_else(|| recv.as_send());
                show!(self, &Cut::of(&own, piece));
            }
            Call::Alltoall { send, recv } => match send {
                Some(send) => self.show_row(row(send)).await?,
                None => self.show_row(row(&recv.as_send())).await?,
            },
            Call::ReduceScatterBlock {
                send: Some(send),
                recv,
                ..
            } => self.show_row(row(&send.with_count(recv.count()))).await?,
            // Calls with MPI_IN_PLACE are not divided, and no other collective sends and receives on every rank.
            _ => {}
        }
        self.ring_others();
        Ok(())
    }

    /// Copies the byte range `piece` of the other ranks' data when they have published it.
    async fn take_piece(&self, call: &Call, piece: Range<usize>) -> Result<(), Error> {
        let (me, count) = (self.me(), self.members.count());
        self.await_cells(self.members.others()).await?;
        if let Some((send, blocks)) = of_allgather(call, count) {
            for rank in self.members.others() {
                self.take(rank, 0, &Cut::of(&blocks.of(rank), &piece));
            }
            if let Some(send) = send {
                Cut::of(send, &piece).copy_to(&Cut::of(&blocks.of(me), &piece));
            }
            return Ok(());
        }
        match call {
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
