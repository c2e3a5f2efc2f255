//! An invocation: the context of one collective call on one communicator, from which an algorithm sends and receives.
//!
//! Every invocation has its own tag in the communicator's collective plane.
//! Every member draws a tag for each call,
//! and the standard makes the order of calls equal on all members, so messages of overlapping invocations never match.
//! Between one pair of ranks the messages of an invocation match in the order in which they were sent.
//! The receiver knows the length of a message in advance, since the standard makes lengths agree (MPI 5.0, section 6.1); another length is an error.

use super::length_mismatch::{CheckedCall, Due, keep};
use super::{Call, CollError, algo};
use crate::Error;
use crate::comm::{self, Comm, Conversation};
use crate::datatype::{RecvBuf, SendBuf};
use crate::engine::Engine;
use crate::pml::{Plane, PmlError};
use std::cmp::Ordering;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The context of one collective call.
#[derive(Clone)]
pub struct Invocation {
    conversation: Conversation,
    /// The number of components that have passed the call down, from the highest priority to the present one.
    depth: usize,
    /// The record of this call's length mismatches, if the call continues after a mismatch: see [`length_mismatch`](super::length_mismatch).
    checked: Option<CheckedCall>,
}

impl From<&Conversation> for Invocation {
    /// Returns the invocation of a call that the library makes internally, on the tag of `conversation`.
    fn from(conversation: &Conversation) -> Invocation {
        Invocation {
            conversation: conversation.clone(),
            depth: 0,
            checked: None,
        }
    }
}

impl Invocation {
    pub(crate) fn new(comm: Comm, plane: Plane, tag: i32, depth: usize) -> Invocation {
        Invocation {
            conversation: Conversation::new(comm, plane, tag),
            depth,
            checked: None,
        }
    }

    /// Returns the communicator; on an intercommunicator, the ranks given to `isend`, `irecv` and so on are those of the remote group.
    pub fn comm(&self) -> &Comm {
        self.conversation.comm()
    }

    /// Returns this process's engine: clock, node and parameters.
    pub fn engine(&self) -> &Engine {
        self.conversation.engine()
    }

    /// Returns this process's rank in the local group.
    pub fn rank(&self) -> u32 {
        self.comm().rank()
    }

    /// Returns the size of the local group.
    pub fn size(&self) -> u32 {
        self.comm().size()
    }

    /// Returns the tag: the number of this call on the communicator.
    pub fn tag(&self) -> i32 {
        self.conversation.tag()
    }

    /// Returns the number of components that have passed the call down.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Returns this invocation for the next lower component (`depth` + 1).
    pub fn next_down(&self) -> Invocation {
        Invocation {
            depth: self.depth + 1,
            ..self.clone()
        }
    }

    /// Returns this invocation on the local group's communicator; for intercommunicators only.
    pub(crate) fn inside(&self, operation: &'static str) -> Result<Invocation, Error> {
        Ok(Invocation {
            conversation: self.conversation.on(self.comm().local(operation)?),
            ..self.clone()
        })
    }

    /// Returns the invocation of a step of this call: a call on another communicator that has some of the same members.
    pub(crate) fn step_on(&self, comm: &Comm) -> Invocation {
        Invocation {
            conversation: Conversation::new(comm.clone(), Plane::Collective, self.tag()),
            depth: 0,
            checked: self.checked.clone(),
        }
    }

    /// Returns this invocation in the mode that continues after a length mismatch: see [`length_mismatch`](super::length_mismatch).
    /// Returns `None` if the invocation is a part of a larger call that is already in this mode;
    /// otherwise the caller must call [`Invocation::verdict`].
    pub(super) fn checked_for_lengths(&self) -> Option<Invocation> {
        self.checked.is_none().then(|| Invocation {
            checked: Some(CheckedCall::of(&self.conversation)),
            ..self.clone()
        })
    }

    /// Returns the result of a call that continues after a length mismatch: the first mismatch, or `outcome` if there was none.
    pub(super) fn verdict(&self, outcome: Result<(), Error>) -> Result<(), Error> {
        let spoilt = self.checked.as_ref().and_then(CheckedCall::take);
        match spoilt {
            Some(error) => Err(error),
            None => outcome,
        }
    }

    /// Filters the outcome of a part of the call: a length mismatch is recorded, and `Ok` is returned, so that the call continues.
    pub(super) fn note_length_mismatch(&self, outcome: Result<(), Error>) -> Result<(), Error> {
        outcome.or_else(|e| keep(self.checked.as_ref(), e))
    }

    /// Returns true after a length mismatch: this process's data are then invalid and must not be sent.
    #[inline]
    fn has_length_mismatch(&self) -> bool {
        self.checked
            .as_ref()
            .is_some_and(CheckedCall::has_length_mismatch)
    }

    /// Returns an empty broadcast to carry out instead of `call`, if `call` is a broadcast, this process is the root, and it has a length mismatch.
    /// `shm` calls this function: its cells contain the length of a broadcast and its data, so an empty broadcast
    /// shows the mismatch to every receiver. Components that send messages need no call, because `isend` empties the messages.
    #[inline]
    pub(super) fn emptied(&self, call: &Call) -> Option<Call> {
        match call {
            Call::Bcast { root, .. } if *root == self.rank() && self.has_length_mismatch() => {
                Some(Call::Bcast {
                    buf: RecvBuf::empty(),
                    root: *root,
                })
            }
            _ => None,
        }
    }

    /// Starts a send to `dest`; the future completes when `buf` may be reused.
    pub fn isend(&self, buf: &SendBuf, dest: u32) -> Pending {
        let buf = match self.has_length_mismatch() {
            true => SendBuf::empty(),
            false => buf.clone(),
        };
        Pending {
            message: self.conversation.isend(buf, dest),
            due: None,
        }
    }

    /// Starts a receive from `source`; the future completes when `buf` is filled. A message of a different length is an error.
    pub fn irecv(&self, buf: &RecvBuf, source: u32) -> Pending {
        let due = Due {
            bytes: buf.bytes() as u64,
            comm: self.comm().downgrade(),
            invocation: self.checked.clone(),
        };
        self.receive(buf, source, Some(due))
    }

    /// Starts a receive from `source` of a message that may be shorter than `buf`; the data must contain their own length.
    pub fn irecv_up_to(&self, buf: &RecvBuf, source: u32) -> Pending {
        self.receive(buf, source, None)
    }

    fn receive(&self, buf: &RecvBuf, source: u32, due: Option<Due>) -> Pending {
        Pending {
            message: self.conversation.irecv(buf.clone(), source),
            due,
        }
    }

    /// Sends and waits, as [`Invocation::isend`]; may block until the receive is posted.
    pub async fn send(&self, buf: &SendBuf, dest: u32) -> Result<(), Error> {
        self.isend(buf, dest).await
    }

    /// Receives and waits, as [`Invocation::irecv`].
    pub async fn recv(&self, buf: &RecvBuf, source: u32) -> Result<(), Error> {
        self.irecv(buf, source).await
    }

    /// Receives and waits, as [`Invocation::irecv_up_to`].
    pub async fn recv_up_to(&self, buf: &RecvBuf, source: u32) -> Result<(), Error> {
        self.irecv_up_to(buf, source).await
    }

    /// Sends and receives concurrently; the incoming message must be as long as `recv`.
    pub async fn sendrecv(
        &self,
        send: &SendBuf,
        dest: u32,
        recv: &RecvBuf,
        source: u32,
    ) -> Result<(), Error> {
        // Post the receive first: its message may already be in transfer,
        // and a posted receive avoids a copy into the unexpected queue.
        let incoming = self.irecv(recv, source);
        let outgoing = self.isend(send, dest);
        incoming.await?;
        outgoing.await
    }

    /// Copies a block that `source` sent in one message with other data into its buffer;
    /// a length mismatch is an error, as for a message.
    pub(super) fn deliver(&self, block: &SendBuf, to: &RecvBuf, source: u32) -> Result<(), Error> {
        algo::copy(block, to);
        self.compare_lengths(source, block.bytes() as u64, to.bytes() as u64)
    }

    /// Returns an error if a block of `source` has another length than its buffer (`due` bytes), as for a message.
    pub(super) fn compare_lengths(&self, source: u32, bytes: u64, due: u64) -> Result<(), Error> {
        match bytes.cmp(&due) {
            Ordering::Equal => Ok(()),
            Ordering::Less => self.note_length_mismatch(Err(CollError::Short {
                comm: self.comm().label(),
                me: Some(self.rank()),
                source: source as i32,
                bytes,
                due,
            }
            .into())),
            Ordering::Greater => self.note_length_mismatch(Err(PmlError::Truncated {
                receiver: self.rank() as i32,
                source: source as i32,
                tag: self.tag(),
                bytes,
                capacity: due,
            }
            .into())),
        }
    }

    /// Waits until all messages in `pending` have ended; returns the first error.
    pub async fn all(&self, pending: Vec<Pending>) -> Result<(), Error> {
        let mut outcome = Ok(());
        for p in pending {
            outcome = outcome.and(p.await);
        }
        outcome
    }
}

/// A future for a message in progress.
/// If the future is dropped, the message is cancelled and its buffer is no longer accessed.
#[must_use = "a message that is not awaited is cancelled"]
pub struct Pending {
    message: comm::Pending,
    /// The length that the message must have; `None` for sends and for messages that may be shorter.
    due: Option<Due>,
}

impl Pending {
    /// Returns true if the message is complete, so that the next poll returns its result.
    pub(crate) fn is_complete(&self) -> bool {
        self.message.is_complete()
    }
}

impl Future for Pending {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(Pin::new(&mut self.message).poll(context));
        Poll::Ready(match self.due.take() {
            Some(due) => due.judge(outcome),
            None => outcome.map(|_| ()),
        })
    }
}
