//! Collectives of short data through [`Cells`]: every rank publishes its data in a cell, and other ranks copy what they need.
//!
//! With a core per rank, each rank copies and combines the data itself,
//! which costs one round trip of a cache line.
//! When ranks are oversubscribed, the rank that arrives last does the work for all,
//! so a rank that is scheduled in later finds the result.
//! A root polls a single word until all ranks have arrived.
//! In scans on oversubscribed ranks, each rank continues from its predecessor's prefix ([`scan_lookback`]).
//!
//! Operands are always combined in the order of ranks, so every member gets the same bits in every call.
//!
//! In operations in which data go in one direction only, such as broadcast, the sender does not wait for the readers.
//! Longer data use several cells: in [`pieces`], or in [`block_rows`] if every rank has a block for every rank.
//! Whether a call is supported depends only on arguments that the standard makes equal on all members.

mod block_rows;
mod blocks;
mod counts;
mod cut;
mod data;
mod pieces;
mod reductions;
mod row_table;
mod scan_lookback;
mod steps;

use super::cells::Cells;
use super::layout::{FEW, Flow, Lane};
use super::members::Members;
use super::scattered;
use super::wait::Wait;
use crate::Error;
use crate::comm::Comm;
use crate::datatype::{Datatype, RecvBuf, SendBuf};
use crate::engine::Engine;
use crate::{Call, CallId, FastCall, Unserved};
use block_rows::Rows;
use data::Given;
use mpi_base::cells::{CellAddress, LINE};
use mpi_base::occupancy::Occupancy;
use std::ops::Deref;

pub use block_rows::goes_in_rows;
pub use counts::knows_only_its_own;

/// The cells of one communicator for one lane, and the settings for their use.
pub struct Small {
    pub cells: Cells,
    pub occupancy: Occupancy,
    /// Maximum length in bytes of data that are sent in pieces; rank 0's setting.
    pub pieces_up_to: u64,
}

/// How a call's data are distributed to cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One cell per member contains all its data.
    Whole,
    /// Rows of blocks, each in several cells.
    Rows(Rows),
    /// One piece after another, in this number of pieces.
    Pieces(u64),
    /// One cell per member with a header that says where the data are: see [`counts`].
    Counts,
}

impl Shape {
    /// Returns the number of operation numbers that a call takes.
    #[inline]
    pub fn numbers(self) -> u64 {
        match self {
            Shape::Whole | Shape::Counts => 1,
            Shape::Rows(rows) => rows.cells * rows.rounds,
            Shape::Pieces(numbers) => numbers,
        }
    }

    /// Returns true if all blocks are transferred together and undivided.
    fn is_one_part(self) -> bool {
        match self {
            Shape::Whole | Shape::Counts => true,
            Shape::Rows(rows) => rows.rounds == 1,
            Shape::Pieces(_) => false,
        }
    }
}

/// An operation in progress.
#[derive(Clone, Copy)]
pub struct SmallOp<'a, W> {
    pub cells: &'a Cells,
    pub occupancy: Occupancy,
    pub members: &'a Members,
    pub engine: &'a Engine,
    /// The communicator, for error texts.
    pub comm: &'a Comm,
    pub number: u64,
    pub wait: W,
}

/// An operation with the address of its cells.
///
/// It borrows the [`SmallOp`], because copying a struct directly after its fields were written is slow.
#[derive(Clone, Copy)]
struct OpInCell<'t, 'a, W> {
    op: &'t SmallOp<'a, W>,
    address: CellAddress<'a>,
}

impl<'a, W> Deref for OpInCell<'_, 'a, W> {
    type Target = SmallOp<'a, W>;

    #[inline(always)]
    fn deref(&self) -> &SmallOp<'a, W> {
        self.op
    }
}

impl Small {
    /// Returns the maximum length in bytes of each block of a call that is sent undivided through one cell.
    pub fn fits_one(&self, call: CallId, members: u32) -> u64 {
        let divisible = pieces::of_a_block(u64::MAX, call, members, self.occupancy).is_some();
        let cell = match divisible || knows_only_its_own(call) {
            true => self.cells.undivided(),
            false => self.cells.capacity(),
        };
        Small::block(cell as u64, call, members)
    }

    /// Returns the maximum length in bytes of each block of a call whose blocks fit one cell's whole capacity.
    fn fits_a_cell(&self, call: CallId, members: u32) -> u64 {
        Small::block(self.cells.capacity() as u64, call, members)
    }

    /// Returns the maximum length in bytes of each block of a call, if a cell has `all` bytes.
    /// In some calls, a cell contains a block for each member.
    fn block(all: u64, call: CallId, members: u32) -> u64 {
        match call {
            CallId::Alltoall
            | CallId::Alltoallv
            | CallId::Alltoallw
            | CallId::Scatter
            | CallId::ReduceScatter
            | CallId::ReduceScatterBlock => all / u64::from(members.max(1)),
            _ => all,
        }
    }

    /// Returns the maximum length in bytes of each block of a call that is sent through cells: through one cell or through several.
    pub fn fits(&self, call: CallId, members: u32) -> u64 {
        let (one, piece) = (self.fits_one(call, members), self.piece(call, members));
        if goes_in_rows(call, self.occupancy) {
            let whole = block_rows::longest(self.cells.capacity(), members);
            let all = self.pieces_up_to / u64::from(members.max(2) - 1);
            let more = match self.cells.lane() {
                _ if whole < block_rows::SHORTEST => 0,
                Lane::Blocking => all,
                Lane::Nonblocking if members > FEW => 0,
                // In every round all members wait for each other, and requests are polled rarely, so the number of rounds is limited.
                Lane::Nonblocking => all.min(block_rows::FEW_ROUNDS * whole as u64),
            };
            return one.max(whole as u64).max(more);
        }
        let all = match self.cells.lane() {
            Lane::Blocking => self.pieces_up_to,
            // A nonblocking operation in which every rank sends and receives cannot complete on any rank before all ranks have polled it,
            // so waiting for free cells adds no cost.
            Lane::Nonblocking if pieces::go_both_ways(call) && members <= FEW => self.pieces_up_to,
            // Requests may be polled rarely, so the cells must be able to hold all pieces.
            Lane::Nonblocking => self
                .pieces_up_to
                .min(self.cells.pieces_at_once() * piece as u64),
        };
        match pieces::of_a_block(all, call, members, self.occupancy) {
            Some(all) if piece > 0 => one.max(all),
            _ => one,
        }
    }

    /// Returns the number of bytes of a block in each piece; zero if blocks are not sent in pieces.
    fn piece(&self, call: CallId, members: u32) -> usize {
        let piece = pieces::of_cell(self.cells.piece(), call, members);
        match piece >= pieces::shortest(self.occupancy) {
            true => piece,
            false => 0,
        }
    }

    /// Returns how a call's data are distributed to cells, or `None` if they are not sent through cells.
    /// All members get the same result.
    #[inline]
    pub fn shape(&self, call: &Call, members: u32) -> Option<Shape> {
        let one = match call {
            Call::Bcast { buf, .. } => return self.cut(call.id(), buf.bytes(), members),
            // Element size and count are equal on all members for predefined types;
            // operands of user-defined datatypes are left to the next component.
            Call::Allreduce { recv, .. } => {
                return self.cut_elements(call.id(), recv.count(), recv.datatype(), members);
            }
            Call::Allgather { recv, .. } | Call::Alltoall { recv, .. } => {
                return self.cut(call.id(), recv.bytes(), members);
            }
            Call::Allgatherv { recv, .. } => {
                let (longest, _) = counts::extents(recv);
                return self.cut(call.id(), longest as i64, members);
            }
            Call::Gatherv { .. } | Call::Scatterv { .. } => return Some(Shape::Counts),
            Call::Alltoallv { .. } | Call::Alltoallw { .. } => {
                let fits = row_table::holds_rows(self.cells.undivided(), members);
                return fits.then_some(Shape::Counts);
            }
            Call::Gather { send, recv, .. } => {
                let block = send.as_ref().map(SendBuf::bytes);
                let block = block.or(recv.as_ref().map(RecvBuf::bytes));
                return self.cut(call.id(), block.unwrap_or(0), members);
            }
            Call::Scatter { send, recv, .. } => {
                let block = recv.as_ref().map(RecvBuf::bytes);
                let block = block.or(send.as_ref().map(SendBuf::bytes));
                return self.cut(call.id(), block.unwrap_or(0), members);
            }
            Call::Reduce { send, recv, .. } => {
                let of_send = send.as_ref().map(|send| (send.count(), send.datatype()));
                let own = of_send.or(recv.as_ref().map(|recv| (recv.count(), recv.datatype())));
                let (count, datatype) = own?;
                return self.cut_elements(call.id(), count, datatype, members);
            }
            Call::Scan { recv, .. } | Call::Exscan { recv, .. } => {
                return self.cut_elements(call.id(), recv.count(), recv.datatype(), members);
            }
            Call::ReduceScatterBlock { send, recv, .. } => {
                let shape = self.cut_elements(call.id(), recv.count(), recv.datatype(), members)?;
                // With MPI_IN_PLACE, a divided call would overwrite data that have not been published yet, so only undivided calls use cells.
                return match shape.is_one_part() || send.is_some() {
                    true => Some(shape),
                    false => self.whole(call.id(), recv.bytes() as u64, members),
                };
            }
            Call::ReduceScatter { recv, counts, .. } => {
                let (datatype, total) = (recv.datatype(), counts.iter().sum());
                let all = self.cells.capacity() as i64;
                datatype.bytes(total) <= all && datatype.as_named().is_some()
            }
            _ => false,
        };
        one.then_some(Shape::Whole)
    }

    /// Returns the distribution of blocks of `bytes` bytes to cells; `None` if they do not use cells.
    #[inline]
    fn cut(&self, call: CallId, bytes: i64, members: u32) -> Option<Shape> {
        let bytes = bytes as u64;
        if bytes <= self.fits_one(call, members) {
            return Some(Shape::Whole);
        }
        if bytes > self.fits(call, members) {
            return self.whole(call, bytes, members);
        }
        if goes_in_rows(call, self.occupancy) {
            let rows = Rows::of(bytes, self.cells.capacity(), members);
            return Some(Shape::Rows(rows));
        }
        let piece = self.piece(call, members) as u64;
        // At least two pieces, even if one is empty:
        // `Pieces(1)` would be a single cell, which does not fit every rank's blocks here.
        Some(Shape::Pieces(bytes.div_ceil(piece).max(2)))
    }

    /// Returns `Whole` if blocks of `bytes` bytes fit one cell.
    fn whole(&self, call: CallId, bytes: u64, members: u32) -> Option<Shape> {
        (bytes <= self.fits_a_cell(call, members)).then_some(Shape::Whole)
    }

    /// Returns the distribution of operands, which may be divided only between elements.
    #[inline]
    fn cut_elements(
        &self,
        call: CallId,
        count: i64,
        datatype: &Datatype,
        members: u32,
    ) -> Option<Shape> {
        datatype.as_named()?;
        let (size, bytes) = (datatype.size().max(1), datatype.bytes(count));
        let shape = self.cut(call, bytes, members).filter(|shape| {
            let dense = datatype.contiguous_bytes(count).is_some();
            shape.is_one_part() || (dense && LINE as i64 % size == 0)
        });
        shape.or_else(|| self.whole(call, bytes as u64, members))
    }
}

impl<'a, W: Wait> SmallOp<'a, W> {
    /// Selects cells for data of at most `bytes` bytes per member and for a result of the same length.
    #[inline(always)]
    fn fitting(&self, flow: Flow, bytes: usize) -> OpInCell<'_, 'a, W> {
        OpInCell {
            op: self,
            address: self.cells.address(self.number, flow, bytes),
        }
    }

    /// Same as [`Self::fitting`]; if ranks are oversubscribed, the cells also fit a result of `result` bytes.
    #[inline(always)]
    fn fitting_both(&self, flow: Flow, bytes: usize, result: Option<usize>) -> OpInCell<'_, 'a, W> {
        let mut cell_op = self.fitting(flow, bytes);
        if let (Occupancy::Oversubscribed, Some(result)) = (self.occupancy, result) {
            cell_op.address = self.cells.with_result(cell_op.address, flow, result);
        }
        cell_op
    }

    fn long(&self) -> OpInCell<'_, 'a, W> {
        OpInCell {
            op: self,
            address: self.cells.long_address(self.number),
        }
    }

    fn piece(&self) -> OpInCell<'_, 'a, W> {
        OpInCell {
            op: self,
            address: self.cells.piece_address(self.number),
        }
    }

    /// Returns this operation with an operation number that is greater by `numbers`.
    fn behind(&self, numbers: u64) -> Self {
        SmallOp {
            number: self.number + numbers,
            ..*self
        }
    }

    /// Carries out a call whose data have the distribution `shape`.
    #[inline]
    pub async fn run(&self, call: &Call, shape: Shape) -> Result<(), Error> {
        match shape {
            Shape::Whole => self.run_at_once(call).await,
            Shape::Rows(rows) => self.run_in_rows(call, rows).await,
            Shape::Pieces(pieces) => self.run_in_pieces(call, pieces).await,
            // These calls need an invocation for their messages, so `run_counts` carries them out.
            Shape::Counts => Err(Unserved::on(self.comm, call.id())),
        }
    }

    /// Carries out a call that takes one cell per member.
    #[inline]
    pub async fn run_at_once(&self, call: &Call) -> Result<(), Error> {
        let all = i64::from(self.members.count());
        let (every_send, every_recv) = (
            |send: &SendBuf| send.with_count(all * send.count()),
            |recv: &RecvBuf| recv.with_count(all * recv.count()),
        );
        match call {
            Call::Bcast { buf, root } => return self.bcast(buf, *root).await,
            Call::Allreduce { send, recv, op } => {
                return self.allreduce(send.as_ref(), recv, op).await;
            }
            Call::Allgather { send, recv } => {
                let (every, len) = (every_recv(recv), Given::bytes(recv));
                return self.allgather(send.as_ref(), &every, len).await;
            }
            Call::Allgatherv { send, recv } => {
                return self.allgatherv(send.as_ref(), recv).await;
            }
            Call::Alltoall { send, recv } => {
                let (send, len) = (send.as_ref().map(every_send), Given::bytes(recv));
                return self.alltoall(send.as_ref(), &every_recv(recv), len).await;
            }
            Call::Scatter { send, recv, root } => {
                // The length of a block: on the root `send` begins with rank 0's block, on other ranks `recv` is the block.
                let len = match (send, recv) {
                    (Some(send), _) => Given::bytes(send),
                    (None, recv) => recv.as_ref().map_or(0, Given::bytes),
                };
                let send = send.as_ref().map(every_send);
                return self.scatter(send.as_ref(), recv.as_ref(), len, *root).await;
            }
            Call::ReduceScatterBlock { send, op, .. } | Call::ReduceScatter { send, op, .. } => {
                let Some((whole, mine)) = scattered(call, self.members) else {
                    // Unreachable: the call has a count for each member.
                    return Err(Unserved::on(self.comm, call.id()));
                };
                let bytes = |elements: i64| whole.datatype().bytes(elements) as usize;
                let mine = bytes(mine.start)..bytes(mine.end);
                return self.reduce_scatter(send.as_ref(), &whole, mine, op).await;
            }
            Call::Gather { send, recv, root } => {
                let len = recv.as_ref().map_or(0, Given::bytes);
                let recv = recv.as_ref().map(every_recv);
                return self.gather(send.as_ref(), recv.as_ref(), len, *root).await;
            }
            Call::Reduce {
                send,
                recv,
                op,
                root,
            } => return self.reduce(send.as_ref(), recv.as_ref(), op, *root).await,
            Call::Scan { send, recv, op } => {
                return self.scan(send.as_ref(), recv, op, true).await;
            }
            Call::Exscan { send, recv, op } => {
                return self.scan(send.as_ref(), recv, op, false).await;
            }
            // Barriers do not use cells, and `shape` returns `None` for all other calls.
            _ => {}
        }
        Err(Unserved::on(self.comm, call.id()))
    }

    /// Carries out a fast call, which takes one cell per member.
    #[inline]
    pub async fn run_fast_call(&self, call: &FastCall<'_>) -> Result<(), Error> {
        match call {
            // Barriers do not use cells.
            FastCall::Barrier => {}
            FastCall::Bcast { data, root } => return self.bcast(data, *root).await,
            FastCall::Gather { send, recv, root } => {
                let len = send.len();
                return self.gather(Some(send), recv.as_ref(), len, *root).await;
            }
            FastCall::Scatter { send, recv, root } => {
                let len = recv.len();
                return self.scatter(send.as_ref(), Some(recv), len, *root).await;
            }
            // With equal blocks, both forms use the same cells in the same way, so members may mix them.
            FastCall::Allgather { send, recv } | FastCall::Allgatherv { send, recv } => {
                return self.allgather(Some(send), recv, send.len()).await;
            }
            FastCall::Alltoall { send, recv, block } => {
                return self.alltoall(Some(send), recv, *block).await;
            }
            FastCall::Reduce {
                send,
                recv,
                op,
                root,
            } => return self.reduce(Some(send), recv.as_ref(), op, *root).await,
            FastCall::Allreduce { send, recv, op } => {
                return self.allreduce(Some(send), recv, op).await;
            }
            FastCall::ReduceScatterBlock { send, recv, op } => {
                let at = self.me() as usize * recv.len();
                let mine = at..at + recv.len();
                return self.reduce_scatter(Some(send), recv, mine, op).await;
            }
            // One arm for both scans, so that the compiler inlines the function `scan` in a single place.
            FastCall::Scan { send, recv, op } | FastCall::Exscan { send, recv, op } => {
                let with_own = matches!(call, FastCall::Scan { .. });
                return self.scan(Some(send), recv, op, with_own).await;
            }
        }
        Err(Unserved::on(self.comm, call.id()))
    }
}
