//! The receiver of partitioned communication: receives the sender's announcement, then each partition directly into the receive buffer.

use super::error::Side;
use super::{ANNOUNCEMENT, ANSWER, Cut, PartitionError};
use crate::Error;
use crate::comm::{Comm, U64Buf};
use crate::datatype::{RecvBuf, Scratch};
use crate::pml::Sent;
use crate::pml::{Mode, Plane};
use crate::request::{Outcome, PROC_NULL, Req, Status};
use mpi_base::state::{About, Waits};
use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// The contents of the sender's announcement.
#[derive(Clone, Copy, Debug)]
struct Link {
    base: i32,
    partitions: u32,
    /// The size of one of the sender's partitions in bytes.
    bytes: i64,
}

impl Link {
    fn sent(&self) -> u64 {
        u64::from(self.partitions) * self.bytes as u64
    }
}

/// The operation that `MPI_Precv_init` creates.
pub struct PartitionedRecv(Rc<Receiver>);

struct Receiver {
    comm: Comm,
    buf: Cut<RecvBuf>,
    source: i32,
    tag: i32,
    /// The buffer for the announcement; `announcement` is its receive request until it has completed.
    words: U64Buf,
    announcement: RefCell<Option<Req>>,
    link: OnceCell<Link>,
    /// The send request of the reply, while it is in progress.
    answer: RefCell<Option<Req>>,
    /// The state of each of the sender's partitions in the present start;
    /// empty before the announcement has arrived.
    parts: RefCell<Vec<Part>>,
    /// The number of partitions, from the first on, that are known to be complete.
    arrived: Cell<usize>,
    active: Cell<bool>,
}

struct Part {
    req: Req,
    /// For a partition that does not begin and end at element boundaries of the receive buffer: a temporary buffer, and the byte offset
    /// to which it is unpacked.
    staged: Option<(Scratch, i64)>,
}

impl PartitionedRecv {
    /// Creates a receiver; `buf` contains all partitions, which have `each` elements.
    pub fn new(
        comm: &Comm,
        buf: RecvBuf,
        (partitions, each): (u32, i64),
        source: i32,
        tag: i32,
    ) -> Result<PartitionedRecv, Error> {
        let words = U64Buf::new(ANNOUNCEMENT);
        let mut announcement = None;
        if source != PROC_NULL {
            let target = words.recv(0..ANNOUNCEMENT);
            announcement = Some(comm.p2p().irecv_on(Plane::Announce, target, source, tag)?);
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
            answer: RefCell::default(),
            parts: RefCell::default(),
            arrived: Cell::new(0),
            active: Cell::new(false),
        })))
    }

    pub(super) fn start(&self) -> Req {
        let receiver = self.0.clone();
        receiver.active.set(true);
        receiver.arrived.set(0);
        self.0
            .comm
            .engine()
            .operations()
            .start(Box::pin(async move {
                if receiver.source == PROC_NULL {
                    return Ok(());
                }
                poll_fn(|_| receiver.listen()).await?;
                receiver.post()?;
                poll_fn(|_| receiver.look()).await;
                receiver.end()
            }))
    }

    /// Returns the range of elements of a partition; `None` if there is no such partition.
    pub fn elements(&self, partition: i64) -> Option<std::ops::Range<i64>> {
        let partition = self.0.buf.check(partition).ok()?;
        Some(self.0.buf.elements(partition))
    }

    /// Returns the length in bytes of the message that is being received.
    /// Returns 0 if the operation is not active, if the sender's announcement has not arrived,
    /// or if the message is longer than the buffer: then it is refused, and none of its bytes arrive.
    pub fn bytes(&self) -> u64 {
        let link = self.0.link.get().filter(|_| self.0.active.get());
        let space = self.0.buf.whole.bytes() as u64;
        let sent = link.map_or(0, Link::sent);
        if sent > space { 0 } else { sent }
    }

    /// `MPI_Parrived`: true if a partition has arrived, or if the operation is not active.
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
            // The receives have either not been posted or all completed; `arrived` distinguishes these cases.
            return Ok(receiver.arrived.get() == link.partitions as usize);
        }
        let elements = receiver.buf.elements(partition);
        let size = receiver.buf.whole.datatype().size();
        let (start, end) = (elements.start * size, elements.end * size);
        // If the sender's partitions have no bytes,
        // each partition of the receiver waits for all of the sender's partitions.
        let touching = match link.bytes {
            0 => 0..parts.len(),
            // A partition of the receiver beyond the end of a shorter message
            // waits for all of the sender's partitions too.
            bytes if start >= bytes * parts.len() as i64 => 0..parts.len(),
            bytes => (start / bytes) as usize..((end + bytes - 1) / bytes) as usize,
        };
        let end = touching.end.min(parts.len());
        let all = parts[touching.start.min(end)..end]
            .iter_mut()
            .all(|part| receiver.settle(part));
        Ok(all)
    }

    /// Completes a start, whose request is `req`.
    pub(super) fn finish(&self, req: Option<Req>) -> Outcome {
        let receiver = &self.0;
        receiver.active.set(false);
        let requests = receiver.comm.engine().pml().requests();
        let outcome = req.map_or(Ok(Status::EMPTY), |r| requests.finish(&r));
        outcome.map(|_| receiver.status())
    }

    /// Returns the status of a start that has succeeded.
    pub(super) fn status(&self) -> Status {
        self.0.status()
    }

    pub(super) fn about(&self) -> About {
        let receiver = &self.0;
        let bytes = receiver.buf.whole.bytes() as u64;
        super::about(
            &receiver.comm,
            Waits::Recv,
            receiver.source,
            receiver.tag,
            bytes,
        )
    }
}

impl Receiver {
    /// Polls for the announcement; replies to it when it has arrived.
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
        Poll::Ready(outcome.and_then(|_| {
            let word = |i| self.words.get(i);
            // The announcement is received only one time, so `link` is empty.
            let link = self.link.get_or_init(|| Link {
                base: word(0) as i32,
                partitions: word(1) as u32,
                bytes: word(2) as i64,
            });
            self.answer(link.base)
        }))
    }

    fn answer(&self, base: i32) -> Result<(), Error> {
        let words = U64Buf::of(&[self.buf.whole.bytes() as u64]);
        let (answer, source) = (words.send(0..ANSWER), self.source as u32);
        let sent = self
            .comm
            .p2p()
            .isend_on(Plane::Answer, answer, source, base, Mode::Standard)?;
        if let Sent::Pending(req) = sent {
            *self.answer.borrow_mut() = Some(req);
        }
        Ok(())
    }

    fn post(&self) -> Result<(), Error> {
        let Some(link) = self.link.get() else {
            return Ok(());
        };
        let (whole, size) = (&self.buf.whole, self.buf.whole.datatype().size());
        let (sent, space) = (link.sent(), whole.bytes() as u64);
        let mut parts = self.parts.borrow_mut();
        if sent > space {
            // The message is too long. Partitions sent before the reply arrived are received without their data,
            // so that they are not queued as unexpected.
            if parts.is_empty() {
                for number in 0..link.partitions {
                    let (nothing, tag) = (whole.slice(0..0), link.base + number as i32);
                    let req =
                        self.comm
                            .p2p()
                            .irecv_on(Plane::Partition, nothing, self.source, tag)?;
                    parts.push(Part { req, staged: None });
                }
            }
            let (peer, tag) = (Side::Sender(self.source), self.tag);
            return Err(PartitionError::Longer {
                sent,
                space,
                peer,
                tag,
            }
            .into());
        }
        let fits = size > 0 && link.bytes % size == 0;
        for number in 0..link.partitions {
            let at = i64::from(number) * link.bytes;
            let (target, staged) = if fits {
                (whole.slice(at / size..(at + link.bytes) / size), None)
            } else {
                let scratch = Scratch::bytes(link.bytes)?;
                (scratch.all(), Some((scratch, at)))
            };
            let tag = link.base + number as i32;
            let req = self
                .comm
                .p2p()
                .irecv_on(Plane::Partition, target, self.source, tag)?;
            parts.push(Part { req, staged });
        }
        Ok(())
    }

    /// Returns true if a partition has arrived; unpacks it from its temporary buffer, if it has one.
    fn settle(&self, part: &mut Part) -> bool {
        let complete = part.req.is_complete();
        if complete && let Some((scratch, at)) = part.staged.take() {
            let data = scratch.all().as_send().to_vec();
            self.buf.whole.clone().unpack_at(at, &data);
        }
        complete
    }

    /// Polls until all partitions have arrived; those that are known to be complete are not polled again.
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

    fn end(&self) -> Result<(), Error> {
        let requests = self.comm.engine().pml().requests();
        let mut outcome = Ok(());
        for part in self.parts.take() {
            outcome = outcome.and(requests.finish(&part.req).map(|_| ()));
        }
        outcome
    }

    fn status(&self) -> Status {
        if self.source == PROC_NULL {
            return Status::PROC_NULL;
        }
        Status {
            source: self.source,
            tag: self.tag,
            bytes: self.link.get().map_or(0, Link::sent),
            cancelled: false,
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // The program has freed the operation, so its buffer must not be accessed any more.
        let pml = self.comm.engine().pml();
        let parts = self.parts.take().into_iter().map(|part| part.req);
        for req in parts
            .chain(self.announcement.take())
            .chain(self.answer.take())
        {
            pml.termination().abandon(&req);
        }
    }
}
