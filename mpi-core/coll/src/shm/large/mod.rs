//! Collectives of long data by single copies: every rank publishes the address of its data, and each rank reads the data that it needs;
//! or a root publishes the address of its buffer, and all other ranks write to it at the same time.
//!
//! The kernel copies from and to another process's memory (`mpi_base::cma`). Single copies are used only if every member can read the memory of every other;
//! the members test it when the communicator is created ([`CmaAccess`]).
//! The addresses are sent through [`Cells`], in one or two operations per call. The cells also implement waiting, sleeping and wakeup:
//! 1. a rank that has data publishes the address in its cell;
//! 2. a rank that needs the data waits for this cell and then reads the data;
//! 3. a reader ends its operation, and a rank whose memory is read leaves the call only after all readers have ended theirs.
//!
//! Reductions are divided among ranks called workers: each combines one piece of every rank's data, and the other ranks read the pieces from the workers.
//! Scans go from rank to rank: each reads its predecessor's result, which takes the least work in total.
//! In reduce-scatters every rank combines all operands of its own part of the result.
//! With two ranks, each rank that needs the result combines all data itself: reading a piece from the other rank would take as long as combining it.
//! If the result overwrites an operand (`MPI_IN_PLACE`), both ranks are workers.
//! Operands are combined in the order of ranks, so operators need not commute, and every call gives the same bits.
//!
//! After S. Chakraborty, H. Subramoni, D. K. Panda, "Contention-aware kernel-assisted MPI collectives for multi-/many-core systems", IEEE Cluster 2017.

mod reductions;

use super::cells::Cells;
use super::cma_access::CmaAccess;
use super::layout::Flow;
use super::members::Members;
use super::wait::{Wait, or_leave};
use super::{WORD, scattered};
use crate::Error;
use crate::algo::{self, Blocks};
use crate::datatype::{Datatype, RecvBuf, Scratch, SendBuf};
use crate::{Call, Invocation, Unserved};
use mpi_base::cells::CellAddress;
use mpi_base::cma::Region;
use std::cell::RefCell;

/// Number of bytes that are read into temporary memory at a time; a few such blocks fit the nearest cache.
const BLOCK: i64 = 64 << 10;

/// From this length in bytes on, a point-to-point message between two ranks, which both ranks copy together,
/// is faster than a single copy by one of them (docs/adr/0009-both-sides-work-on-one-copy.md).
const SHARED_COPY: i64 = 128 << 10;

/// A root publishes this value instead of an address if its buffer is not contiguous, so that the others cannot write to it.
const NOWHERE: u64 = 0;

const KEPT: i64 = 512 << 10;

/// Single copies for the long collectives of one communicator.
pub struct Large {
    pub readers: CmaAccess,
    /// The length in bytes from which single copies are used; rank 0's setting.
    pub from: u64,
    /// Temporary memory for operands, kept between calls.
    pub scratch: RefCell<Option<Scratch>>,
}

/// One call that is carried out by single copies.
pub struct LargeOp<'a, W> {
    pub large: &'a Large,
    pub cells: &'a Cells,
    pub members: &'a Members,
    pub invocation: &'a Invocation,
    /// The number of the call's first cell operation; the call takes [`Large::numbers`] of them.
    pub number: u64,
    pub wait: W,
}

impl Large {
    /// Returns true if this call is carried out by single copies. All members get the same result.
    pub fn serves(&self, call: &Call, members: u32) -> bool {
        let long = |bytes: i64| bytes as u64 >= self.from;
        let operand = |recv: &RecvBuf| long(recv.bytes()) && plain(&recv.as_send());
        // With two ranks, only the reading rank would copy, while in a point-to-point message both ranks copy.
        // So from `SHARED_COPY` bytes on, messages are faster than single copies.
        let one_way = |bytes: i64| long(bytes) && (members > 2 || bytes < SHARED_COPY);
        let wanted = match call {
            Call::Bcast { buf, .. } => one_way(buf.bytes()),
            Call::Allgather { recv, .. } | Call::Alltoall { recv, .. } => long(recv.bytes()),
            Call::Allgatherv { recv, .. } => recv.iter().any(|block| long(block.bytes())),
            Call::Gather { send, recv, .. } => one_way(either(send, recv)),
            Call::Scatter { send, recv, .. } => long(either(send, recv)),
            Call::Allreduce { recv, .. } | Call::Scan { recv, .. } | Call::Exscan { recv, .. } => {
                operand(recv)
            }
            Call::ReduceScatterBlock { recv, .. } => {
                let total = recv.count() * i64::from(members);
                long(recv.bytes()) && plain(&recv.with_count(total).as_send())
            }
            Call::ReduceScatter { recv, counts, .. } => {
                let whole = recv.with_count(counts.iter().sum());
                long(whole.bytes() / i64::from(members)) && plain(&whole.as_send())
            }
            Call::Reduce { send, recv, .. } => {
                let own = send.clone().or_else(|| recv.as_ref().map(RecvBuf::as_send));
                own.is_some_and(|own| long(own.bytes()) && plain(&own))
            }
            _ => false,
        };
        wanted && self.readers.all_can()
    }

    /// Returns the minimum length in bytes of data that members read from each other's memory, or `u64::MAX` if some member cannot.
    /// All members get the same result.
    pub fn readable_from(&self) -> u64 {
        match self.readers.all_can() {
            true => self.from,
            false => u64::MAX,
        }
    }

    /// Reads a rank's packed data into a buffer, at most as many bytes as fit the buffer.
    pub fn read(
        &self,
        invocation: &Invocation,
        rank: u32,
        data: Region,
        buf: &RecvBuf,
    ) -> Result<(), Error> {
        let mut buf = buf.clone();
        let at = data.address;
        let total = buf.bytes().min(i64::try_from(data.len).unwrap_or(i64::MAX));
        let read = |at, into: &mut [u8]| self.readers.read(invocation, rank, at, into);
        if let Some(run) = buf.contiguous() {
            return read(at, &mut run[..total as usize]);
        }
        let mut piece = vec![0; total.min(BLOCK) as usize];
        let mut done = 0;
        while done < total {
            let len = (total - done).min(BLOCK) as usize;
            read(at + done as u64, &mut piece[..len])?;
            buf.unpack_at(done, &piece[..len]);
            done += len as i64;
        }
        Ok(())
    }

    /// Returns the number of cell operations for a call.
    pub fn numbers(call: &Call) -> u64 {
        match call {
            // One operation for the operands, one for the results.
            Call::Reduce { .. } | Call::Allreduce { .. } => 2,
            _ => 1,
        }
    }

    /// Returns temporary memory for `count` elements; reuses an earlier call's memory if type and size permit.
    fn scratch(&self, count: i64, datatype: &Datatype) -> Result<Scratch, Error> {
        let kept = self.scratch.take();
        let fits = |kept: &Scratch| kept.datatype().same(datatype) && kept.count() >= count;
        match kept.filter(fits) {
            Some(kept) => Ok(kept),
            None => algo::elements(count, datatype),
        }
    }

    fn keep(&self, buffer: Scratch) {
        if buffer.all().bytes() <= KEPT {
            *self.scratch.borrow_mut() = Some(buffer);
        }
    }
}

/// Returns the length in bytes of one rank's block, from the buffer that this member has.
fn either(send: &Option<SendBuf>, recv: &Option<RecvBuf>) -> i64 {
    let of_send = send.as_ref().map(SendBuf::bytes);
    of_send.or(recv.as_ref().map(RecvBuf::bytes)).unwrap_or(0)
}

/// Returns true if operands can be divided between any two elements: a predefined type without holes.
///
/// All members pass the same type and count, so all get the same result; addresses are not checked, since some members may have no buffer.
fn plain(buf: &SendBuf) -> bool {
    buf.datatype().as_named().is_some() && buf.is_one_run()
}

/// Packed data that other ranks read; if the data are a copy, this value owns the copy's memory.
pub struct Exposed {
    at: u64,
    bytes: u64,
    _own: Option<Scratch>,
}

impl Exposed {
    /// Returns the address and the length of the data.
    pub fn region(&self) -> Region {
        Region {
            address: self.at,
            len: self.bytes,
        }
    }
}

/// Returns a buffer's packed bytes for other ranks to read: the buffer itself if it is contiguous, else a copy.
pub fn expose(buf: &SendBuf) -> Result<Exposed, Error> {
    if let Some(run) = buf.contiguous() {
        return Ok(Exposed {
            at: run.as_ptr().addr() as u64,
            bytes: run.len() as u64,
            _own: None,
        });
    }
    expose_copy(buf)
}

/// Copies a buffer's packed bytes to memory that other ranks can read while the buffer changes.
pub fn expose_copy(buf: &SendBuf) -> Result<Exposed, Error> {
    let own = algo::bytes(buf.bytes())?;
    algo::copy(buf, &own.all());
    Ok(Exposed {
        at: own.all().ptr().addr() as u64,
        bytes: buf.bytes() as u64,
        _own: Some(own),
    })
}

impl<W: Wait> LargeOp<'_, W> {
    /// Carries out a call for which [`Large::serves`] has returned true.
    pub async fn run(&self, call: &Call) -> Result<(), Error> {
        match call {
            Call::Bcast { buf, root } => self.bcast(buf, *root).await,
            Call::Allgather { send, recv } => {
                let blocks = Blocks::equal(recv, self.size());
                self.allgather(send.as_ref(), &blocks).await
            }
            Call::Allgatherv { send, recv } => {
                self.allgather(send.as_ref(), &Blocks::each(recv)).await
            }
            Call::Alltoall { send, recv } => self.alltoall(send.as_ref(), recv).await,
            Call::Gather { send, recv, root } => {
                self.gather(send.as_ref(), recv.as_ref(), *root).await
            }
            Call::Scatter { send, recv, root } => {
                self.scatter(send.as_ref(), recv.as_ref(), *root).await
            }
            Call::Allreduce { send, recv, op } => {
                let own = send.clone().unwrap_or_else(|| recv.as_send());
                self.reduce(&own, Some(recv), op, None).await
            }
            Call::Reduce {
                send,
                recv,
                op,
                root,
            } => {
                let recv = recv.as_ref().filter(|_| self.me() == *root);
                let own = send.clone().or_else(|| recv.map(RecvBuf::as_send));
                match own {
                    Some(own) => self.reduce(&own, recv, op, Some(*root)).await,
                    None => Ok(()),
                }
            }
            Call::ReduceScatterBlock { send, op, .. } | Call::ReduceScatter { send, op, .. } => {
                match scattered(call, self.members) {
                    Some((whole, mine)) => {
                        self.reduce_scatter(send.as_ref(), &whole, mine, op).await
                    }
                    // Unreachable: the call has a count for each member.
                    None => Err(Unserved::on(self.invocation.comm(), call.id())),
                }
            }
            Call::Scan { send, recv, op } => self.scan(send.as_ref(), recv, op).await,
            Call::Exscan { send, recv, op } => self.exscan(send.as_ref(), recv, op).await,
            // Unreachable: `serves` returns false for all other calls.
            _ => Err(Unserved::on(self.invocation.comm(), call.id())),
        }
    }

    fn me(&self) -> u32 {
        self.members.me()
    }

    fn size(&self) -> u32 {
        self.members.count()
    }

    /// Returns the address of the cells in which ranks publish an address and a length.
    fn cells_of(&self, number: u64) -> CellAddress<'_> {
        self.cells.address(number, Flow::CooperativeCopy, 2 * WORD)
    }

    /// Publishes the address of this rank's data, and wakes the ranks that wait for the address.
    async fn show(&self, number: u64, at: u64) -> Result<(), Error> {
        self.place(number, at).await?;
        self.members.ring_all();
        Ok(())
    }

    /// Publishes the address of this rank's data, without waking any rank.
    async fn place(&self, number: u64, at: u64) -> Result<(), Error> {
        self.place_run(
            number,
            Region {
                address: at,
                len: 0,
            },
        )
        .await
    }

    /// Publishes the address and the length of this rank's data, without waking any rank.
    async fn place_run(&self, number: u64, run: Region) -> Result<(), Error> {
        let cells = self.cells;
        let engine = self.invocation.engine();
        let cell = self.cells_of(number);
        cells.make_room(self.wait, engine, cell).await?;
        let [address, len] = [run.address, run.len].map(u64::to_ne_bytes);
        cells.show(self.me(), cell, [address, len].as_flattened());
        Ok(())
    }

    /// Waits until `rank` has published an address, and returns the address.
    async fn address(&self, number: u64, rank: u32) -> Result<u64, Error> {
        Ok(self.run_of(number, rank).await?.address)
    }

    async fn run_of(&self, number: u64, rank: u32) -> Result<Region, Error> {
        let address = self.cells_of(number);
        let seen = || self.cells.seen(rank, address);
        self.wait.until(self.invocation.engine(), seen).await?;
        let mut words = [[0; WORD]; 2];
        self.cells.read(rank, address, 0, words.as_flattened_mut());
        let [address, len] = words.map(u64::from_ne_bytes);
        Ok(Region { address, len })
    }

    /// Reads a rank's packed data from address `at` into a buffer.
    fn read(&self, rank: u32, at: u64, buf: &RecvBuf) -> Result<(), Error> {
        let data = Region {
            address: at,
            len: buf.bytes() as u64,
        };
        self.large.read(self.invocation, rank, data, buf)
    }

    /// Writes packed data, at most `len` bytes, to address `at` of a rank that has requested them.
    fn write(&self, rank: u32, at: u64, len: u64, buf: &SendBuf) -> Result<(), Error> {
        let write = |at, data: &[u8]| self.large.readers.write(self.invocation, rank, at, data);
        let total = buf.bytes().min(i64::try_from(len).unwrap_or(i64::MAX));
        if let Some(data) = buf.contiguous() {
            return write(at, &data[..total as usize]);
        }
        let mut piece = vec![0; total.min(BLOCK) as usize];
        let mut done = 0;
        while done < total {
            let len = (total - done).min(BLOCK) as usize;
            buf.pack_at(done, &mut piece[..len]);
            write(at + done as u64, &piece[..len])?;
            done += len as i64;
        }
        Ok(())
    }

    /// Ends an operation: this rank will not read or write other ranks' memory for it any more.
    fn end(&self, number: u64) {
        self.cells.end_long(self.members, number);
    }

    /// Ends an operation, and then waits for the ranks that read this rank's memory.
    async fn end_with(&self, number: u64, readers: impl Fn(u32) -> bool) -> Result<(), Error> {
        self.end(number);
        self.await_readers(number, readers).await
    }

    /// Returns true if the next rank has not published its address after a short spin.
    /// Then the caller copies its own data while it waits;
    /// otherwise it copies them at the end, while other ranks still read its data.
    fn is_early(&self, number: u64) -> bool {
        let Some(next) = self.members.others_from_next().next() else {
            return false;
        };
        let address = self.cells_of(number);
        let seen = || self.cells.seen(next, address);
        !self.wait.briefly(self.invocation.engine(), seen)
    }

    async fn await_readers(&self, number: u64, readers: impl Fn(u32) -> bool) -> Result<(), Error> {
        let (cells, members, engine) = (self.cells, self.members, self.invocation.engine());
        cells
            .await_end(self.wait, engine, members, number, readers)
            .await
    }

    async fn bcast(&self, buf: &RecvBuf, root: u32) -> Result<(), Error> {
        let number = self.number;
        if self.me() == root {
            let data = expose(&buf.as_send())?;
            self.show(number, data.at).await?;
            self.end_with(number, |_| true).await?;
            return Ok(());
        }
        let outcome = self.read(root, self.address(number, root).await?, buf);
        self.end(number);
        outcome
    }

    async fn allgather(
        &self,
        send: Option<&SendBuf>,
        blocks: &Blocks<RecvBuf>,
    ) -> Result<(), Error> {
        let number = self.number;
        let mine = blocks.of(self.me());
        let own = send.cloned().unwrap_or_else(|| mine.as_send());
        let data = expose(&own)?;
        self.show(number, data.at).await?;
        let copy_own = || {
            if let Some(send) = send {
                algo::copy(send, &mine);
            }
        };
        let early = self.is_early(number);
        if early {
            copy_own();
        }
        let mut outcome = Ok(());
        for rank in self.members.others_from_next() {
            let at = self.address(number, rank).await?;
            outcome = outcome.and_then(|()| self.read(rank, at, &blocks.of(rank)));
        }
        self.end(number);
        if !early {
            copy_own();
        }
        self.await_readers(number, |_| true).await?;
        outcome
    }

    async fn alltoall(&self, send: Option<&SendBuf>, recv: &RecvBuf) -> Result<(), Error> {
        let number = self.number;
        let blocks = Blocks::equal(recv, self.size());
        let whole = |one: i64| one * i64::from(self.size());
        let data = match send {
            Some(send) => expose(&send.with_count(whole(send.count())))?,
            // Other ranks must not read blocks that have just been received in this buffer, so they get a copy.
            None => expose_copy(&recv.with_count(whole(recv.count())).as_send())?,
        };
        self.show(number, data.at).await?;
        let copy_own = || {
            if let Some(send) = send {
                let own = Blocks::equal(send, self.size()).of(self.me());
                algo::copy(&own, &blocks.of(self.me()));
            }
        };
        let early = self.is_early(number);
        if early {
            copy_own();
        }
        let mine = u64::from(self.me()) * recv.bytes() as u64;
        let outcome = or_leave(
            self.invocation.comm(),
            self.read_blocks(number, mine, &blocks).await,
        )?;
        self.end(number);
        if !early {
            copy_own();
        }
        self.await_readers(number, |_| true).await?;
        outcome
    }

    /// Reads the data of every other rank, from byte `from` of that rank's data on, into the rank's block.
    async fn read_blocks(
        &self,
        number: u64,
        from: u64,
        blocks: &Blocks<RecvBuf>,
    ) -> Result<(), Error> {
        let mut outcome = Ok(());
        for rank in self.members.others_from_next() {
            let at = self.address(number, rank).await? + from;
            outcome = outcome.and_then(|()| self.read(rank, at, &blocks.of(rank)));
        }
        outcome
    }

    /// Gather. If the root's buffer is contiguous, every rank writes its own block there; otherwise the root reads all blocks.
    async fn gather(
        &self,
        send: Option<&SendBuf>,
        recv: Option<&RecvBuf>,
        root: u32,
    ) -> Result<(), Error> {
        let number = self.number;
        if self.me() != root {
            let own = send.cloned().unwrap_or_else(SendBuf::empty);
            let buffer = self.run_of(number, root).await?;
            if buffer.address != NOWHERE {
                let at = buffer.address + u64::from(self.me()) * buffer.len;
                let outcome = self.write(root, at, buffer.len, &own);
                self.end(number);
                return outcome;
            }
            let data = expose(&own)?;
            self.show(number, data.at).await?;
            self.end_with(number, |rank| rank == root).await?;
            return Ok(());
        }
        let blocks = recv.map(|recv| Blocks::equal(recv, self.size()));
        let buffer = blocks.as_ref().and_then(|blocks| {
            let mut whole = blocks.as_one()?;
            let run = whole.contiguous()?;
            Some(Region {
                address: run.as_mut_ptr().expose_provenance() as u64,
                len: blocks.of(root).bytes() as u64,
            })
        });
        let nowhere = Region {
            address: NOWHERE,
            len: 0,
        };
        self.place_run(number, buffer.unwrap_or(nowhere)).await?;
        self.members.ring_all();
        if let (Some(send), Some(blocks)) = (send, &blocks) {
            algo::copy(send, &blocks.of(root));
        }
        let mut outcome = Ok(());
        if let (None, Some(blocks)) = (buffer, &blocks) {
            outcome = or_leave(
                self.invocation.comm(),
                self.read_blocks(number, 0, blocks).await,
            )?;
        }
        self.end_with(number, |_| buffer.is_some()).await?;
        outcome
    }

    async fn scatter(
        &self,
        send: Option<&SendBuf>,
        recv: Option<&RecvBuf>,
        root: u32,
    ) -> Result<(), Error> {
        let number = self.number;
        if let (true, Some(send)) = (self.me() == root, send) {
            let whole = send.with_count(send.count() * i64::from(self.size()));
            let data = expose(&whole)?;
            self.show(number, data.at).await?;
            if let Some(recv) = recv {
                algo::copy(&Blocks::equal(send, self.size()).of(root), recv);
            }
            self.end_with(number, |_| true).await?;
            return Ok(());
        }
        let mut outcome = Ok(());
        if let Some(recv) = recv {
            let mine = u64::from(self.me()) * recv.bytes() as u64;
            outcome = self.read(root, self.address(number, root).await? + mine, recv);
        }
        self.end(number);
        outcome
    }
}
