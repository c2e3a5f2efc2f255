//! Partitioned communication (MPI 5.0, chapter 4): one message that is handed over in parts, as each becomes ready.
//!
//! Protocol, on two planes of the communicator that nothing else uses:
//! 1. when the sender is made it announces itself in [`Plane::Announce`] with the program's tag: how many partitions of how many
//!    bytes it has, and the first of as many tags that it has set aside;
//!    announcements match receivers in the order in which both were made, as the standard asks;
//! 2. each partition travels by itself in [`Plane::Partition`] under its own tag as soon as it is ready,
//!    so that parts overtake each other freely and those of one start never mix with those of the next.
//!
//! Both sides may cut the message differently: what travels are the sender's partitions, and a partition of the receiver has
//! arrived when all of those have that touch it.

use super::{Outcome, PROC_NULL, Req, Status};
use crate::Error;
use crate::comm::{Comm, Words};
use crate::datatype::{RecvBuf, Scratch, SendBuf};
use crate::pml::ob1::Sent;
use crate::pml::{Mode, Plane, PmlError};
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::ops::Range;
use std::rc::Rc;
use std::task::Poll;

/// What a program did wrong with a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionError {
    /// A number outside `0..partitions`.
    Number { partition: i64, partitions: u32 },
    /// Marked as ready twice in one start.
    Twice { partition: u32 },
    /// Marked as ready before `MPI_Start`.
    Inactive { partition: u32 },
    /// The two sides do not agree on the length of the message.
    Lengths {
        sent: u64,
        expected: u64,
        source: i32,
        tag: i32,
    },
}

impl fmt::Display for PartitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartitionError::Number {
                partition,
                partitions,
            } => write!(
                f,
                "partition {partition} does not exist, there are 0 to {}",
                partitions.saturating_sub(1)
            ),
            PartitionError::Twice { partition } => {
                write!(f, "partition {partition} has been marked as ready already")
            }
            PartitionError::Inactive { partition } => write!(
                f,
                "partition {partition} cannot be marked as ready, the operation has not been started"
            ),
            PartitionError::Lengths {
                sent,
                expected,
                source,
                tag,
            } => write!(
                f,
                "rank {source} sends {sent} bytes in partitions with tag {tag}, but {expected} are expected"
            ),
        }
    }
}

impl std::error::Error for PartitionError {}

/// A buffer cut into equal parts.
#[derive(Clone)]
struct Cut<B> {
    whole: B,
    partitions: u32,
    /// Elements in a partition.
    each: i64,
}

impl<B> Cut<B> {
    /// The elements of a partition.
    fn elements(&self, partition: u32) -> Range<i64> {
        let at = i64::from(partition) * self.each;
        at..at + self.each
    }

    fn check(&self, partition: i64) -> Result<u32, PartitionError> {
        let partitions = self.partitions;
        let found = u32::try_from(partition).ok().filter(|p| *p < partitions);
        found.ok_or(PartitionError::Number {
            partition,
            partitions,
        })
    }
}

/// `MPI_Psend_init`.
pub struct PartitionedSend {
    comm: Comm,
    buf: Cut<SendBuf>,
    dest: i32,
    /// The tag of partition 0.
    base: i32,
    /// The announcement, and its data, while it is on its way.
    announcement: Option<Req>,
    round: RefCell<Option<SendRound>>,
}

/// One start of a sender.
struct SendRound {
    ready: Vec<bool>,
    left: u32,
    under_way: Vec<Req>,
}

impl PartitionedSend {
    /// `buf` holds all partitions, `each` elements in one.
    pub fn new(
        comm: &Comm,
        buf: SendBuf,
        (partitions, each): (u32, i64),
        dest: i32,
        tag: i32,
    ) -> Result<PartitionedSend, Error> {
        let base = comm.next_partitions(partitions);
        let mut announcement = None;
        if dest != PROC_NULL {
            let bytes = each * buf.datatype().size();
            let words = Words::of(&[base as u64, partitions.into(), bytes as u64]);
            let sent = comm.isend_on(
                Plane::Announce,
                words.send(0..ANNOUNCEMENT),
                dest as u32,
                tag,
                Mode::Standard,
            )?;
            if let Sent::Pending(req) = sent {
                announcement = Some(req);
            }
        }
        let whole = buf;
        Ok(PartitionedSend {
            comm: comm.clone(),
            buf: Cut {
                whole,
                partitions,
                each,
            },
            dest,
            base,
            announcement,
            round: RefCell::default(),
        })
    }

    fn start(&self) {
        *self.round.borrow_mut() = Some(SendRound {
            ready: vec![false; self.buf.partitions as usize],
            left: self.buf.partitions,
            under_way: Vec::new(),
        });
    }

    /// `MPI_Pready`.
    pub fn ready(&self, partition: i64) -> Result<(), Error> {
        let partition = self.buf.check(partition)?;
        let mut round = self.round.borrow_mut();
        let round = round
            .as_mut()
            .ok_or(PartitionError::Inactive { partition })?;
        if std::mem::replace(&mut round.ready[partition as usize], true) {
            return Err(PartitionError::Twice { partition }.into());
        }
        round.left -= 1;
        if self.dest == PROC_NULL {
            return Ok(());
        }
        let sent = self.comm.isend_on(
            Plane::Partition,
            self.buf.whole.slice(self.buf.elements(partition)),
            self.dest as u32,
            self.base + partition as i32,
            Mode::Standard,
        )?;
        if let Sent::Pending(req) = sent {
            round.under_way.push(req);
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        let announced = self.announcement.as_ref().is_none_or(|r| r.is_complete());
        let round = self.round.borrow();
        announced
            && round
                .as_ref()
                .is_none_or(|r| r.left == 0 && r.under_way.iter().all(|req| req.is_complete()))
    }

    fn peek(&self) -> Outcome {
        let round = self.round.borrow();
        let under_way = round.iter().flat_map(|r| &r.under_way);
        under_way
            .map(|req| req.peek())
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Status::EMPTY)
    }

    fn finish(&mut self) -> Outcome {
        let requests = self.comm.engine().pml().requests();
        let mut outcome = Ok(Status::EMPTY);
        let round = self.round.take();
        let under_way = round.into_iter().flat_map(|r| r.under_way);
        for req in under_way.chain(self.announcement.take()) {
            outcome = outcome.and(requests.finish(&req).map(|_| Status::EMPTY));
        }
        outcome
    }
}

/// Words in an announcement.
const ANNOUNCEMENT: usize = 3;

/// What a sender announced.
#[derive(Clone, Copy, Debug)]
struct Link {
    base: i32,
    partitions: u32,
    /// Bytes in a partition.
    bytes: i64,
}

/// `MPI_Precv_init`.
pub struct PartitionedRecv(Rc<Receiver>);

struct Receiver {
    comm: Comm,
    buf: Cut<RecvBuf>,
    source: i32,
    tag: i32,
    /// Where the announcement will be, and its receive until it has ended.
    words: Words,
    announcement: RefCell<Option<Req>>,
    link: OnceCell<Link>,
    /// The partitions of the sender in this start; none before the announcement has come.
    parts: RefCell<Vec<Part>>,
    /// How many from the first on have been found complete.
    arrived: Cell<usize>,
    active: Cell<bool>,
}

/// A partition of the sender, on its way to us.
struct Part {
    req: Req,
    /// Where it is received if it does not begin and end with elements of ours, and where it goes from there.
    staged: Option<(Scratch, i64)>,
}

impl PartitionedRecv {
    /// `buf` holds all partitions, `each` elements in one.
    pub fn new(
        comm: &Comm,
        buf: RecvBuf,
        (partitions, each): (u32, i64),
        source: i32,
        tag: i32,
    ) -> Result<PartitionedRecv, Error> {
        let words = Words::new(ANNOUNCEMENT);
        let mut announcement = None;
        if source != PROC_NULL {
            let room = words.recv(0..ANNOUNCEMENT);
            announcement = Some(comm.irecv_on(Plane::Announce, room, source, tag)?);
        }
        let whole = buf;
        Ok(PartitionedRecv(Rc::new(Receiver {
            comm: comm.clone(),
            buf: Cut {
                whole,
                partitions,
                each,
            },
            source,
            tag,
            words,
            announcement: RefCell::new(announcement),
            link: OnceCell::new(),
            parts: RefCell::default(),
            arrived: Cell::new(0),
            active: Cell::new(false),
        })))
    }

    fn start(&self) -> Req {
        let receiver = self.0.clone();
        receiver.active.set(true);
        receiver.arrived.set(0);
        self.0.comm.engine().spawn(Box::pin(async move {
            if receiver.source == PROC_NULL {
                return Ok(());
            }
            poll_fn(|_| receiver.listen()).await?;
            receiver.post()?;
            poll_fn(|_| receiver.look()).await;
            receiver.end()
        }))
    }

    /// `MPI_Parrived`; true for an operation that is not active.
    pub fn arrived(&self, partition: i64) -> Result<bool, Error> {
        let receiver = &self.0;
        let partition = receiver.buf.check(partition)?;
        if !receiver.active.get() || receiver.source == PROC_NULL {
            return Ok(true);
        }
        let Some(link) = receiver.link.get() else {
            return Ok(false);
        };
        let mut parts = receiver.parts.borrow_mut();
        if parts.is_empty() {
            // Not posted yet, or over: the latter is seen by the request.
            return Ok(receiver.arrived.get() == link.partitions as usize);
        }
        let elements = receiver.buf.elements(partition);
        let size = receiver.buf.whole.datatype().size();
        let (start, end) = (elements.start * size, elements.end * size);
        // Without data every partition waits for all of the sender's.
        let touching = match link.bytes {
            0 => 0..parts.len(),
            bytes => (start / bytes) as usize..((end + bytes - 1) / bytes) as usize,
        };
        let end = touching.end.min(parts.len());
        let all = parts[touching.start.min(end)..end]
            .iter_mut()
            .all(|part| receiver.settle(part));
        Ok(all)
    }
}

impl Receiver {
    /// Waits for the announcement.
    fn listen(&self) -> Poll<Result<(), Error>> {
        let mut announcement = self.announcement.borrow_mut();
        let Some(req) = &*announcement else {
            return Poll::Ready(Ok(()));
        };
        if !req.is_complete() {
            return Poll::Pending;
        }
        let outcome = self.comm.engine().pml().requests().finish(req);
        *announcement = None;
        Poll::Ready(outcome.map(|_| {
            let word = |i| self.words.get(i);
            // A sender is met once, so nobody has set it before.
            let _ = self.link.set(Link {
                base: word(0) as i32,
                partitions: word(1) as u32,
                bytes: word(2) as i64,
            });
        }))
    }

    /// Posts a receive for each partition of the sender.
    fn post(&self) -> Result<(), Error> {
        let Some(link) = self.link.get() else {
            return Ok(());
        };
        let (whole, size) = (&self.buf.whole, self.buf.whole.datatype().size());
        let (sent, expected) = (i64::from(link.partitions) * link.bytes, whole.bytes());
        if sent != expected {
            let (sent, expected) = (sent as u64, expected as u64);
            let (source, tag) = (self.source, self.tag);
            return Err(PartitionError::Lengths {
                sent,
                expected,
                source,
                tag,
            }
            .into());
        }
        let fits = size > 0 && link.bytes % size == 0;
        let mut parts = self.parts.borrow_mut();
        for number in 0..link.partitions {
            let at = i64::from(number) * link.bytes;
            let (room, staged) = if fits {
                (whole.slice(at / size..(at + link.bytes) / size), None)
            } else {
                let scratch = crate::coll::scratch(link.bytes)?;
                (scratch.all(), Some((scratch, at)))
            };
            let tag = link.base + number as i32;
            let req = self
                .comm
                .irecv_on(Plane::Partition, room, self.source, tag)?;
            parts.push(Part { req, staged });
        }
        Ok(())
    }

    /// Whether a part has come, to its last place.
    fn settle(&self, part: &mut Part) -> bool {
        let complete = part.req.is_complete();
        if complete && let Some((scratch, at)) = part.staged.take() {
            let data = scratch.all().as_send().to_vec();
            self.buf.whole.clone().unpack_at(at, &data);
        }
        complete
    }

    /// Whether all have come; those that have are not looked at again.
    fn look(&self) -> Poll<()> {
        let mut parts = self.parts.borrow_mut();
        let mut arrived = self.arrived.get();
        while let Some(part) = parts.get_mut(arrived)
            && self.settle(part)
        {
            arrived += 1;
        }
        self.arrived.set(arrived);
        if arrived == parts.len() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Hands the receives back; the first failure is that of the operation.
    fn end(&self) -> Result<(), Error> {
        let requests = self.comm.engine().pml().requests();
        let mut outcome = Ok(());
        for part in self.parts.take() {
            outcome = outcome.and(requests.finish(&part.req).map(|_| ()));
        }
        outcome
    }

    /// The status of a start that has ended well.
    fn status(&self) -> Status {
        if self.source == PROC_NULL {
            return Status::PROC_NULL;
        }
        Status {
            source: self.source,
            tag: self.tag,
            bytes: self.buf.whole.bytes() as u64,
            cancelled: false,
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Nobody waits any more, and the buffer is the program's again.
        let pml = self.comm.engine().pml();
        let parts = self.parts.take().into_iter().map(|part| part.req);
        for req in parts.chain(self.announcement.take()) {
            pml.abandon(&req);
        }
    }
}

/// Either side, as a persistent operation sees it.
pub enum Partitioned {
    Send(PartitionedSend),
    Recv(PartitionedRecv, Option<Req>),
}

impl Partitioned {
    pub(super) fn start(&mut self) {
        match self {
            Partitioned::Send(send) => send.start(),
            Partitioned::Recv(recv, req) => *req = Some(recv.start()),
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        match self {
            Partitioned::Send(send) => send.is_complete(),
            Partitioned::Recv(_, req) => req.as_ref().is_none_or(|r| r.is_complete()),
        }
    }

    pub(super) fn peek(&self) -> Outcome {
        match self {
            Partitioned::Send(send) => send.peek(),
            Partitioned::Recv(recv, req) => {
                let outcome = req.as_ref().map_or(Ok(Status::EMPTY), |r| r.peek());
                outcome.map(|_| recv.0.status())
            }
        }
    }

    pub(super) fn finish(&mut self) -> Outcome {
        match self {
            Partitioned::Send(send) => send.finish(),
            Partitioned::Recv(recv, req) => {
                let receiver = &recv.0;
                receiver.active.set(false);
                let requests = receiver.comm.engine().pml().requests();
                let outcome = req
                    .take()
                    .map_or(Ok(Status::EMPTY), |r| requests.finish(&r));
                outcome.map(|_| receiver.status())
            }
        }
    }
}

impl From<PartitionError> for PmlError {
    fn from(e: PartitionError) -> PmlError {
        PmlError::Partition(e)
    }
}

impl From<PartitionError> for Error {
    #[cold]
    fn from(e: PartitionError) -> Error {
        PmlError::from(e).into()
    }
}
