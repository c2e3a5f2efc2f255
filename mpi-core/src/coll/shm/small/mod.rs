//! Collectives of short data through [`Cells`]: everybody shows what he has, and takes what he needs.
//!
//! Where every rank has a core, each reads and combines for itself: one cache line to and fro.
//! Where ranks share cores, who comes last does the work for all, so that a rank that is switched in finds it done,
//! and a root looks at one word until all have come.
//!
//! Operands are combined in the order of ranks, whoever does it, so every member gets the same bits every time.
//!
//! Where data go one way only, who has shown them does not wait for who reads them, and longer operands go in pieces, a cell each:
//! while a root combines one piece, the next one is on its way.
//! Blocks that are only moved do not: one copy by the system is faster than two through cells.
//! Which calls are served follows from what the standard makes equal at all members, and from rank 0's choice of gate.

mod blocks;
mod reductions;
mod steps;

use super::cells::Cells;
use super::gate::{Kind, LINE, Members};
use super::scattered;
use super::wait::Waits;
use crate::Error;
use crate::coll::algo::Buffer;
use crate::coll::{Call, CallId, Cx};
use crate::datatype::{Datatype, RecvBuf, Scratch, SendBuf};
use mpi_base::cells::DEPTH;
use std::cell::RefCell;
use std::ops::Range;

/// The short collectives of one communicator, of one lane.
pub struct Small {
    pub cells: Cells,
    kind: Kind,
    /// Room for an operand, kept from call to call.
    operand: RefCell<Option<Scratch>>,
}

/// One operation under way.
#[derive(Clone, Copy)]
pub struct Turn<'a, W> {
    pub small: &'a Small,
    pub members: &'a Members,
    pub cx: &'a Cx,
    pub number: u64,
    pub wait: W,
}

impl Small {
    pub fn new(cells: Cells, kind: Kind) -> Small {
        Small {
            cells,
            kind,
            operand: RefCell::default(),
        }
    }

    /// Up to how many bytes a call's blocks go through cells.
    pub fn fits(&self, call: CallId, members: u32) -> u64 {
        let all = self.cells.capacity() as u64;
        match call {
            CallId::Alltoall | CallId::Scatter | CallId::ReduceScatterBlock => {
                all / u64::from(members.max(1)) / 8 * 8
            }
            CallId::Reduce | CallId::Scan | CallId::Exscan if self.kind == Kind::Flags => {
                all.max(self.piece() as u64 * DEPTH)
            }
            _ => all,
        }
    }

    /// How many operations of the cells a call takes, if it goes through them; the same answer at all members.
    #[inline]
    pub fn pieces(&self, call: &Call, members: u32) -> Option<u64> {
        let fits = |bytes: i64| bytes as u64 <= self.cells.capacity() as u64;
        // Blocks of one cell begin at words.
        let all = |block: i64| fits(block.saturating_mul(members.into())) && block % 8 == 0;
        let one = match call {
            Call::Bcast { buf, .. } => fits(buf.bytes()),
            // Equal at all members, as is the count; what a user's datatype needs for an operand is not worth keeping.
            Call::Allreduce { recv, .. } => {
                fits(recv.bytes()) && recv.datatype().as_named().is_some()
            }
            Call::Allgather { recv, .. } => fits(recv.bytes()),
            Call::Alltoall { recv, .. } => all(recv.bytes()),
            Call::Gather { send, recv, .. } => {
                let block = send.as_ref().map(SendBuf::bytes);
                let block = block.or(recv.as_ref().map(RecvBuf::bytes));
                fits(block.unwrap_or(0))
            }
            Call::Scatter { send, recv, .. } => {
                let block = recv.as_ref().map(RecvBuf::bytes);
                all(block.or(send.as_ref().map(SendBuf::bytes)).unwrap_or(0))
            }
            Call::Reduce { send, recv, .. } => {
                let of_send = send.as_ref().map(|send| (send.count(), send.datatype()));
                let own = of_send.or(recv.as_ref().map(|recv| (recv.count(), recv.datatype())));
                let (count, datatype) = own?;
                return self.cut_elements(count, datatype);
            }
            Call::Scan { recv, .. } | Call::Exscan { recv, .. } => {
                return self.cut_elements(recv.count(), recv.datatype());
            }
            Call::ReduceScatterBlock { recv, .. } => {
                all(recv.bytes()) && recv.datatype().as_named().is_some()
            }
            Call::ReduceScatter { recv, counts, .. } => {
                let (datatype, total) = (recv.datatype(), counts.iter().sum());
                fits(datatype.bytes(total))
                    && datatype.as_named().is_some()
                    && counts.iter().all(|count| datatype.bytes(*count) % 8 == 0)
            }
            _ => false,
        };
        one.then_some(1)
    }

    /// The bytes of a piece of longer data: elements and words of any predefined type end where it does.
    fn piece(&self) -> i64 {
        (self.cells.capacity() / LINE * LINE) as i64
    }

    /// Into how many pieces data that go one way are cut, if they go through the cells: as many as nobody has to wait for.
    #[inline]
    fn cut(&self, bytes: i64) -> Option<u64> {
        if bytes as u64 <= self.cells.capacity() as u64 {
            return Some(1);
        }
        let piece = self.piece();
        let room = self.kind == Kind::Flags && piece > 0 && bytes <= piece * DEPTH as i64;
        room.then(|| (bytes as u64).div_ceil(piece as u64))
    }

    /// The same for operands, which are cut between elements.
    #[inline]
    fn cut_elements(&self, count: i64, datatype: &Datatype) -> Option<u64> {
        datatype.as_named()?;
        let (size, bytes) = (datatype.size().max(1), datatype.bytes(count));
        self.cut(bytes).filter(|pieces| {
            let dense = datatype.contiguous_bytes(count).is_some();
            *pieces == 1 || (dense && self.piece() % size == 0)
        })
    }
}

impl<W: Waits> Turn<'_, W> {
    /// Carries out a call that takes so many of [`Small::pieces`].
    #[inline]
    pub async fn run(&self, call: &Call, pieces: u64) -> Result<(), Error> {
        match call {
            Call::Bcast { buf, root } => self.bcast(buf, *root).await,
            Call::Allreduce { send, recv, op } => self.allreduce(send.as_ref(), recv, op).await,
            Call::Allgather { send, recv } => self.allgather(send.as_ref(), recv).await,
            Call::Alltoall { send, recv } => self.alltoall(send.as_ref(), recv).await,
            Call::Scatter { send, recv, root } => {
                self.scatter(send.as_ref(), recv.as_ref(), *root).await
            }
            Call::ReduceScatterBlock { send, op, .. } | Call::ReduceScatter { send, op, .. } => {
                let Some((whole, mine)) = scattered(call, self.members) else {
                    return Ok(());
                };
                self.reduce_scatter(send.as_ref(), &whole, mine, op).await
            }
            Call::Gather { send, recv, root } => {
                self.gather(send.as_ref(), recv.as_ref(), *root).await
            }
            Call::Reduce {
                send,
                recv,
                op,
                root,
            } if pieces == 1 => self.reduce(send.as_ref(), recv.as_ref(), op, *root).await,
            Call::Scan { send, recv, op } if pieces == 1 => {
                self.scan(send.as_ref(), recv, op, self.me() + 1).await
            }
            Call::Exscan { send, recv, op } if pieces == 1 => {
                self.scan(send.as_ref(), recv, op, self.me()).await
            }
            _ => self.run_in_pieces(call, pieces).await,
        }
    }

    /// Carries out a reduction whose operands go one way, piece after piece.
    async fn run_in_pieces(&self, call: &Call, pieces: u64) -> Result<(), Error> {
        let mut outcome = Ok(());
        for (turn, bytes) in self.pieces(pieces) {
            // An operator may fail, but nobody may be left waiting for the other pieces.
            outcome = outcome.and(match call {
                Call::Reduce {
                    send,
                    recv,
                    op,
                    root,
                } => {
                    let send = send.as_ref().map(|send| cut(send, send.datatype(), &bytes));
                    let recv = recv.as_ref().map(|recv| cut(recv, recv.datatype(), &bytes));
                    turn.reduce(send.as_ref(), recv.as_ref(), op, *root).await
                }
                Call::Scan { send, recv, op } | Call::Exscan { send, recv, op } => {
                    let own = matches!(call, Call::Scan { .. });
                    let send = send.as_ref().map(|send| cut(send, send.datatype(), &bytes));
                    let recv = cut(recv, recv.datatype(), &bytes);
                    let ranks = self.me() + u32::from(own);
                    turn.scan(send.as_ref(), &recv, op, ranks).await
                }
                // The others are not cut, or cut themselves.
                _ => Ok(()),
            });
        }
        outcome
    }

    /// The turns of a call's pieces, and which packed bytes each has.
    fn pieces(&self, how_many: u64) -> impl Iterator<Item = (Self, Range<i64>)> {
        let (turn, piece) = (*self, self.small.piece());
        (0..how_many).map(move |i| {
            let number = turn.number + i;
            let start = i as i64 * piece;
            (Turn { number, ..turn }, start..start + piece)
        })
    }
}

/// The elements of an operand that are these packed bytes.
fn cut<B: Buffer>(buf: &B, datatype: &Datatype, bytes: &Range<i64>) -> B {
    let size = datatype.size().max(1);
    buf.slice(bytes.start / size..bytes.end / size)
}
