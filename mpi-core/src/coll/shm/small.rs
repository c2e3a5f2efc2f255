//! Collectives of short data through [`Cells`]: everybody shows what he has, and takes what he needs.
//!
//! Where every rank has a core, each reads and combines for itself: one cache line to and fro.
//! Where ranks share cores, who comes last does the work for all, so that a rank that is switched in finds it done,
//! and a root looks at one word until all have come.
//!
//! Operands are combined in the order of ranks, whoever does it, so every member gets the same bits every time.
//!
//! Where data go one way only, who has shown them does not wait for who reads them, and longer data go in pieces, a cell each:
//! while a root combines one piece, the next one is on its way.
//! Which calls are served follows from what the standard makes equal at all members, and from rank 0's choice of gate.

use super::cells::{Cells, LONGEST};
use super::gate::{Kind, LINE, Members};
use super::scattered;
use super::wait::Waits;
use crate::Error;
use crate::coll::algo::{self, Blocks, Buffer};
use crate::coll::{Call, CallId, Cx};
use crate::datatype::{Datatype, RecvBuf, Scratch, SendBuf};
use crate::op::Op;
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
            CallId::Gather | CallId::Reduce | CallId::Scan | CallId::Exscan
                if self.kind == Kind::Flags =>
            {
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
                return self.cut(block.unwrap_or(0));
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

/// Calls `with` with the packed data of a buffer, which fit a cell.
#[inline]
fn packed(buf: &SendBuf, with: impl FnOnce(&[u8])) {
    match buf.contiguous() {
        Some(data) => with(data),
        None => pack(buf, 0, LONGEST, with),
    }
}

/// The same for some of its packed bytes, as many of them as there are.
fn packed_part(buf: &SendBuf, bytes: Range<i64>, with: impl FnOnce(&[u8])) {
    let (at, len) = inside(bytes, buf.bytes());
    match buf.contiguous() {
        Some(data) => with(data.get(at..at + len).unwrap_or(&[])),
        None => pack(buf, at as i64, len, with),
    }
}

#[cold]
fn pack(buf: &SendBuf, at: i64, most: usize, with: impl FnOnce(&[u8])) {
    let mut copy = [0; LONGEST];
    let len = buf.pack_at(at, &mut copy[..most.min(LONGEST)]);
    with(&copy[..len]);
}

/// Where the bytes of a range that there are begin, and how many they are.
fn inside(bytes: Range<i64>, all: i64) -> (usize, usize) {
    let start = bytes.start.clamp(0, all);
    let end = bytes.end.clamp(start, all);
    (start as usize, (end - start) as usize)
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
                self.gather(send.as_ref(), recv.as_ref(), *root, pieces)
                    .await
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

    fn cells(&self) -> &Cells {
        &self.small.cells
    }

    fn me(&self) -> u32 {
        self.members.me
    }

    /// Shows a buffer in this rank's cell.
    #[inline]
    async fn show(&self, buf: &SendBuf) {
        if !self.has_room() {
            self.make_room().await;
        }
        self.put(buf);
    }

    /// Whether this rank's cell may be written.
    ///
    /// What is nearly always there is asked for before a future is made to wait for it: that costs as much as half a short call.
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.cells().has_room(self.number)
    }

    #[cold]
    async fn make_room(&self) {
        let engine = self.cx.engine();
        self.cells().make_room(self.wait, engine, self.number).await;
    }

    /// Shows a buffer in this rank's cell, which may be written.
    #[inline]
    fn put(&self, buf: &SendBuf) {
        let cells = self.cells();
        packed(buf, |data| cells.show(self.me(), self.number, data));
        self.fetch_next();
    }

    /// Shows what this rank's cell has been filled with.
    #[inline]
    fn publish(&self) {
        self.cells().publish(self.me(), self.number);
        self.fetch_next();
    }

    /// Asks for the line of the next cell, where nobody else needs the core meanwhile.
    #[inline]
    fn fetch_next(&self) {
        if self.small.kind == Kind::Flags {
            self.cells().fetch_next(self.number);
        }
    }

    /// Shows some packed bytes of a buffer, as many of them as it has.
    async fn show_part(&self, buf: &SendBuf, bytes: Range<i64>) {
        if !self.has_room() {
            self.make_room().await;
        }
        packed_part(buf, bytes, |data| {
            self.cells().fill(self.me(), self.number, 0, data);
        });
        self.publish();
    }

    /// Shows a buffer but for some of its packed bytes, which nobody asks for.
    #[inline]
    async fn show_around(&self, buf: &SendBuf, but: Range<usize>) {
        let Some(data) = buf.contiguous() else {
            return self.show(buf).await;
        };
        if !self.has_room() {
            self.make_room().await;
        }
        let cells = self.cells();
        let before = data.get(..but.start).unwrap_or(&[]);
        let behind = data.get(but.end..).unwrap_or(&[]);
        cells.fill(self.me(), self.number, 0, before);
        cells.fill(self.me(), self.number, but.end, behind);
        self.publish();
    }

    /// Whether a place shows its data.
    #[inline]
    fn seen(&self, place: u32) -> bool {
        self.cells().seen(place, self.number)
    }

    #[inline]
    async fn await_cell(&self, place: u32) {
        let (cells, number) = (self.cells(), self.number);
        let seen = || cells.seen(place, number);
        self.wait.until(self.cx.engine(), seen).await;
    }

    #[inline]
    async fn await_cells(&self, ranks: impl Iterator<Item = u32>) {
        for rank in ranks {
            if !self.seen(rank) {
                self.await_cell(rank).await;
            }
        }
    }

    /// Takes what a place shows, from byte `at` on, into a buffer.
    #[inline]
    fn take(&self, place: u32, at: usize, buf: &RecvBuf) {
        let mut buf = buf.clone();
        match buf.contiguous() {
            Some(data) => self.cells().read(place, self.number, at, data),
            None => {
                let len = buf.bytes() as usize;
                self.take_apart(place, at, &mut buf, 0, len);
            }
        }
    }

    /// Takes bytes that a place shows from `at` on as packed bytes `start` and those behind it of a buffer.
    #[cold]
    fn take_apart(&self, place: u32, at: usize, buf: &mut RecvBuf, start: usize, len: usize) {
        let mut copy = [0; LONGEST];
        let data = &mut copy[..len.min(LONGEST)];
        self.cells().read(place, self.number, at, data);
        buf.unpack_at(start as i64, data);
    }

    /// Takes what a place shows as some packed bytes of a buffer, as many of them as it has.
    fn take_part(&self, place: u32, buf: &RecvBuf, bytes: Range<i64>) {
        let mut buf = buf.clone();
        let (start, len) = inside(bytes, buf.bytes());
        if let Some(data) = buf.contiguous() {
            let data = data.get_mut(start..start + len).unwrap_or(&mut []);
            return self.cells().read(place, self.number, 0, data);
        }
        self.take_apart(place, 0, &mut buf, start, len);
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
            self.await_cells(self.members.others()).await;
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
            return self.await_cells(self.members.others()).await;
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
            if !self.has_room() {
                self.make_room().await;
            }
            self.put(&buf.as_send());
            self.ring_others();
        } else {
            if !self.seen(root) {
                self.await_cell(root).await;
            }
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
        if !self.has_room() {
            self.make_room().await;
        }
        match send {
            Some(send) => self.put(send),
            None => self.put(&recv.as_send()),
        }
        let concluded = self.meet(|| {
            let outcome = self.fold_all(send, recv, op);
            packed(&recv.as_send(), |sum| self.conclude(sum));
            outcome
        });
        let outcome = match concluded.await {
            Ok(true) => {
                self.take(self.cells().result(), 0, recv);
                Ok(())
            }
            Ok(false) => self.fold_all(send, recv, op),
            Err(e) => Err(e),
        };
        self.cells().end_together(self.members, self.number);
        outcome
    }

    /// Combines what all ranks show.
    #[inline]
    fn fold_all(&self, own: Option<&SendBuf>, recv: &RecvBuf, op: &Op) -> Result<(), Error> {
        self.fold(self.members.count(), 0, own, recv, op)
    }

    /// Combines what the first ranks show from byte `at` on, from the last of them to the first, into `recv`;
    /// `own` is this rank's operand unless that is in its cell.
    #[inline]
    fn fold(
        &self,
        ranks: u32,
        at: usize,
        own: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        let own = |rank: u32| own.filter(|_| rank == self.me());
        let Some(last) = ranks.checked_sub(1) else {
            return Ok(());
        };
        match own(last) {
            Some(own) => algo::copy(own, recv),
            None => self.take(last, at, recv),
        }
        let (mut sum, mut room) = (recv.clone(), None);
        for rank in (0..last).rev() {
            if let Some(own) = own(rank) {
                op.apply(own, &mut sum)?;
                continue;
            }
            let left = match &room {
                Some(left) => left,
                None => room.insert(self.operand(recv)?),
            };
            self.take(rank, at, left);
            op.apply(&left.as_send(), &mut sum)?;
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
    async fn allgather(&self, send: Option<&SendBuf>, recv: &RecvBuf) -> Result<(), Error> {
        let members = self.members.count();
        let blocks = Blocks::equal(recv, members);
        if !self.has_room() {
            self.make_room().await;
        }
        match send {
            Some(send) => self.put(send),
            None => self.put(&blocks.of(self.me()).as_send()),
        }
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
    async fn alltoall(&self, send: Option<&SendBuf>, recv: &RecvBuf) -> Result<(), Error> {
        let members = self.members.count();
        let whole = |one: i64| one * i64::from(members);
        let all = match send {
            Some(send) => send.with_count(whole(send.count())),
            None => recv.with_count(whole(recv.count())).as_send(),
        };
        if !self.has_room() {
            self.make_room().await;
        }
        self.put(&all);
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
        send: Option<&SendBuf>,
        recv: Option<&RecvBuf>,
        root: u32,
        pieces: u64,
    ) -> Result<(), Error> {
        if let (true, Some(recv)) = (self.me() == root, recv) {
            let blocks = Blocks::equal(recv, self.members.count());
            if let Some(send) = send {
                algo::copy(send, &blocks.of(root));
            }
            if pieces == 1 {
                self.await_reports().await;
                for rank in self.members.others() {
                    self.take(rank, 0, &blocks.of(rank));
                }
            } else {
                for (turn, bytes) in self.pieces(pieces) {
                    turn.await_reports().await;
                    for rank in self.members.others() {
                        turn.take_part(rank, &blocks.of(rank), bytes.clone());
                    }
                }
            }
        } else if let Some(send) = send {
            if pieces == 1 {
                if !self.has_room() {
                    self.make_room().await;
                }
                self.put(send);
                self.report(root);
            } else {
                for (turn, bytes) in self.pieces(pieces) {
                    turn.show_part(send, bytes).await;
                    turn.report(root);
                }
            }
        }
        for number in self.number..self.number + pieces {
            self.cells().end(self.members, number);
        }
        Ok(())
    }

    #[inline]
    async fn scatter(
        &self,
        send: Option<&SendBuf>,
        recv: Option<&RecvBuf>,
        root: u32,
    ) -> Result<(), Error> {
        if let (true, Some(send)) = (self.me() == root, send) {
            let members = self.members.count();
            if !self.has_room() {
                self.make_room().await;
            }
            self.put(&send.with_count(send.count() * i64::from(members)));
            self.ring_others();
            if let Some(recv) = recv {
                algo::copy(&Blocks::equal(send, members).of(root), recv);
            }
        } else if let Some(recv) = recv {
            if !self.seen(root) {
                self.await_cell(root).await;
            }
            let at = self.me() as usize * recv.bytes() as usize;
            self.take(root, at, recv);
        }
        self.cells().end(self.members, self.number);
        Ok(())
    }

    #[inline]
    async fn reduce(
        &self,
        send: Option<&SendBuf>,
        recv: Option<&RecvBuf>,
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
                self.fold_all(send, recv, op)
            }
            (_, Some(send)) => {
                if !self.has_room() {
                    self.make_room().await;
                }
                self.put(send);
                self.report(root);
                Ok(())
            }
            _ => Ok(()),
        };
        self.cells().end(self.members, self.number);
        outcome
    }

    /// Combines what the first `ranks` show: all up to this one, or all before it.
    #[inline]
    async fn scan(
        &self,
        send: Option<&SendBuf>,
        recv: &RecvBuf,
        op: &Op,
        ranks: u32,
    ) -> Result<(), Error> {
        let (me, count) = (self.me(), self.members.count());
        match send {
            // Nobody reads the last rank's cell; but in place the fold looks there, and who counts arrivals shows first.
            Some(_) if me + 1 == count && self.small.kind == Kind::Flags => {}
            _ => {
                if !self.has_room() {
                    self.make_room().await;
                }
                match send {
                    Some(send) => self.put(send),
                    None => self.put(&recv.as_send()),
                }
            }
        }
        if self.small.kind == Kind::Counter {
            // Where ranks share cores it is best to come back once, when all is there.
            self.meet_only().await?;
            let outcome = self.fold(ranks, 0, send, recv, op);
            self.cells().end_together(self.members, self.number);
            return outcome;
        }
        (me + 1..count).for_each(|rank| self.members.ring(rank));
        self.await_cells(0..me).await;
        let outcome = self.fold(ranks, 0, send, recv, op);
        self.cells().end(self.members, self.number);
        outcome
    }

    /// `whole` begins where the result goes, and in place it is all of this rank's operand; `mine` are this rank's elements of it.
    #[inline]
    async fn reduce_scatter(
        &self,
        send: Option<&SendBuf>,
        whole: &RecvBuf,
        mine: Range<i64>,
        op: &Op,
    ) -> Result<(), Error> {
        let datatype = whole.datatype();
        let at = datatype.bytes(mine.start) as usize;
        match send {
            Some(send) => {
                let end = datatype.bytes(mine.end) as usize;
                self.show_around(send, at..end).await;
            }
            None => self.show(&whole.as_send()).await,
        }
        self.meet_only().await?;
        let own = send.map(|send| send.slice(mine.clone()));
        let result = whole.slice(0..mine.end - mine.start);
        let outcome = self.fold(self.members.count(), at, own.as_ref(), &result, op);
        self.cells().end_together(self.members, self.number);
        outcome
    }

    /// Waits until everybody has shown his data, which each then reads for himself.
    #[inline]
    async fn meet_only(&self) -> Result<bool, Error> {
        self.meet(|| {
            self.conclude(&[]);
            Ok(())
        })
        .await
    }
}

/// The elements of an operand that are these packed bytes.
fn cut<B: Buffer>(buf: &B, datatype: &Datatype, bytes: &Range<i64>) -> B {
    let size = datatype.size().max(1);
    buf.slice(bytes.start / size..bytes.end / size)
}
