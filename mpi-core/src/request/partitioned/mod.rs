//! Partitioned communication (MPI 5.0, chapter 4): one message that is handed over in parts, as each becomes ready.
//!
//! Protocol, on two planes of the communicator that nothing else uses:
//! 1. when the sender is made it announces itself in [`Plane::Announce`](crate::pml::Plane::Announce) with the program's tag: how many partitions of how many
//!    bytes it has, and the first of as many tags that it has set aside;
//!    announcements match receivers in the order in which both were made, as the standard asks;
//! 2. when a start of the receiver has heard the announcement, it answers once, in [`Plane::Answer`](crate::pml::Plane::Answer) under the first of those tags, how many
//!    bytes it has room for; the first start of the sender waits for that answer. If there is room for less than is sent, both sides fail, in this start
//!    and in all later ones, and neither waits for the other;
//! 3. each partition travels by itself in [`Plane::Partition`](crate::pml::Plane::Partition) under its own tag as soon as it is ready,
//!    so that parts overtake each other freely and those of one start never mix with those of the next.
//!
//! Both sides may cut the message differently: what travels are the sender's partitions, and a partition of the receiver has
//! arrived when all of those have that touch it.

mod error;
mod recv;
mod send;

use super::{Outcome, Req, Status};
use crate::comm::Comm;
use mpi_base::state::{About, NO_PEER, Waits};
use std::ops::Range;

pub use error::PartitionError;
pub use recv::PartitionedRecv;
pub use send::PartitionedSend;

/// Words in an announcement.
const ANNOUNCEMENT: usize = 3;
/// Words in an answer.
const ANSWER: usize = 1;

/// What the state page says of a process that waits for the other side.
fn about(comm: &Comm, waits: Waits, peer: i32, tag: i32, bytes: u64) -> About {
    let proc = u32::try_from(peer)
        .ok()
        .and_then(|peer| comm.peers().proc(peer));
    About {
        waits,
        comm: comm.context().number(),
        peer,
        proc: proc.map_or(NO_PEER, |proc| proc as i32),
        tag,
        bytes,
        requests: 1,
    }
}

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

    /// What the state page says while a process waits for it.
    pub(super) fn about(&self) -> About {
        match self {
            Partitioned::Send(send) => send.about(),
            Partitioned::Recv(recv, _) => recv.about(),
        }
    }

    pub(super) fn peek(&self) -> Outcome {
        match self {
            Partitioned::Send(send) => send.peek(),
            Partitioned::Recv(recv, req) => {
                let outcome = req.as_ref().map_or(Ok(Status::EMPTY), |r| r.peek());
                outcome.map(|_| recv.status())
            }
        }
    }

    pub(super) fn finish(&mut self) -> Outcome {
        match self {
            Partitioned::Send(send) => send.finish(),
            Partitioned::Recv(recv, req) => recv.finish(req.take()),
        }
    }
}
