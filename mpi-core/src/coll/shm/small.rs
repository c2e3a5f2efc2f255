//! Collectives of short data through [`Cells`]: everybody shows what he has, and takes what he needs.
//!
//! Where every rank has a core, each reads and combines for itself: one cache line to and fro.
//! Where ranks share cores, who comes last does the work for all, so that a rank that is switched in finds it done;
//! this is for operations that nobody may leave before all have come, and others go the general way there, but the broadcast.
//!
//! Operands are combined in the order of ranks, whoever does it, so every member gets the same bits every time.
//! Which calls are served follows from what the standard makes equal at all members, and from rank 0's choice of gate.

use super::cells::{Cells, LONGEST};
use super::gate::{Kind, Members};
use super::wait;
use crate::Error;
use crate::coll::algo::{self, Blocks};
use crate::coll::{Call, Cx};
use crate::datatype::{RecvBuf, Scratch, SendBuf};
use crate::op::Op;
use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_base::mem::Held;
use std::cell::{Cell, RefCell};

/// The short collectives of one communicator.
pub struct Small {
    pub cells: Cells,
    kind: Kind,
    /// Where ranks share cores: how many arrivals there have been in all operations that everybody has to come to.
    arrivals: Held<AtomicU64>,
    /// How many of those operations have begun here.
    together: Cell<u64>,
    /// Room for an operand, kept from call to call.
    operand: RefCell<Option<Scratch>>,
}

/// One operation under way.
struct Turn<'a> {
    small: &'a Small,
    members: &'a Members,
    cx: &'a Cx,
    number: u64,
}

impl Small {
    pub fn new(cells: Cells, kind: Kind, arrivals: Held<AtomicU64>) -> Small {
        Small {
            cells,
            kind,
            arrivals,
            together: Cell::new(0),
            operand: RefCell::default(),
        }
    }

    /// Whether this call goes through cells; the same answer at all members.
    pub fn serves(&self, call: &Call, members: u32) -> bool {
        let fits = |bytes: i64| bytes as u64 <= self.cells.capacity() as u64;
        let all = |block: i64| fits(block.saturating_mul(members.into()));
        // Equal at all members, as is the count; what a user's datatype needs for an operand is not worth keeping.
        let plain = |buf: &RecvBuf| buf.datatype().as_named().is_some();
        let roomy = self.kind == Kind::Flags;
        match call {
            Call::Bcast { buf, .. } => fits(buf.bytes()),
            Call::Allreduce { recv, .. } => fits(recv.bytes()) && plain(recv),
            Call::Allgather { recv, .. } => fits(recv.bytes()),
            // Blocks begin at words.
            Call::Alltoall { recv, .. } => all(recv.bytes()) && recv.bytes() % 8 == 0,
            Call::Gather { send, recv, .. } if roomy => {
                let block = send.as_ref().map(SendBuf::bytes);
                fits(block.or(recv.as_ref().map(RecvBuf::bytes)).unwrap_or(0))
            }
            Call::Scatter { send, recv, .. } if roomy => {
                let block = recv.as_ref().map(RecvBuf::bytes);
                let block = block.or(send.as_ref().map(SendBuf::bytes)).unwrap_or(0);
                all(block) && block % 8 == 0
            }
            Call::Reduce { send, recv, .. } if roomy => {
                let of_send = send.as_ref().map(|s| (s.bytes(), s.datatype().clone()));
                let of_recv = || recv.as_ref().map(|r| (r.bytes(), r.datatype().clone()));
                let (bytes, datatype) = match of_send.or_else(of_recv) {
                    Some(found) => found,
                    None => return false,
                };
                fits(bytes) && datatype.as_named().is_some()
            }
            _ => false,
        }
    }

    /// Carries out a call that [`Small::serves`].
    pub fn run(&self, members: &Members, cx: &Cx, call: Call) -> Result<(), Error> {
        let number = self.cells.begin();
        let turn = Turn {
            small: self,
            members,
            cx,
            number,
        };
        match call {
            Call::Bcast { buf, root } => turn.bcast(&buf, root),
            Call::Allreduce { send, recv, op } => turn.allreduce(send, &recv, &op),
            Call::Allgather { send, recv } => turn.allgather(send, &recv),
            Call::Alltoall { send, recv } => turn.alltoall(send, &recv),
            Call::Gather { send, recv, root } => turn.gather(send, recv, root),
            Call::Scatter { send, recv, root } => turn.scatter(send, recv, root),
            Call::Reduce {
                send,
                recv,
                op,
                root,
            } => turn.reduce(send, recv, &op, root),
            // `serves` has said no to all others.
            _ => Ok(()),
        }
    }
}

/// Calls `with` with the packed data of a buffer, which fit a cell.
fn packed(buf: &SendBuf, with: impl FnOnce(&[u8])) {
    match buf.contiguous() {
        Some(data) => with(data),
        None => {
            let mut copy = [0; LONGEST];
            let len = buf.pack_at(0, &mut copy);
            with(&copy[..len]);
        }
    }
}

impl Turn<'_> {
    fn me(&self) -> u32 {
        self.members.me
    }

    fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let me = self.me();
        (0..self.members.count()).filter(move |rank| *rank != me)
    }

    /// Shows a buffer in this rank's cell.
    fn show(&self, buf: &SendBuf) {
        let (cells, engine) = (&self.small.cells, self.cx.engine());
        packed(buf, |data| cells.show(engine, self.me(), self.number, data));
    }

    fn await_cell(&self, place: u32) {
        let (cells, number) = (&self.small.cells, self.number);
        wait::until(self.cx.engine(), &mut || cells.seen(place, number));
    }

    /// Takes what a place shows, from byte `at` on, into a buffer.
    fn take(&self, place: u32, at: usize, buf: &RecvBuf) {
        let (cells, mut buf) = (&self.small.cells, buf.clone());
        if let Some(data) = buf.contiguous() {
            return cells.read(place, self.number, at, data);
        }
        let mut copy = [0; LONGEST];
        let len = (buf.bytes() as usize).min(LONGEST);
        let data = &mut copy[..len];
        cells.read(place, self.number, at, data);
        buf.unpack_at(0, data);
    }

    fn ring_others(&self) {
        match self.small.kind {
            Kind::Flags => self.others().for_each(|rank| self.members.ring(rank)),
            Kind::Counter => self.members.ring_all(),
        }
    }

    /// Waits until everybody has shown his data; `work` is done once before anybody goes on, by the last to come, if ranks share cores.
    fn meet(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        if self.small.kind == Kind::Flags {
            self.ring_others();
            self.others().for_each(|rank| self.await_cell(rank));
            return Ok(());
        }
        let number = self.small.together.get() + 1;
        self.small.together.set(number);
        let complete = number * u64::from(self.members.count());
        // SYNC POINT shm.together: each arrival releases what its rank shows; the last one collects it all.
        if self.small.arrivals.fetch_add(1, Ordering::AcqRel) + 1 < complete {
            self.await_cell(self.small.cells.result());
            return Ok(());
        }
        let outcome = work();
        self.ring_others();
        outcome
    }

    /// Shows the result of an operation in place of all ranks.
    fn conclude(&self, result: &SendBuf) {
        let (cells, engine) = (&self.small.cells, self.cx.engine());
        packed(result, |data| {
            cells.show(engine, cells.result(), self.number, data);
        });
    }

    fn bcast(&self, buf: &RecvBuf, root: u32) -> Result<(), Error> {
        if self.me() == root {
            self.show(&buf.as_send());
            self.ring_others();
        } else {
            self.await_cell(root);
            self.take(root, 0, buf);
        }
        self.small.cells.end(self.members, self.number);
        Ok(())
    }

    fn allreduce(&self, send: Option<SendBuf>, recv: &RecvBuf, op: &Op) -> Result<(), Error> {
        self.show(&send.clone().unwrap_or_else(|| recv.as_send()));
        let own = send.as_ref();
        let roomy = self.small.kind == Kind::Flags;
        let mut concluded = false;
        let met = self.meet(|| {
            let outcome = self.fold(own, recv, op);
            self.conclude(&recv.as_send());
            concluded = true;
            outcome
        });
        let outcome = match (roomy, concluded) {
            (true, _) => self.fold(own, recv, op),
            (false, true) => met,
            (false, false) => {
                self.take(self.small.cells.result(), 0, recv);
                Ok(())
            }
        };
        self.small.cells.end_together(self.number);
        outcome
    }

    /// Combines what all ranks show, from the last to the first, into `recv`; `own` is this rank's data unless they are in `recv`.
    fn fold(&self, own: Option<&SendBuf>, recv: &RecvBuf, op: &Op) -> Result<(), Error> {
        let left = self.operand(recv)?;
        let own = |rank: u32| own.filter(|_| rank == self.me());
        let last = self.members.count() - 1;
        match own(last) {
            Some(own) => algo::copy(own, recv),
            None => self.take(last, 0, recv),
        }
        for rank in (0..last).rev() {
            match own(rank) {
                Some(own) => op.apply(own, &mut recv.clone())?,
                None => {
                    self.take(rank, 0, &left);
                    op.apply(&left.as_send(), &mut recv.clone())?;
                }
            }
        }
        Ok(())
    }

    /// Room for one operand like `recv`.
    fn operand(&self, recv: &RecvBuf) -> Result<RecvBuf, Error> {
        let (count, datatype) = (recv.count(), recv.datatype());
        let kept = self.small.operand.borrow().clone();
        if let Some(kept) = kept
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

    fn allgather(&self, send: Option<SendBuf>, recv: &RecvBuf) -> Result<(), Error> {
        let blocks = Blocks::equal(recv, self.members.count());
        self.show(&send.unwrap_or_else(|| blocks.of(self.me()).as_send()));
        self.meet(|| {
            self.conclude(&SendBuf::empty());
            Ok(())
        })?;
        for rank in 0..self.members.count() {
            self.take(rank, 0, &blocks.of(rank));
        }
        self.small.cells.end_together(self.number);
        Ok(())
    }

    fn alltoall(&self, send: Option<SendBuf>, recv: &RecvBuf) -> Result<(), Error> {
        let members = self.members.count();
        let whole = |one: i64| one * i64::from(members);
        let all = match &send {
            Some(send) => send.with_count(whole(send.count())),
            None => recv.with_count(whole(recv.count())).as_send(),
        };
        self.show(&all);
        self.meet(|| {
            self.conclude(&SendBuf::empty());
            Ok(())
        })?;
        let (blocks, mine) = (Blocks::equal(recv, members), self.me() as usize);
        for rank in 0..members {
            self.take(rank, mine * recv.bytes() as usize, &blocks.of(rank));
        }
        self.small.cells.end_together(self.number);
        Ok(())
    }

    fn gather(&self, send: Option<SendBuf>, recv: Option<RecvBuf>, root: u32) -> Result<(), Error> {
        if let (true, Some(recv)) = (self.me() == root, recv) {
            let blocks = Blocks::equal(&recv, self.members.count());
            for rank in self.others() {
                self.await_cell(rank);
                self.take(rank, 0, &blocks.of(rank));
            }
            if let Some(send) = send {
                algo::copy(&send, &blocks.of(root));
            }
        } else if let Some(send) = send {
            self.show(&send);
            self.members.ring(root);
        }
        self.small.cells.end(self.members, self.number);
        Ok(())
    }

    fn scatter(
        &self,
        send: Option<SendBuf>,
        recv: Option<RecvBuf>,
        root: u32,
    ) -> Result<(), Error> {
        if let (true, Some(send)) = (self.me() == root, send) {
            let members = self.members.count();
            self.show(&send.with_count(send.count() * i64::from(members)));
            self.ring_others();
            if let Some(recv) = recv {
                algo::copy(&Blocks::equal(&send, members).of(root), &recv);
            }
        } else if let Some(recv) = recv {
            self.await_cell(root);
            let at = self.me() as usize * recv.bytes() as usize;
            self.take(root, at, &recv);
        }
        self.small.cells.end(self.members, self.number);
        Ok(())
    }

    fn reduce(
        &self,
        send: Option<SendBuf>,
        recv: Option<RecvBuf>,
        op: &Op,
        root: u32,
    ) -> Result<(), Error> {
        let shown = send.clone().or_else(|| recv.as_ref().map(RecvBuf::as_send));
        if let Some(shown) = shown {
            self.show(&shown);
        }
        let outcome = match recv {
            Some(recv) if self.me() == root => {
                self.others().for_each(|rank| self.await_cell(rank));
                self.fold(send.as_ref(), &recv, op)
            }
            _ => {
                self.members.ring(root);
                Ok(())
            }
        };
        self.small.cells.end(self.members, self.number);
        outcome
    }
}
