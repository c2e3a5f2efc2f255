//! Collectives with a count for each rank: a member knows only the lengths of the blocks that it sends or receives.
//!
//! So members cannot select the protocol by length; instead a header says where the data are:
//! 1. each call takes one operation number; each member's short cell with this number is the header of a block, or of a row of blocks, and contains its length;
//! 2. data longer than a short cell are in a longer cell of the same member and number; data longer than every cell are sent as a message;
//! 3. a receiver waits for the header, compares the lengths, and copies the block or receives the message.
//!
//! In a gather, each member publishes its block in its own cell. In a scatter, the root publishes each block in the cell of the member that receives it.
//! In an all-to-all, each member publishes a row in its own cell: a table of the blocks' ends, then the blocks ([`row_table`](super::row_table)).
//! If a row is too long, the receivers read its longer blocks from the sender's memory, as in [`large`](crate::shm::large),
//! and the sender waits until they have done so. If some member cannot read the memory of another, these blocks are sent as messages.
//!
//! In `MPI_Allgatherv` all members know all lengths, so it uses the protocol for equal blocks of the longest block's length: one cell, or pieces (`pieces`).

use super::data::{CopyTo, Given, Target};
use super::row_table::{Found, Place, Row, block_of};
use super::steps::{await_cell, await_room, show};
use super::{OpInCell, SmallOp};
use crate::Error;
use crate::algo::{self, Blocks};
use crate::datatype::{RecvBuf, SendBuf};
use crate::shm::large::{Exposed, Large, expose, expose_copy};
use crate::shm::layout::Flow;
use crate::shm::wait::Wait;
use crate::{Call, CallId, Invocation, Pending, Unserved};
use mpi_base::cells::CellOf;
use mpi_base::cma::Region;

/// Returns true if a member knows only the lengths of its own blocks.
pub fn knows_only_its_own(call: CallId) -> bool {
    matches!(
        call,
        CallId::Gatherv | CallId::Scatterv | CallId::Alltoallv | CallId::Alltoallw
    )
}

/// Returns the length of the longest block in bytes, and the total length with every block padded to a multiple of eight bytes.
pub fn extents(blocks: &[RecvBuf]) -> (usize, usize) {
    let lens = || blocks.iter().map(Given::bytes);
    let all = lens().map(|len| len.next_multiple_of(8)).sum();
    (lens().max().unwrap_or(0), all)
}

/// The blocks that a call receives: the messages not yet complete, and the first error so far.
struct Received<'a> {
    invocation: &'a Invocation,
    messages: Vec<Pending>,
    outcome: Result<(), Error>,
}

impl<'a> Received<'a> {
    fn new(invocation: &'a Invocation) -> Received<'a> {
        Received {
            invocation,
            messages: Vec::new(),
            outcome: Ok(()),
        }
    }

    /// Copies `data`, the block from `rank`, to its buffer; records an error if the lengths differ.
    fn take(&mut self, rank: u32, data: &[u8], buffer: &RecvBuf) {
        let due = Given::bytes(buffer);
        buffer.take(&data[..data.len().min(due)]);
        let judged = self
            .invocation
            .compare_lengths(rank, data.len() as u64, due as u64);
        self.note(judged);
    }

    /// Copies the block from `rank` from that rank's memory to its buffer.
    fn read(&mut self, large: &Large, rank: u32, block: Region, buffer: &RecvBuf) {
        let (sent, due) = (block.len, buffer.bytes() as u64);
        let outcome = large.read(self.invocation, rank, block, buffer);
        self.note(outcome);
        self.note(self.invocation.compare_lengths(rank, sent, due));
    }

    fn await_message(&mut self, rank: u32, buffer: &RecvBuf) {
        self.messages.push(self.invocation.irecv(buffer, rank));
    }

    fn note(&mut self, outcome: Result<(), Error>) {
        if self.outcome.is_ok() {
            self.outcome = outcome;
        }
    }

    /// Waits for all messages; `going` are those that this rank sends.
    async fn end(self, going: Vec<Pending>) -> Result<(), Error> {
        let mut outcome = self.outcome;
        for message in self.messages.into_iter().chain(going) {
            let ended = message.await;
            outcome = outcome.and(ended);
        }
        outcome
    }
}

impl<'a, W: Wait> SmallOp<'a, W> {
    /// Carries out a call whose [`Small::shape`](super::Small::shape) is [`Shape::Counts`](super::Shape::Counts).
    pub async fn run_counts(
        &self,
        large: &Large,
        invocation: &Invocation,
        call: &Call,
    ) -> Result<(), Error> {
        match call {
            Call::Gatherv { send, recv, root } => {
                let recv = recv.as_deref().filter(|_| self.me() == *root);
                self.gatherv(invocation, send.as_ref(), recv, *root).await
            }
            Call::Scatterv { send, recv, root } => {
                let send = send.as_deref().filter(|_| self.me() == *root);
                self.scatterv(invocation, send, recv.as_ref(), *root).await
            }
            Call::Alltoallv { send, recv } | Call::Alltoallw { send, recv } => {
                self.alltoallv(large, invocation, send.as_deref(), recv)
                    .await
            }
            // Unreachable: `shape` returns `Counts` for no other call.
            _ => Err(Unserved::on(self.comm, call.id())),
        }
    }

    async fn gatherv(
        &self,
        invocation: &Invocation,
        send: Option<&SendBuf>,
        recv: Option<&[RecvBuf]>,
        root: u32,
    ) -> Result<(), Error> {
        let header = &self.fitting(Flow::OneWay, 0);
        let Some(recv) = recv else {
            let own = send.cloned().unwrap_or_else(SendBuf::empty);
            let is_shown = self.show_block(header, self.me(), &own).await?;
            header.report(root);
            self.cells.end(self.members, self.number);
            return match is_shown {
                true => Ok(()),
                false => invocation.send(&own, root).await,
            };
        };
        if let (Some(send), Some(own)) = (send, recv.get(root as usize)) {
            send.copy_to(own);
        }
        header.await_reports().await?;
        let mut received = Received::new(invocation);
        for rank in self.members.others() {
            if let Some(buffer) = recv.get(rank as usize) {
                self.take_block(header, rank, rank, buffer, &mut received);
            }
        }
        self.cells.end(self.members, self.number);
        received.end(Vec::new()).await
    }

    async fn scatterv(
        &self,
        invocation: &Invocation,
        send: Option<&[SendBuf]>,
        recv: Option<&RecvBuf>,
        root: u32,
    ) -> Result<(), Error> {
        let header = &self.fitting(Flow::OneWay, 0);
        let Some(send) = send else {
            let mut received = Received::new(invocation);
            if !header.is_shown_soon(self.me()) {
                await_cell!(header, self.me());
            }
            if let Some(buffer) = recv {
                self.take_block(header, self.me(), root, buffer, &mut received);
            }
            self.cells.end(self.members, self.number);
            return received.end(Vec::new()).await;
        };
        let mut going = Vec::new();
        for rank in self.members.others() {
            let empty = SendBuf::empty();
            let block = send.get(rank as usize).unwrap_or(&empty);
            if !self.show_block(header, rank, block).await? {
                going.push(invocation.isend(block, rank));
            }
        }
        header.ring_others();
        if let (Some(own), Some(recv)) = (send.get(root as usize), recv) {
            own.copy_to(recv);
        }
        self.cells.end(self.members, self.number);
        invocation.all(going).await
    }

    /// Returns the operation with cells for data of `bytes` bytes; `None` if no cell is long enough.
    fn holding(&self, flow: Flow, bytes: usize) -> Option<OpInCell<'_, 'a, W>> {
        (bytes <= self.cells.undivided()).then(|| self.fitting(flow, bytes))
    }

    /// Publishes a block in the cell of member `cell`, to which no other rank writes. Returns false if the block must be sent as a message.
    async fn show_block(
        &self,
        header: &OpInCell<'_, '_, W>,
        cell: u32,
        block: &SendBuf,
    ) -> Result<bool, Error> {
        let bytes = Given::bytes(block);
        let place = self.holding(Flow::OneWay, bytes);
        if let Some(place) = &place {
            await_room!(place);
            place.fill(cell, block);
        }
        await_room!(header);
        header.publish_for(cell, bytes);
        Ok(place.is_some())
    }

    /// Copies the block whose header is in the cell of member `cell`; if the block is a message, starts a receive from `source`.
    fn take_block(
        &self,
        header: &OpInCell<'_, '_, W>,
        cell: u32,
        source: u32,
        buffer: &RecvBuf,
        received: &mut Received<'_>,
    ) {
        let sent = self.cells.published(cell, header.address);
        match self.holding(Flow::OneWay, sent) {
            Some(place) => self.cells.inspect(cell, place.address, 0..sent, |data| {
                received.take(source, data, buffer)
            }),
            None => received.await_message(source, buffer),
        }
    }

    async fn alltoallv(
        &self,
        large: &Large,
        invocation: &Invocation,
        send: Option<&[SendBuf]>,
        recv: &[RecvBuf],
    ) -> Result<(), Error> {
        let (me, members) = (self.me() as usize, self.members.count());
        let len = |rank: usize| match send {
            Some(send) => send.get(rank).map_or(0, Given::bytes),
            None => recv.get(rank).map_or(0, Given::bytes),
        };
        // This rank's own block is not in the row.
        let lens = (0..members as usize).map(|rank| if rank == me { 0 } else { len(rank) });
        let readable_from = large.readable_from();
        let row = Row::of(lens.clone(), members, self.cells.undivided(), readable_from);
        let exposed = exposed_blocks(&row, lens.clone(), send, recv)?;
        let header = &self.fitting(Flow::CooperativeCopy, 0);
        let place = self.fitting(Flow::CooperativeCopy, row.bytes());
        await_room!(place);
        await_room!(header);
        let pack = |rank: usize, block: &mut [u8]| match send {
            Some(send) => send[rank].pack(block),
            None => recv[rank].pack(block),
        };
        self.cells
            .compose(self.me(), place.address, 0..row.bytes(), |buffer| {
                row.lay(lens.clone(), buffer, pack, |rank| region(&exposed, rank));
            });
        header.publish_of(row.bytes());
        let mut messages = Vec::new();
        for (rank, len) in lens.enumerate() {
            if row.place(len) == Place::Message {
                let block = match send {
                    Some(send) => send[rank].clone(),
                    // The block received from `rank` overwrites this one in the same buffer, so a copy is sent.
                    None => packed(&recv[rank].as_send())?,
                };
                messages.push(invocation.isend(&block, rank as u32));
            }
        }
        let conclude = || {
            header.conclude_empty();
            Ok(())
        };
        header.meet(conclude).await?;
        let mut received = Received::new(invocation);
        let mut has_read = false;
        // Each rank starts with the next rank, so that not all ranks read from the same rank first.
        for rank in self.members.others_from_next() {
            let Some(buffer) = recv.get(rank as usize) else {
                continue;
            };
            let bytes = self.cells.published(rank, header.address);
            let place = self.fitting(Flow::CooperativeCopy, bytes);
            self.cells.inspect(rank, place.address, 0..bytes, |row| {
                match block_of(row, members as usize, me) {
                    Found::Data(block) => received.take(rank, block, buffer),
                    Found::Memory(block) => {
                        has_read = true;
                        received.read(large, rank, block, buffer);
                    }
                    Found::Message => received.await_message(rank, buffer),
                }
            });
        }
        if let (Some(own), Some(buffer)) = (send.and_then(|send| send.get(me)), recv.get(me)) {
            own.copy_to(buffer);
        }
        match has_read {
            // The ranks whose memory was read wait for the end of this operation.
            true => self.cells.end_long(self.members, self.number),
            false => self.cells.end_together(self.members, self.number),
        }
        self.await_readers(&exposed).await?;
        received.end(messages).await
    }

    /// Waits until all ranks that read blocks from this rank's memory have read them.
    async fn await_readers(&self, exposed: &[(usize, Exposed)]) -> Result<(), Error> {
        if exposed.is_empty() {
            return Ok(());
        }
        let reads = |rank: u32| exposed.iter().any(|(reader, _)| *reader == rank as usize);
        self.cells
            .await_end(self.wait, self.engine, self.members, self.number, reads)
            .await
    }

    /// Allgather of blocks that each fit a cell; without `send` this rank's own block is already in `recv`.
    pub(super) async fn allgatherv(
        &self,
        send: Option<&SendBuf>,
        recv: &[RecvBuf],
    ) -> Result<(), Error> {
        let (longest, all) = extents(recv);
        let joined = all <= self.cells.capacity();
        let cell_op = &self.fitting_both(Flow::CooperativeCopy, longest, joined.then_some(all));
        match (send, recv.get(self.me() as usize)) {
            (Some(send), _) => show!(cell_op, send),
            (None, Some(own)) => show!(cell_op, own),
            (None, None) => show!(cell_op, &SendBuf::empty()),
        }
        let starts = || {
            recv.iter().scan(0, |end, block| {
                let start = *end;
                *end += Given::bytes(block).next_multiple_of(8);
                Some(start)
            })
        };
        let work = || {
            if joined {
                for ((rank, block), at) in (0..).zip(recv).zip(starts()) {
                    let bytes = 0..Given::bytes(block);
                    cell_op.cells.pass_on(cell_op.address, rank, bytes, at);
                }
            }
            cell_op.conclude_empty();
            Ok(())
        };
        let joined = cell_op.meet(work).await? && joined;
        for ((rank, block), at) in (0..).zip(recv).zip(starts()) {
            match joined {
                _ if rank == self.me() => {
                    if let Some(send) = send {
                        send.copy_to(block);
                    }
                }
                true => cell_op.take(CellOf::Result, at, block),
                false => cell_op.take(rank, 0, block),
            }
        }
        cell_op.cells.end_together(cell_op.members, cell_op.number);
        Ok(())
    }
}

/// Returns the blocks that receivers read directly from this rank's memory (`Place::Memory`), each with its receiver's rank.
fn exposed_blocks(
    row: &Row,
    lens: impl Iterator<Item = usize>,
    send: Option<&[SendBuf]>,
    recv: &[RecvBuf],
) -> Result<Vec<(usize, Exposed)>, Error> {
    let ranks = lens
        .enumerate()
        .filter(|(_, len)| row.place(*len) == Place::Memory);
    let exposed = |(rank, _): (usize, usize)| {
        let block = match send {
            Some(send) => expose(&send[rank]),
            // The block received from `rank` overwrites this one in the same buffer, so `rank` reads a copy.
            None => expose_copy(&recv[rank].as_send()),
        };
        Ok((rank, block?))
    };
    ranks.map(exposed).collect()
}

fn region(exposed: &[(usize, Exposed)], rank: usize) -> Region {
    let at = exposed.binary_search_by_key(&rank, |(rank, _)| *rank);
    let block = at.ok().and_then(|at| exposed.get(at));
    block.map_or(Region { address: 0, len: 0 }, |(_, block)| block.region())
}

fn packed(block: &SendBuf) -> Result<SendBuf, Error> {
    let own = algo::bytes(block.bytes())?;
    algo::copy(block, &own.all());
    Ok(own.all().as_send())
}

/// Returns this rank's own data and the blocks, if the call is an allgather.
pub fn of_allgather(call: &Call, members: u32) -> Option<(Option<&SendBuf>, Blocks<RecvBuf>)> {
    match call {
        Call::Allgather { send, recv } => Some((send.as_ref(), Blocks::equal(recv, members))),
        Call::Allgatherv { send, recv } => Some((send.as_ref(), Blocks::each(recv))),
        _ => None,
    }
}
