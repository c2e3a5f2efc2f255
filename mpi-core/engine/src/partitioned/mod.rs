//! Partitioned communication (MPI 5.0, chapter 4): the program marks each partition of a message as ready separately.
//!
//! Protocol, on three planes of the communicator that have no other use:
//! 1. when the sender is created, it sends an announcement in [`Plane::Announce`](crate::pml::Plane::Announce) with the program's tag:
//!    the number of its partitions, the size of a partition in bytes,
//!    and the first of the consecutive tags that it has reserved for them;
//!    announcements match receivers in the order in which both were created, as the standard requires;
//! 2. when the receiver has been started and has received the announcement, it sends one reply in [`Plane::Answer`](crate::pml::Plane::Answer)
//!    with the first of these tags: the size of its buffer in bytes; the first start of the sender waits for this reply.
//!    If the buffer is smaller than the message, both processes get errors from this start and all later ones, and neither waits for the other;
//! 3. each partition is sent as a message of its own in [`Plane::Partition`](crate::pml::Plane::Partition), with a tag of its own, when it is ready,
//!    so partitions may overtake each other, but never match those of another start.
//!
//! Sender and receiver may divide the message differently.
//! Messages carry the sender's partitions; a partition of the receiver has
//! arrived when all of the sender's partitions that overlap it have arrived.

mod error;
mod recv;
mod send;

use crate::comm::Comm;
use crate::request::{Outcome, Req, Status};
use mpi_base::state::{About, NO_PEER, Waits};
use std::ops::Range;

pub use error::PartitionError;
pub use recv::PartitionedRecv;
pub use send::PartitionedSend;

const ANNOUNCEMENT: usize = 3;
const ANSWER: usize = 1;

/// Returns what the state page shows while a process waits for the other one.
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
        begun: 0,
    }
}

#[derive(Clone)]
struct Cut<B> {
    whole: B,
    partitions: u32,
    each: i64,
}

impl<B> Cut<B> {
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

/// A partitioned send or receive, as a persistent operation.
pub enum Partitioned {
    Send(PartitionedSend),
    Recv(PartitionedRecv, Option<Req>),
}

impl Partitioned {
    pub(crate) fn start(&mut self) {
        match self {
            Partitioned::Send(send) => send.start(),
            Partitioned::Recv(recv, req) => *req = Some(recv.start()),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Partitioned::Send(send) => send.is_complete(),
            Partitioned::Recv(_, req) => req.as_ref().is_none_or(|r| r.is_complete()),
        }
    }

    /// Returns what the state page shows while a process waits for this operation.
    pub(crate) fn about(&self) -> About {
        match self {
            Partitioned::Send(send) => send.about(),
            Partitioned::Recv(recv, _) => recv.about(),
        }
    }

    pub(crate) fn peek(&self) -> Outcome {
        match self {
            Partitioned::Send(send) => send.peek(),
            Partitioned::Recv(recv, req) => {
                let outcome = req.as_ref().map_or(Ok(Status::EMPTY), |r| r.peek());
                outcome.map(|_| recv.status())
            }
        }
    }

    pub(crate) fn finish(&mut self) -> Outcome {
        match self {
            Partitioned::Send(send) => send.finish(),
            Partitioned::Recv(recv, req) => recv.finish(req.take()),
        }
    }
}
