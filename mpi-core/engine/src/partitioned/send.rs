//! The sender of partitioned communication: sends the announcement, then each partition when the program has marked it as ready.

use super::error::Side;
use super::{ANNOUNCEMENT, ANSWER, Cut, PartitionError};
use crate::Error;
use crate::comm::{Comm, U64Buf};
use crate::datatype::SendBuf;
use crate::pml::Sent;
use crate::pml::{Mode, Plane};
use crate::request::{Outcome, PROC_NULL, Req, Status};
use mpi_base::state::{About, Waits};
use std::cell::RefCell;

/// The operation that `MPI_Psend_init` creates.
pub struct PartitionedSend {
    comm: Comm,
    buf: Cut<SendBuf>,
    dest: i32,
    base: i32,
    tag: i32,
    /// The send request of the announcement, while it is in progress.
    announcement: RefCell<Option<Req>>,
    /// The buffer for the receiver's reply; `answer` is its receive request until it has completed.
    buffer: U64Buf,
    answer: RefCell<Option<Req>>,
    round: RefCell<Option<SendRound>>,
}

/// The state of a sender between a start and its completion.
struct SendRound {
    ready: Vec<bool>,
    left: u32,
    under_way: Vec<Req>,
}

impl PartitionedSend {
    /// Creates a sender; `buf` contains all partitions, which have `each` elements.
    pub fn new(
        comm: &Comm,
        buf: SendBuf,
        (partitions, each): (u32, i64),
        dest: i32,
        tag: i32,
    ) -> Result<PartitionedSend, Error> {
        let base = comm.internal().next_partitions(partitions);
        let (mut announcement, mut answer) = (None, None);
        let buffer = U64Buf::new(ANSWER);
        if dest != PROC_NULL {
            answer =
                Some(
                    comm.p2p()
                        .irecv_on(Plane::Answer, buffer.recv(0..ANSWER), dest, base)?,
                );
            let bytes = each * buf.datatype().size();
            let words = U64Buf::of(&[base as u64, partitions.into(), bytes as u64]);
            let sent = comm.p2p().isend_on(
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
            tag,
            announcement: RefCell::new(announcement),
            buffer,
            answer: RefCell::new(answer),
            round: RefCell::default(),
        })
    }

    pub(super) fn start(&self) {
        *self.round.borrow_mut() = Some(SendRound {
            ready: vec![false; self.buf.partitions as usize],
            left: self.buf.partitions,
            under_way: Vec::new(),
        });
    }

    /// Returns the range of elements of a partition; `None` if there is no such partition.
    pub fn elements(&self, partition: i64) -> Option<std::ops::Range<i64>> {
        let partition = self.buf.check(partition).ok()?;
        Some(self.buf.elements(partition))
    }

    /// `MPI_Pready`: marks a partition as ready and sends it.
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
        if self.dest == PROC_NULL || self.refusal().is_some() {
            return Ok(());
        }
        let sent = self.comm.p2p().isend_on(
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

    fn bytes(&self) -> u64 {
        self.buf.whole.bytes() as u64
    }

    fn is_answered(&self) -> bool {
        let is_complete =
            |req: &RefCell<Option<Req>>| req.borrow().as_ref().is_none_or(|r| r.is_complete());
        is_complete(&self.announcement) && is_complete(&self.answer)
    }

    /// Returns the error if the receiver has replied that its buffer is too small.
    fn refusal(&self) -> Option<PartitionError> {
        let (sent, space) = (self.bytes(), self.buffer.get(0));
        let refused = self.dest != PROC_NULL && self.is_answered() && sent > space;
        refused.then_some(PartitionError::Longer {
            sent,
            space,
            peer: Side::Receiver(self.dest),
            tag: self.tag,
        })
    }

    pub(super) fn is_complete(&self) -> bool {
        if !self.is_answered() {
            return false;
        }
        let round = self.round.borrow();
        let sent = |r: &SendRound| r.left == 0 && r.under_way.iter().all(|req| req.is_complete());
        round.as_ref().is_none_or(sent) || self.refusal().is_some()
    }

    pub(super) fn about(&self) -> About {
        super::about(&self.comm, Waits::Send, self.dest, self.tag, self.bytes())
    }

    pub(super) fn peek(&self) -> Outcome {
        if let Some(refusal) = self.refusal() {
            return Err(refusal.into());
        }
        let round = self.round.borrow();
        let under_way = round.iter().flat_map(|r| &r.under_way);
        under_way
            .map(|req| req.peek())
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Status::EMPTY)
    }

    pub(super) fn finish(&mut self) -> Outcome {
        let pml = self.comm.engine().pml();
        let requests = pml.requests();
        let refusal = self.refusal();
        let mut outcome = Ok(Status::EMPTY);
        for req in self
            .announcement
            .take()
            .into_iter()
            .chain(self.answer.take())
        {
            outcome = outcome.and(requests.finish(&req).map(|_| Status::EMPTY));
        }
        let round = self.round.take();
        for req in round.into_iter().flat_map(|r| r.under_way) {
            match req.is_complete() {
                true => outcome = outcome.and(requests.finish(&req).map(|_| Status::EMPTY)),
                // The receiver will not receive this message.
                false => pml.termination().abandon(&req),
            }
        }
        match refusal {
            Some(refusal) => Err(refusal.into()),
            None => outcome,
        }
    }
}

impl Drop for PartitionedSend {
    fn drop(&mut self) {
        let pml = self.comm.engine().pml();
        if let Some(req) = self.answer.take() {
            pml.termination().abandon(&req);
        }
    }
}
