//! The sending side: an announcement, then each partition as the program marks it as ready.

use super::super::{Outcome, PROC_NULL, Req, Status};
use super::{ANNOUNCEMENT, Cut, PartitionError};
use crate::Error;
use crate::comm::{Comm, Words};
use crate::datatype::SendBuf;
use crate::pml::ob1::Sent;
use crate::pml::{Mode, Plane};
use std::cell::RefCell;

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

    pub(super) fn start(&self) {
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

    pub(super) fn is_complete(&self) -> bool {
        let announced = self.announcement.as_ref().is_none_or(|r| r.is_complete());
        let round = self.round.borrow();
        announced
            && round
                .as_ref()
                .is_none_or(|r| r.left == 0 && r.under_way.iter().all(|req| req.is_complete()))
    }

    pub(super) fn peek(&self) -> Outcome {
        let round = self.round.borrow();
        let under_way = round.iter().flat_map(|r| &r.under_way);
        under_way
            .map(|req| req.peek())
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Status::EMPTY)
    }

    pub(super) fn finish(&mut self) -> Outcome {
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
