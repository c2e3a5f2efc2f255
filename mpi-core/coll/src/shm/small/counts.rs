//! Collectives with a count for each rank, in which a member knows only the lengths of the blocks that it sends or receives.
//!
//! So the protocol cannot be selected by length on all members; instead a header states where the data are:
//! 1. each operation takes one cell number, and each member's short cell with this number is the header of a block or of a row of blocks, with its length;
//! 2. if the length exceeds a short cell, the data are in a longer cell of the same member and number; if it exceeds every cell, they are sent as a message;
//! 3. a receiver waits for the header, compares the lengths, and takes the block, or receives the message.
//!
//! A gather shows each member's block in that member's cell. A scatter shows a block in the cell of the member that receives it.
//! An all-to-all shows a row in each member's cell: a table of the blocks' ends, and the blocks.
//! Where a row is too long, its longer blocks are messages, as marked in the table.
//!
//! In `MPI_Allgatherv` all members know all lengths, so it uses the protocol of equal blocks of the longest block's length: one cell, or pieces (`pieces`).

use super::data::{CopyTo, Given, Target};
use super::steps::{await_cell, await_room, show};
use super::{OpInCell, SmallOp};
use crate::Error;
use crate::algo::{self, Blocks};
use crate::datatype::{RecvBuf, SendBuf};
use crate::shm::layout::Flow;
use crate::shm::wait::Wait;
use crate::{Call, CallId, Invocation, Pending};
use mpi_base::cells::CellOf;

/// The bytes of an entry of a row's table.
const ENTRY: usize = size_of::<u32>();

/// Flag in an entry: the block is sent as a message.
const MESSAGE: u32 = 1 << 31;

/// An all-to-all stores its rows in cells only if a cell holds at least this many times the table.
const SPACIOUS: usize = 4;

/// Returns true if a cell of `capacity` bytes holds a row of blocks for `members` members.
pub fn holds_rows(capacity: usize, members: u32) -> bool {
    capacity >= SPACIOUS * ENTRY * members as usize
}

/// Returns true if a member knows only the lengths of its own blocks.
pub fn knows_only_its_own(call: CallId) -> bool {
    matches!(
        call,
        CallId::Gatherv | CallId::Scatterv | CallId::Alltoallv | CallId::Alltoallw
    )
}

/// Returns the bytes of the longest block, and the total bytes with every block padded to a multiple of eight.
pub fn extents(blocks: &[RecvBuf]) -> (usize, usize) {
    let lens = || blocks.iter().map(Given::bytes);
    let all = lens().map(|len| len.next_multiple_of(8)).sum();
    (lens().max().unwrap_or(0), all)
}

/// The layout of a row: a table with an entry for each member, then the blocks that are not messages.
struct Row {
    members: usize,
    /// The maximum length of a block in the row; longer blocks are sent as messages.
    longest: usize,
    /// The bytes of the table and of the blocks.
    bytes: usize,
}

impl Row {
    /// The row of blocks of these lengths, in a cell of `capacity` bytes.
    fn of(lens: impl Iterator<Item = usize> + Clone, members: u32, capacity: usize) -> Row {
        let members = members as usize;
        let table = (members * ENTRY).next_multiple_of(8);
        let space = capacity.saturating_sub(table);
        let all: usize = lens.clone().sum();
        let longest = match all <= space {
            true => space,
            false => space / members.max(1),
        };
        let bytes = table + lens.filter(|len| *len <= longest).sum::<usize>();
        Row {
            members,
            longest,
            bytes,
        }
    }

    /// The offset at which the blocks begin.
    fn table(&self) -> usize {
        (self.members * ENTRY).next_multiple_of(8)
    }

    /// Writes the table and the blocks; `pack` writes a block.
    fn lay(
        &self,
        lens: impl Iterator<Item = usize>,
        buffer: &mut [u8],
        pack: impl Fn(usize, &mut [u8]),
    ) {
        let (table, blocks) = buffer.split_at_mut(self.table().min(buffer.len()));
        let (entries, _) = table.as_chunks_mut::<ENTRY>();
        let mut end = 0;
        for ((rank, len), entry) in lens.enumerate().zip(entries) {
            let mark = match len <= self.longest {
                true => {
                    if let Some(block) = blocks.get_mut(end..end + len)
                        && !block.is_empty()
                    {
                        pack(rank, block);
                    }
                    end += len;
                    0
                }
                false => MESSAGE,
            };
            *entry = (end as u32 | mark).to_ne_bytes();
        }
    }
}

/// Returns one member's block in a row that another member has written; `None` if the block is sent as a message.
///
/// An entry that names bytes outside of the row, which no member writes, gives an empty block.
fn block_of(row: &[u8], members: usize, rank: usize) -> Option<&[u8]> {
    let (table, blocks) = row
        .split_at_checked((members * ENTRY).next_multiple_of(8))
        .unwrap_or((&[], &[]));
    let (entries, _) = table.as_chunks::<ENTRY>();
    let entry = |rank: usize| entries.get(rank).map_or(0, |e| u32::from_ne_bytes(*e));
    let end = entry(rank);
    if end & MESSAGE != 0 {
        return None;
    }
    let start = rank.checked_sub(1).map_or(0, entry) & !MESSAGE;
    Some(blocks.get(start as usize..end as usize).unwrap_or(&[]))
}

/// The received blocks of a call: the messages still in transfer, and the first error of the completed blocks.
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

    /// Copies the block of `rank`, of which `sent` bytes are in `data`, to its buffer.
    fn take(&mut self, rank: u32, data: &[u8], buffer: &RecvBuf) {
        let due = Given::bytes(buffer);
        buffer.take(&data[..data.len().min(due)]);
        let judged = self
            .invocation
            .compare_lengths(rank, data.len() as u64, due as u64);
        self.note(judged);
    }

    fn await_message(&mut self, rank: u32, buffer: &RecvBuf) {
        self.messages.push(self.invocation.irecv(buffer, rank));
    }

    fn note(&mut self, outcome: Result<(), Error>) {
        if self.outcome.is_ok() {
            self.outcome = outcome;
        }
    }

    /// Waits for the messages; `going` are the messages that this rank sends.
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
    pub async fn run_counts(&self, invocation: &Invocation, call: &Call) -> Result<(), Error> {
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
                self.alltoallv(invocation, send.as_deref(), recv).await
            }
            // Unreachable: `shape` returns `Counts` for no other call.
            _ => Ok(()),
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

    /// Returns the operation with cells that hold `bytes` bytes; `None` if no cell is long enough.
    fn holding(&self, flow: Flow, bytes: usize) -> Option<OpInCell<'_, 'a, W>> {
        (bytes <= self.cells.undivided()).then(|| self.fitting(flow, bytes))
    }

    /// Shows a block in a member's cell, where no other rank writes. Returns false if the block must be sent as a message.
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

    /// Takes the block whose header a cell shows; if the block is a message, begins to receive it from `source`.
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
        invocation: &Invocation,
        send: Option<&[SendBuf]>,
        recv: &[RecvBuf],
    ) -> Result<(), Error> {
        let (me, members) = (self.me() as usize, self.members.count());
        let len = |rank: usize| match send {
            Some(send) => send.get(rank).map_or(0, Given::bytes),
            None => recv.get(rank).map_or(0, Given::bytes),
        };
        // This rank's own block is not shown.
        let lens = (0..members as usize).map(|rank| if rank == me { 0 } else { len(rank) });
        let row = Row::of(lens.clone(), members, self.cells.undivided());
        let header = &self.fitting(Flow::CooperativeCopy, 0);
        let place = self.fitting(Flow::CooperativeCopy, row.bytes);
        await_room!(place);
        await_room!(header);
        self.cells
            .compose(self.me(), place.address, 0..row.bytes, |buffer| {
                row.lay(lens.clone(), buffer, |rank, block| match send {
                    Some(send) => send[rank].pack(block),
                    None => recv[rank].pack(block),
                });
            });
        header.publish_of(row.bytes);
        let mut messages = Vec::new();
        for (rank, len) in lens.enumerate() {
            if len > row.longest {
                let block = match send {
                    Some(send) => send[rank].clone(),
                    // The incoming block overwrites this block in the same buffer, so a copy is sent.
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
        for rank in self.members.others() {
            let Some(buffer) = recv.get(rank as usize) else {
                continue;
            };
            let bytes = self.cells.published(rank, header.address);
            let place = self.fitting(Flow::CooperativeCopy, bytes);
            self.cells.inspect(rank, place.address, 0..bytes, |row| {
                match block_of(row, members as usize, me) {
                    Some(block) => received.take(rank, block, buffer),
                    None => received.await_message(rank, buffer),
                }
            });
        }
        if let (Some(own), Some(buffer)) = (send.and_then(|send| send.get(me)), recv.get(me)) {
            own.copy_to(buffer);
        }
        self.cells.end_together(self.members, self.number);
        received.end(messages).await
    }

    /// Allgather of blocks that fit a cell each; without `send` this rank's own block is in place.
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

/// A copy of a block.
fn packed(block: &SendBuf) -> Result<SendBuf, Error> {
    let own = algo::bytes(block.bytes())?;
    algo::copy(block, &own.all());
    Ok(own.all().as_send())
}

/// The blocks of an allgather.
pub fn of_allgather(call: &Call, members: u32) -> Option<(Option<&SendBuf>, Blocks<RecvBuf>)> {
    match call {
        Call::Allgather { send, recv } => Some((send.as_ref(), Blocks::equal(recv, members))),
        Call::Allgatherv { send, recv } => Some((send.as_ref(), Blocks::each(recv))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every block is in the row or marked as a message, no row is longer than its cell, and a row that fits has no messages.
        #[test]
        fn a_reader_finds_each_block_of_a_row_or_its_mark(
            lens in proptest::collection::vec(0usize..3000, 1..40),
            capacity in 700usize..70_000,
        ) {
            prop_assume!(holds_rows(capacity, lens.len() as u32));
            let members = lens.len();
            let row = Row::of(lens.iter().copied(), members as u32, capacity);
            prop_assert!(row.bytes <= capacity);
            let mut buffer = vec![0xff; row.bytes];
            row.lay(lens.iter().copied(), &mut buffer, |rank, block| block.fill(rank as u8));
            let mut messages = 0;
            for (rank, len) in lens.iter().enumerate() {
                match block_of(&buffer, members, rank) {
                    Some(block) => {
                        prop_assert_eq!(block.len(), *len);
                        prop_assert!(block.iter().all(|byte| *byte == rank as u8));
                    }
                    None => messages += 1,
                }
            }
            let fits = row.table() + lens.iter().sum::<usize>() <= capacity;
            prop_assert_eq!(fits, messages == 0);
        }

        /// No row makes a reader panic.
        #[test]
        fn any_bytes_are_a_row(
            row in proptest::collection::vec(any::<u8>(), 0..200),
            members in 1usize..40,
        ) {
            for rank in 0..members {
                let block = block_of(&row, members, rank);
                prop_assert!(block.is_none_or(|block| block.len() <= row.len()));
            }
        }
    }
}
