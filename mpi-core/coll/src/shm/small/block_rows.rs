//! Rows of blocks: in calls in which every rank has a block for every rank (alltoall, reduce-scatter),
//! a row (one rank's blocks for all ranks) that is too long for one cell takes several cells.
//!
//! When ranks are oversubscribed, a long row costs no more context switches than a short one, and each page is accessed once.
//! The alternative, to send pieces of all blocks in each cell, needed more context switches,
//! and after a switch the first access to each page is expensive.
//! The other alternative, single copies, costs each rank one system call per other rank.
//!
//! Each cell contains the largest number of whole blocks that fits into it (`Rows::in_a_cell`).
//! Every rank waits until all ranks have filled their last cell, and then copies its block from each rank's cells.
//! A row that needs more cells than a rank has is sent in several rounds;
//! each round transfers a part of every block.

use super::SmallOp;
use super::cut::Cut;
use super::data::Given;
use super::steps::await_room;
use crate::Error;
use crate::algo::Buffer;
use crate::datatype::SendBuf;
use crate::shm::layout::DEPTH;
use crate::shm::members::LINE;
use crate::shm::wait::{Wait, or_leave};
use crate::{Call, CallId, Unserved};
use mpi_base::occupancy::Occupancy;
use std::ops::Range;

/// Minimum length in bytes of a part of a block; shorter parts cost more time than they save.
pub const SHORTEST: usize = 512;

/// Maximum number of rounds of a request. Times measured with 4 ranks on two cores, relative to single copies:
/// 0.5 with two rounds (blocks of 64 KiB), 0.6 with four rounds (128 KiB), 1.8 with eight rounds.
pub const FEW_ROUNDS: u64 = 4;

/// The distribution of a row's blocks to cells and rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The number of bytes of each block that a round transfers.
    part: usize,
    /// The number of blocks, or of their parts, in one cell.
    in_a_cell: usize,
    /// The number of cells per round.
    pub cells: u64,
    pub rounds: u64,
}

/// Returns true if a call whose data are too long for one cell is sent in rows.
pub fn goes_in_rows(call: CallId, occupancy: Occupancy) -> bool {
    occupancy == Occupancy::Oversubscribed
        && matches!(call, CallId::Alltoall | CallId::ReduceScatterBlock)
}

/// Returns the maximum length in bytes of blocks that need one round, in cells of `space` bytes.
pub fn longest(space: usize, members: u32) -> usize {
    let in_a_cell = members.div_ceil(DEPTH as u32).max(1) as usize;
    space / in_a_cell
}

impl Rows {
    /// Returns the distribution of blocks of `block` bytes to cells of `space` bytes.
    pub fn of(block: u64, space: usize, members: u32) -> Rows {
        let longest = longest(space, members);
        let whole = block <= longest as u64;
        let part = match whole {
            true => block as usize,
            // Parts consist of whole cache lines, so that they end at element boundaries.
            false => longest / LINE * LINE,
        }
        .max(1);
        let in_a_cell = (space / part).max(1);
        Rows {
            part,
            in_a_cell,
            cells: u64::from(members).div_ceil(in_a_cell as u64),
            rounds: block.div_ceil(part as u64).max(1),
        }
    }

    fn bytes(&self, round: u64) -> Range<usize> {
        let from = round as usize * self.part;
        from..from + self.part
    }

    /// Returns the cell in which a rank's block is,
    /// and the index of the block in that cell.
    fn of_rank(&self, rank: u32) -> (u64, usize) {
        let rank = rank as usize;
        ((rank / self.in_a_cell) as u64, rank % self.in_a_cell)
    }

    fn in_cell(&self, cell: u64, members: u32) -> Range<u32> {
        let first = |cell: u64| (cell * self.in_a_cell as u64).min(members.into()) as u32;
        first(cell)..first(cell + 1)
    }
}

impl<W: Wait> SmallOp<'_, W> {
    /// Carries out a call whose data are sent in rows.
    pub(super) async fn run_in_rows(&self, call: &Call, rows: Rows) -> Result<(), Error> {
        let mut outcome = Ok(());
        for round in 0..rows.rounds {
            let cell_op = self.behind(round * rows.cells);
            let part = rows.bytes(round);
            // After a failure of the operator the remaining rounds still run,
            // since other ranks wait for them.
            let of_this = cell_op.run_round(call, &rows, &part).await;
            let of_this = or_leave(self.comm, of_this)?;
            outcome = outcome.and(of_this);
        }
        outcome
    }

    async fn run_round(&self, call: &Call, rows: &Rows, part: &Range<usize>) -> Result<(), Error> {
        match call {
            Call::Alltoall { send, recv } => match send {
                Some(send) => self.show_rows(send, rows, part).await?,
                None => self.show_rows(recv, rows, part).await?,
            },
            Call::ReduceScatterBlock { send, recv, .. } => match send {
                Some(send) => {
                    let first = send.with_count(recv.count());
                    self.show_rows(&first, rows, part).await?;
                }
                None => self.show_rows(recv, rows, part).await?,
            },
            // Unreachable: no other call is sent in rows.
            _ => return Err(Unserved::on(self.comm, call.id())),
        }
        self.meet_in_rows(rows).await?;
        let outcome = self.take_from_rows(call, rows, part);
        // The cells are released immediately, since other ranks may already need them for the next round.
        for i in 0..rows.cells {
            self.cells.end(self.members, self.number + i);
        }
        outcome
    }

    /// Publishes a part of each rank's block; `first` is the block for rank 0.
    async fn show_rows<B: Buffer>(
        &self,
        first: &B,
        rows: &Rows,
        part: &Range<usize>,
    ) -> Result<(), Error>
    where
        Cut<B>: Given,
    {
        // If the last cell is free, all earlier ones are free too.
        await_room!(self.behind(rows.cells - 1).long());
        let members = self.members.count();
        let row = Cut::of_each(first, part, members);
        let len = row.each();
        for i in 0..rows.cells {
            let ranks = rows.in_cell(i, members);
            let blocks = row.part(ranks.start as usize * len, ranks.len() * len);
            self.behind(i).long().show_at_once(&blocks);
        }
        Ok(())
    }

    async fn meet_in_rows(&self, rows: &Rows) -> Result<(), Error> {
        let last = self.behind(rows.cells - 1);
        let last = last.long();
        let conclude = || {
            last.conclude_empty();
            Ok(())
        };
        last.meet(conclude).await.map(|_| ())
    }

    fn take_from_rows(&self, call: &Call, rows: &Rows, part: &Range<usize>) -> Result<(), Error> {
        let members = self.members.count();
        let (cell, before) = rows.of_rank(self.me());
        let cell_op = self.behind(cell);
        let cell_op = cell_op.long();
        match call {
            Call::Alltoall { recv, .. } => {
                let row = Cut::of_each(recv, part, members);
                let len = row.each();
                for rank in 0..members {
                    let block = row.part(rank as usize * len, len);
                    cell_op.take(rank, before * len, &block);
                }
                Ok(())
            }
            Call::ReduceScatterBlock { recv, op, .. } => {
                let result = Given::part(recv, part.start, part.len());
                let at = before * Given::bytes(&result);
                cell_op.fold(members, at, None::<&SendBuf>, &result, op)
            }
            // Unreachable: no other call is sent in rows.
            _ => Err(Unserved::on(self.comm, call.id())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every byte of every block has exactly one position in one round, inside its cell, and no two blocks overlap.
        #[test]
        fn a_row_has_room_for_every_block(
            block in 1u64..200_000,
            lines in 1usize..600,
            members in 1u32..300,
        ) {
            let space = lines * LINE - 8;
            prop_assume!(longest(space, members) >= SHORTEST);
            let rows = Rows::of(block, space, members);
            prop_assert!((1..=DEPTH).contains(&rows.cells));
            prop_assert!(rows.rounds == 1 || rows.part.is_multiple_of(LINE));
            let parts = (0..rows.rounds).map(|round| rows.bytes(round));
            let ends = parts.fold(0, |end, part| if part.start == end { part.end } else { 0 });
            prop_assert!(ends as u64 >= block);
            prop_assert!(ends - rows.part < block as usize);
            let mut next = 0;
            for cell in 0..rows.cells {
                let ranks = rows.in_cell(cell, members);
                prop_assert_eq!(ranks.start, next);
                prop_assert!(ranks.len() * rows.part <= space);
                for (before, rank) in ranks.clone().enumerate() {
                    prop_assert_eq!(rows.of_rank(rank), (cell, before));
                }
                next = ranks.end;
            }
            prop_assert_eq!(next, members);
        }
    }
}
