//! What an algorithm works with: one invocation of one collective on one communicator.
//!
//! Every invocation has its own tag in the communicator's collective plane, drawn in the order in which the members call,
//! which the standard requires to be the same everywhere; so invocations that overlap in time never mix.
//! Between one pair of ranks the messages of an invocation match in the order in which they were sent.
//! The receiver of a message knows how long it is, since the standard makes lengths agree (MPI 5.0, section 6.1); where they differ it is told.

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

/// One invocation.
#[derive(Clone)]
pub struct Invocation {
    talk: Conversation,
    /// How many components above this one handed the call down.
    depth: usize,
    /// What it is a part of, if that goes on where lengths differ: see [`length_mismatch`](super::length_mismatch).
    endures: Option<CheckedCall>,
}

impl From<&Conversation> for Invocation {
    /// An invocation of the library's own.
    fn from(talk: &Conversation) -> Invocation {
        Invocation {
            talk: talk.clone(),
            depth: 0,
            endures: None,
        }
    }
}

impl Invocation {
    pub(crate) fn new(comm: Comm, plane: Plane, tag: i32, depth: usize) -> Invocation {
        Invocation {
            talk: Conversation::new(comm, plane, tag),
            depth,
            endures: None,
        }
    }

    /// Where it takes place; on an intercommunicator ranks of the methods below name the other group.
    pub fn comm(&self) -> &Comm {
        self.talk.comm()
    }

    /// The engine of this process, for its clock, its node and its parameters.
    pub fn engine(&self) -> &Engine {
        self.talk.engine()
    }

    /// This process's rank in its own group.
    pub fn rank(&self) -> u32 {
        self.comm().rank()
    }

    /// How many members its own group has.
    pub fn size(&self) -> u32 {
        self.comm().size()
    }

    /// This invocation's number on its communicator.
    pub fn tag(&self) -> i32 {
        self.talk.tag()
    }

    /// How many components of the call's chain stand above the one that carries it out.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The same invocation as the next component down sees it.
    pub fn next_down(&self) -> Invocation {
        Invocation {
            depth: self.depth + 1,
            ..self.clone()
        }
    }

    /// The same invocation among the members of our own group; on an intercommunicator only.
    pub(crate) fn inside(&self, operation: &'static str) -> Result<Invocation, Error> {
        Ok(Invocation {
            talk: self.talk.on(self.comm().local(operation)?),
            ..self.clone()
        })
    }

    /// The same invocation as a step of it sees it that is a call on another communicator, of some of its members.
    pub(crate) fn step_on(&self, comm: &Comm) -> Invocation {
        Invocation {
            talk: Conversation::new(comm.clone(), Plane::Collective, self.tag()),
            depth: 0,
            endures: self.endures.clone(),
        }
    }

    /// The same invocation, which from now on a message of another length does not end: see [`length_mismatch`](super::length_mismatch).
    /// `None` if it goes on so already, as a part of a larger one; otherwise the caller asks for its [`Invocation::verdict`].
    pub(super) fn enduring(&self) -> Option<Invocation> {
        self.endures.is_none().then(|| Invocation {
            endures: Some(CheckedCall::of(&self.talk)),
            ..self.clone()
        })
    }

    /// How an invocation ended that was to endure.
    pub(super) fn verdict(&self, outcome: Result<(), Error>) -> Result<(), Error> {
        let spoilt = self.endures.as_ref().and_then(CheckedCall::take);
        match spoilt {
            Some(error) => Err(error),
            None => outcome,
        }
    }

    /// The outcome of a part, with which an invocation that endures goes on.
    pub(super) fn endure(&self, outcome: Result<(), Error>) -> Result<(), Error> {
        outcome.or_else(|e| keep(self.endures.as_ref(), e))
    }

    /// Whether what this process would send is rubbish.
    #[inline]
    fn has_length_mismatch(&self) -> bool {
        self.endures
            .as_ref()
            .is_some_and(CheckedCall::has_length_mismatch)
    }

    /// In place of a broadcast whose data at the root are rubbish, one of nothing, for components that tell lengths apart without messages.
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

    /// Starts sending to `dest`; the future ends when `buf` may be reused.
    pub fn isend(&self, buf: &SendBuf, dest: u32) -> Pending {
        let buf = match self.has_length_mismatch() {
            true => SendBuf::empty(),
            false => buf.clone(),
        };
        Pending {
            message: self.talk.isend(buf, dest),
            due: None,
        }
    }

    /// Starts receiving from `source`; the future ends when `buf` is filled, and a message of another length is an error.
    pub fn irecv(&self, buf: &RecvBuf, source: u32) -> Pending {
        let due = Due {
            bytes: buf.bytes() as u64,
            comm: self.comm().downgrade(),
            invocation: self.endures.clone(),
        };
        self.receive(buf, source, Some(due))
    }

    /// Starts receiving from `source` a message that may be shorter than `buf`, where what it says tells how long it is.
    pub fn irecv_up_to(&self, buf: &RecvBuf, source: u32) -> Pending {
        self.receive(buf, source, None)
    }

    fn receive(&self, buf: &RecvBuf, source: u32, due: Option<Due>) -> Pending {
        Pending {
            message: self.talk.irecv(buf.clone(), source),
            due,
        }
    }

    /// As [`Invocation::isend`], waited for at once: it may wait for the receive.
    pub async fn send(&self, buf: &SendBuf, dest: u32) -> Result<(), Error> {
        self.isend(buf, dest).await
    }

    /// As [`Invocation::irecv`], waited for at once.
    pub async fn recv(&self, buf: &RecvBuf, source: u32) -> Result<(), Error> {
        self.irecv(buf, source).await
    }

    /// As [`Invocation::irecv_up_to`], waited for at once.
    pub async fn recv_up_to(&self, buf: &RecvBuf, source: u32) -> Result<(), Error> {
        self.irecv_up_to(buf, source).await
    }

    /// Sends and receives at the same time; what comes is as long as `recv`.
    pub async fn sendrecv(
        &self,
        send: &SendBuf,
        dest: u32,
        recv: &RecvBuf,
        source: u32,
    ) -> Result<(), Error> {
        // The receive first: its message may be on its way already, and a posted receive spares the copy into the unexpected queue.
        let incoming = self.irecv(recv, source);
        let outgoing = self.isend(send, dest);
        incoming.await?;
        outgoing.await
    }

    /// Copies what `source` has sent, among other data, to where it belongs; of another length it is an error like a message.
    pub(super) fn deliver(&self, block: &SendBuf, to: &RecvBuf, source: u32) -> Result<(), Error> {
        algo::copy(block, to);
        let (bytes, due) = (block.bytes() as u64, to.bytes() as u64);
        match bytes.cmp(&due) {
            Ordering::Equal => Ok(()),
            Ordering::Less => self.endure(Err(CollError::Short {
                comm: self.comm().label(),
                me: Some(self.rank()),
                source: source as i32,
                bytes,
                due,
            }
            .into())),
            Ordering::Greater => self.endure(Err(PmlError::Truncated {
                receiver: self.rank() as i32,
                source: source as i32,
                tag: self.tag(),
                bytes,
                capacity: due,
            }
            .into())),
        }
    }

    /// Waits for all of them, and reports the first error after all have ended.
    pub async fn all(&self, pending: Vec<Pending>) -> Result<(), Error> {
        let mut outcome = Ok(());
        for p in pending {
            outcome = outcome.and(p.await);
        }
        outcome
    }
}

/// A message under way, as a future.
/// Dropping it gives the message up; its buffer is then not touched again by this process.
#[must_use = "a message that nobody waits for is given up"]
pub struct Pending {
    message: comm::Pending,
    /// What it has to bring, if it is to be received and that is known.
    due: Option<Due>,
}

impl Pending {
    /// Whether it would end if it were asked.
    pub(crate) fn is_through(&self) -> bool {
        self.message.is_through()
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
