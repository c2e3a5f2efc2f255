//! Short collectives that move data without combining them.

use super::data::{CopyTo, Given, Target};
use super::steps::{await_cell, await_room, show};
use super::{OpInCell, SmallOp};
use crate::CollError;
use crate::Error;
use crate::shm::layout::Flow;
use crate::shm::wait::Wait;
use mpi_base::cells::CellOf;
use mpi_base::copy::copy;

impl<W: Wait> SmallOp<'_, W> {
    /// Broadcast. If the root's data have another length, a receiver copies at most its own length and returns an error.
    #[inline]
    pub(super) async fn bcast(&self, buf: &impl Target, root: u32) -> Result<(), Error> {
        let mut length = Ok(());
        let cell_op = &self.fitting(Flow::OneWay, buf.bytes());
        if cell_op.me() == root {
            show!(cell_op, buf);
            cell_op.ring_others();
        } else {
            if !cell_op.is_shown_soon(root) {
                await_cell!(cell_op, root);
            }
            cell_op.take(root, 0, buf);
            length = cell_op.cells.length(root, cell_op.address, buf.bytes());
        }
        cell_op.cells.end(cell_op.members, cell_op.number);
        length.map_err(|sent| self.other_length(root, sent, buf.bytes()))
    }

    #[cold]
    fn other_length(&self, root: u32, sent: Option<usize>, expected: usize) -> Error {
        CollError::Length {
            comm: self.comm.label(),
            me: self.me(),
            root,
            sent,
            expected,
        }
        .into()
    }

    /// Allgather: `recv` has a block of `len` bytes per rank; without `send` this rank's own block is already in `recv`.
    #[inline]
    pub(super) async fn allgather<R: Target>(
        &self,
        send: Option<&impl Given>,
        recv: &R,
        len: usize,
    ) -> Result<(), Error> {
        let (members, step) = (self.members.count(), len.next_multiple_of(8));
        // A core reads contiguous cache lines faster than a separate line per rank.
        // So if all blocks fit the result cell, the rank that arrives last joins them there.
        let all = step * members as usize;
        let joined = all <= self.cells.capacity();
        let cell_op = &self.fitting_both(Flow::CooperativeCopy, len, joined.then_some(all));
        let block = |rank: u32| recv.part(rank as usize * len, len);
        match send {
            Some(send) => show!(cell_op, send),
            None => show!(cell_op, &block(cell_op.me())),
        }
        let work = || {
            if joined {
                cell_op.join(step, len);
            }
            cell_op.conclude_empty();
            Ok(())
        };
        let joined = cell_op.meet(work).await? && joined;
        match joined {
            // The result has the same layout as `recv`, so a single copy is enough.
            true if step == len => cell_op.take(CellOf::Result, 0, recv),
            _ => {
                for rank in 0..members {
                    match joined {
                        true => cell_op.take(CellOf::Result, rank as usize * step, &block(rank)),
                        false => cell_op.take(rank, 0, &block(rank)),
                    }
                }
            }
        }
        cell_op.cells.end_together(cell_op.members, cell_op.number);
        Ok(())
    }

    /// Alltoall: `send`, or `recv` if there is no `send`, has a block of `len` bytes per rank.
    #[inline]
    pub(super) async fn alltoall<R: Target>(
        &self,
        send: Option<&impl Given>,
        recv: &R,
        len: usize,
    ) -> Result<(), Error> {
        let members = self.members.count();
        let (count, mine) = (members as usize, self.me() as usize);
        let (row, all) = (count * len, count * count * len);
        let joined = all <= self.cells.capacity();
        let cell_op = &self.fitting_both(Flow::CooperativeCopy, row, joined.then_some(all));
        match send {
            Some(send) => show!(cell_op, send),
            None => show!(cell_op, recv),
        }
        let work = || {
            if joined {
                cell_op.transpose(len);
            }
            cell_op.conclude_empty();
            Ok(())
        };
        match cell_op.meet(work).await? && joined {
            true => cell_op.take(CellOf::Result, mine * row, recv),
            false => {
                for rank in 0..members {
                    cell_op.take(rank, mine * len, &recv.part(rank as usize * len, len));
                }
            }
        }
        cell_op.cells.end_together(cell_op.members, cell_op.number);
        Ok(())
    }

    /// Gather: at the root, `recv` has a block of `len` bytes per rank.
    #[inline]
    pub(super) async fn gather<R: Target>(
        &self,
        send: Option<&impl CopyTo<R>>,
        recv: Option<&R>,
        len: usize,
        root: u32,
    ) -> Result<(), Error> {
        let bytes = send.map_or(len, Given::bytes);
        let cell_op = &self.fitting(Flow::OneWay, bytes);
        if let (true, Some(recv)) = (cell_op.me() == root, recv) {
            let block = |rank: u32| recv.part(rank as usize * len, len);
            if let Some(send) = send {
                send.copy_to(&block(root));
            }
            cell_op.await_reports().await?;
            for rank in cell_op.members.others() {
                cell_op.take(rank, 0, &block(rank));
            }
        } else if let Some(send) = send {
            show!(cell_op, send);
            cell_op.report(root);
        }
        cell_op.cells.end(cell_op.members, cell_op.number);
        Ok(())
    }

    /// Scatter: at the root, `send` has a block of `len` bytes per rank.
    #[inline]
    pub(super) async fn scatter<R: Target>(
        &self,
        send: Option<&impl CopyTo<R>>,
        recv: Option<&R>,
        len: usize,
        root: u32,
    ) -> Result<(), Error> {
        let row = self.members.count() as usize * len;
        let cell_op = &self.fitting(Flow::OneWay, row);
        if let (true, Some(send)) = (cell_op.me() == root, send) {
            show!(cell_op, send);
            cell_op.ring_others();
            if let Some(recv) = recv {
                send.part(root as usize * len, len).copy_to(recv);
            }
        } else if let Some(recv) = recv {
            if !cell_op.is_shown_soon(root) {
                await_cell!(cell_op, root);
            }
            cell_op.take(root, cell_op.me() as usize * len, recv);
        }
        cell_op.cells.end(cell_op.members, cell_op.number);
        Ok(())
    }
}

impl<W: Wait> OpInCell<'_, '_, W> {
    /// Copies all ranks' blocks of `len` bytes to the result cell, at a distance of `step` bytes.
    #[cold]
    fn join(&self, step: usize, len: usize) {
        for rank in 0..self.members.count() {
            let at = rank as usize * step;
            self.cells.pass_on(self.address, rank, 0..len, at);
        }
    }

    /// Copies all blocks of `len` bytes to the result cell, sorted by destination rank.
    #[cold]
    fn transpose(&self, len: usize) {
        let (cells, address, ranks) = (self.cells, self.address, self.members.count());
        let count = ranks as usize;
        let all = 0..count * count * len;
        cells.compose(CellOf::Result, address, all, |buffer| {
            for rank in 0..ranks {
                cells.inspect(rank, address, 0..count * len, |data| {
                    for (to, block) in data.chunks_exact(len.max(1)).enumerate() {
                        let at = (to * count + rank as usize) * len;
                        copy(block, &mut buffer[at..at + len]);
                    }
                });
            }
        });
    }
}
