//! Collectives of short data through [`Cells`]: everybody shows what he has, and takes what he needs.
//!
//! Where every rank has a core, each reads and combines for itself: one cache line to and fro.
//! Where ranks share cores, who comes last does the work for all, so that a rank that is switched in finds it done,
//! and a root looks at one word until all have come.
//!
//! Operands are combined in the order of ranks, whoever does it, so every member gets the same bits every time.
//! Which calls are served follows from what the standard makes equal at all members, and from rank 0's choice of gate.

use super::cells::{Cells, LONGEST};
use super::gate::{Kind, Members};
use super::wait::Waits;
use crate::Error;
use crate::coll::algo::{self, Blocks};
use crate::coll::{Call, CallId, Cx};
use crate::datatype::{RecvBuf, Scratch, SendBuf};
use crate::op::Op;
use std::cell::RefCell;

/// The short collectives of one communicator, of one lane.
pub struct Small {
    pub cells: Cells,
    kind: Kind,
    /// Room for an operand, kept from call to call.
    operand: RefCell<Option<Scratch>>,
}

/// One operation under way.
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
            CallId::Alltoall | CallId::Scatter => all / u64::from(members.max(1)) / 8 * 8,
            _ => all,
        }
    }

    /// Whether this call goes through cells; the same answer at all members.
    #[inline]
    pub fn serves(&self, call: &Call, members: u32) -> bool {
        let fits = |bytes: i64| bytes as u64 <= self.cells.capacity() as u64;
        // Blocks of one cell begin at words.
        let all = |block: i64| fits(block.saturating_mul(members.into())) && block % 8 == 0;
        match call {
            Call::Bcast { buf, .. } => fits(buf.bytes()),
            // Equal at all members, as is the count; what a user's datatype needs for an operand is not worth keeping.
            Call::Allreduce { recv, .. } => {
                fits(recv.bytes()) && recv.datatype().as_named().is_some()
            }
            Call::Allgather { recv, .. } => fits(recv.bytes()),
            Call::Alltoall { recv, .. } => all(recv.bytes()),
            Call::Gather { send, recv, .. } => {
                let block = send.as_ref().map(SendBuf::bytes);
                fits(block.or(recv.as_ref().map(RecvBuf::bytes)).unwrap_or(0))
            }
            Call::Scatter { send, recv, .. } => {
                let block = recv.as_ref().map(RecvBuf::bytes);
                all(block.or(send.as_ref().map(SendBuf::bytes)).unwrap_or(0))
            }
            Call::Reduce { send, recv, .. } => match (send, recv) {
                (Some(send), _) => fits(send.bytes()) && send.datatype().as_named().is_some(),
                (None, Some(recv)) => fits(recv.bytes()) && recv.datatype().as_named().is_some(),
                (None, None) => false,
            },
            _ => false,
        }
    }
}

/// Calls `with` with the packed data of a buffer, which fit a cell.
#[inline]
fn packed(buf: &SendBuf, with: impl FnOnce(&[u8])) {
    match buf.contiguous() {
        Some(data) => with(data),
        None => pack(buf, with),
    }
}

#[cold]
fn pack(buf: &SendBuf, with: impl FnOnce(&[u8])) {
    let mut copy = [0; LONGEST];
    let len = buf.pack_at(0, &mut copy);
    with(&copy[..len]);
}

impl<W: Waits> Turn<'_, W> {
    /// Carries out a call that [`Small::serves`].
    #[inline]
    pub async fn run(&self, call: Call) -> Result<(), Error> {
        match call {
            Call::Bcast { buf, root } => self.bcast(&buf, root).await,
            Call::Allreduce { send, recv, op } => self.allreduce(send.as_ref(), &recv, &op).await,
            Call::Allgather { send, recv } => self.allgather(send, &recv).await,
            Call::Alltoall { send, recv } => self.alltoall(send, &recv).await,
            Call::Gather { send, recv, root } => self.gather(send, recv, root).await,
            Call::Scatter { send, recv, root } => self.scatter(send, recv, root).await,
            Call::Reduce {
                send,
                recv,
                op,
                root,
            } => self.reduce(send, recv, &op, root).await,
            // `serves` has said no to all others.
            _ => Ok(()),
        }
    }

    fn cells(&self) -> &Cells {
        &self.small.cells
    }

    fn me(&self) -> u32 {
        self.members.me
    }

    /// Shows a buffer in this rank's cell.
    #[inline]
    async fn show(&self, buf: &SendBuf) {
        let (cells, engine) = (self.cells(), self.cx.engine());
        cells.make_room(self.wait, engine, self.number).await;
        packed(buf, |data| cells.show(self.me(), self.number, data));
        if self.small.kind == Kind::Flags {
            cells.fetch_next(self.number);
        }
    }

    #[inline]
    async fn await_cell(&self, place: u32) {
        let (cells, number) = (self.cells(), self.number);
        let seen = || cells.seen(place, number);
        self.wait.until(self.cx.engine(), seen).await;
    }

    /// Takes what a place shows, from byte `at` on, into a buffer.
    #[inline]
    fn take(&self, place: u32, at: usize, buf: &RecvBuf) {
        let mut buf = buf.clone();
        match buf.contiguous() {
            Some(data) => self.cells().read(place, self.number, at, data),
            None => self.take_apart(place, at, &mut buf),
        }
    }

    #[cold]
    fn take_apart(&self, place: u32, at: usize, buf: &mut RecvBuf) {
        let mut copy = [0; LONGEST];
        let len = (buf.bytes() as usize).min(LONGEST);
        let data = &mut copy[..len];
        self.cells().read(place, self.number, at, data);
        buf.unpack_at(0, data);
    }

    #[inline]
    fn ring_others(&self) {
        match self.small.kind {
            Kind::Flags => self
                .members
                .others()
                .for_each(|rank| self.members.ring(rank)),
            Kind::Counter => self.members.ring_all(),
        }
    }

    /// Waits until everybody has shown his data.
    /// Where ranks share cores the last to come does the `work` for all and shows it as the result; true for those who find it there.
    #[inline]
    async fn meet(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<bool, Error> {
        if self.small.kind == Kind::Flags {
            self.ring_others();
            for rank in self.members.others() {
                self.await_cell(rank).await;
            }
            return Ok(false);
        }
        if !self.cells().arrive(self.number) {
            self.await_cell(self.cells().result()).await;
            return Ok(true);
        }
        self.cells().fetch_all(self.number);
        self.cells().forget_arrivals(self.number);
        let outcome = work();
        self.members.ring_all();
        outcome.map(|()| true)
    }

    /// Shows the result of an operation in place of all ranks.
    fn conclude(&self, result: &[u8]) {
        let cells = self.cells();
        cells.show(cells.result(), self.number, result);
    }

    /// Tells the root that this rank has shown its data.
    #[inline]
    fn report(&self, root: u32) {
        if self.small.kind == Kind::Flags || self.cells().arrive(self.number) {
            self.members.ring(root);
        }
    }

    /// Waits, at the root, until everybody has shown his data.
    #[inline]
    async fn await_reports(&self) {
        if self.small.kind == Kind::Flags {
            for rank in self.members.others() {
                self.await_cell(rank).await;
            }
            return;
        }
        let (cells, number, engine) = (self.cells(), self.number, self.cx.engine());
        cells.make_room(self.wait, engine, number).await;
        if !cells.arrive(number) {
            let arrived = || cells.all_arrived(number);
            self.wait.until(engine, arrived).await;
        }
        cells.fetch_all(number);
        cells.forget_arrivals(number);
    }

    #[inline]
    async fn bcast(&self, buf: &RecvBuf, root: u32) -> Result<(), Error> {
        if self.me() == root {
            self.show(&buf.as_send()).await;
            self.ring_others();
        } else {
            self.await_cell(root).await;
            self.take(root, 0, buf);
        }
        self.cells().end(self.members, self.number);
        Ok(())
    }

    #[inline]
    async fn allreduce(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        match send {
            Some(send) => self.show(send).await,
            None => self.show(&recv.as_send()).await,
        }
        let concluded = self.meet(|| {
            let outcome = self.fold(send, recv, op);
            packed(&recv.as_send(), |sum| self.conclude(sum));
            outcome
        });
        let outcome = match concluded.await {
            Ok(true) => {
                self.take(self.cells().result(), 0, recv);
                Ok(())
            }
            Ok(false) => self.fold(send, recv, op),
            Err(e) => Err(e),
        };
        self.cells().end_together(self.members, self.number);
        outcome
    }

    /// Combines what all ranks show, from the last to the first, into `recv`; `own` is this rank's data unless they are in `recv`.
    #[inline]
    fn fold(&self, own: Option<&SendBuf>, recv: &RecvBuf, op: &Op) -> Result<(), Error> {
        let left = self.operand(recv)?;
        let own = |rank: u32| own.filter(|_| rank == self.me());
        let last = self.members.count() - 1;
        match own(last) {
            Some(own) => algo::copy(own, recv),
            None => self.take(last, 0, recv),
        }
        let mut sum = recv.clone();
        for rank in (0..last).rev() {
            match own(rank) {
                Some(own) => op.apply(own, &mut sum)?,
                None => {
                    self.take(rank, 0, &left);
                    op.apply(&left.as_send(), &mut sum)?;
                }
            }
        }
        Ok(())
    }

    /// Room for one operand like `recv`.
    #[inline]
    fn operand(&self, recv: &RecvBuf) -> Result<RecvBuf, Error> {
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
    async fn allgather(&self, send: Option<SendBuf>, recv: &RecvBuf) -> Result<(), Error> {
        let members = self.members.count();
        let blocks = Blocks::equal(recv, members);
        self.show(&send.unwrap_or_else(|| blocks.of(self.me()).as_send()))
            .await;
        let len = recv.bytes() as usize;
        let step = len.next_multiple_of(8);
        // One run of lines is read sooner than a line of each rank.
        let joined = step * members as usize <= self.cells().capacity();
        let work = || {
            match joined {
                true => self.join(step, (0..members).map(|rank| (rank, 0..len))),
                false => self.conclude(&[]),
            }
            Ok(())
        };
        let joined = self.meet(work).await? && joined;
        for rank in 0..members {
            match joined {
                true => self.take(
                    self.cells().result(),
                    rank as usize * step,
                    &blocks.of(rank),
                ),
                false => self.take(rank, 0, &blocks.of(rank)),
            }
        }
        self.cells().end_together(self.members, self.number);
        Ok(())
    }

    /// Shows as the result a row of pieces, each `step` behind the one before: bytes of the cells of ranks.
    fn join(&self, step: usize, pieces: impl Iterator<Item = (u32, std::ops::Range<usize>)>) {
        for (i, (rank, bytes)) in pieces.enumerate() {
            self.cells().pass_on(self.number, rank, bytes, i * step);
        }
        self.conclude(&[]);
    }

    #[inline]
    async fn alltoall(&self, send: Option<SendBuf>, recv: &RecvBuf) -> Result<(), Error> {
        let members = self.members.count();
        let whole = |one: i64| one * i64::from(members);
        let all = match &send {
            Some(send) => send.with_count(whole(send.count())),
            None => recv.with_count(whole(recv.count())).as_send(),
        };
        self.show(&all).await;
        let (len, count) = (recv.bytes() as usize, members as usize);
        let joined = len * count * count <= self.cells().capacity();
        let work = || {
            let piece = |i: usize| ((i % count) as u32, i / count * len..(i / count + 1) * len);
            match joined {
                true => self.join(len, (0..count * count).map(piece)),
                false => self.conclude(&[]),
            }
            Ok(())
        };
        let joined = self.meet(work).await? && joined;
        let (blocks, mine) = (Blocks::equal(recv, members), self.me() as usize);
        for rank in 0..members {
            let block = blocks.of(rank);
            match joined {
                true => {
                    let at = (mine * count + rank as usize) * len;
                    self.take(self.cells().result(), at, &block);
                }
                false => self.take(rank, mine * len, &block),
            }
        }
        self.cells().end_together(self.members, self.number);
        Ok(())
    }

    #[inline]
    async fn gather(
        &self,
        send: Option<SendBuf>,
        recv: Option<RecvBuf>,
        root: u32,
    ) -> Result<(), Error> {
        if let (true, Some(recv)) = (self.me() == root, recv) {
            let blocks = Blocks::equal(&recv, self.members.count());
            if let Some(send) = send {
                algo::copy(&send, &blocks.of(root));
            }
            self.await_reports().await;
            for rank in self.members.others() {
                self.take(rank, 0, &blocks.of(rank));
            }
        } else if let Some(send) = send {
            self.show(&send).await;
            self.report(root);
        }
        self.cells().end(self.members, self.number);
        Ok(())
    }

    #[inline]
    async fn scatter(
        &self,
        send: Option<SendBuf>,
        recv: Option<RecvBuf>,
        root: u32,
    ) -> Result<(), Error> {
        if let (true, Some(send)) = (self.me() == root, send) {
            let members = self.members.count();
            self.show(&send.with_count(send.count() * i64::from(members)))
                .await;
            self.ring_others();
            if let Some(recv) = recv {
                algo::copy(&Blocks::equal(&send, members).of(root), &recv);
            }
        } else if let Some(recv) = recv {
            self.await_cell(root).await;
            let at = self.me() as usize * recv.bytes() as usize;
            self.take(root, at, &recv);
        }
        self.cells().end(self.members, self.number);
        Ok(())
    }

    #[inline]
    async fn reduce(
        &self,
        send: Option<SendBuf>,
        recv: Option<RecvBuf>,
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
                self.fold(send.as_ref(), &recv, op)
            }
            (_, Some(send)) => {
                self.show(&send).await;
                self.report(root);
                Ok(())
            }
            _ => Ok(()),
        };
        self.cells().end(self.members, self.number);
        outcome
    }
}
