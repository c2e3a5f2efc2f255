//! A conversation: internal messages among members of a communicator, separated from all other messages by a plane and a tag.

use super::{Comm, CommError, WeakComm};
use crate::Error;
use crate::datatype::{RecvBuf, SendBuf};
use crate::engine::Engine;
use crate::group::Group;
use crate::pml::{Mode, Plane, Sent};
use crate::request::{Outcome, Req, Status};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A plane (message space) and a tag of a communicator for internal messages; on an intercommunicator its ranks are those of the remote group.
#[derive(Clone)]
pub struct Conversation {
    comm: Comm,
    plane: Plane,
    tag: i32,
    /// The members that take part; `None` for all.
    /// The death of any other member does not affect the conversation.
    among: Option<Group>,
}

impl Conversation {
    /// Creates a conversation. All members must pass the same tag, which no other conversation in the plane uses.
    pub fn new(comm: Comm, plane: Plane, tag: i32) -> Conversation {
        Conversation {
            comm,
            plane,
            tag,
            among: None,
        }
    }

    /// Restricts the conversation to `members`, so that a failure of any other member does not affect it.
    pub(super) fn among(self, members: &Group) -> Conversation {
        Conversation {
            among: Some(members.clone()),
            ..self
        }
    }

    /// Returns true if all members take part.
    pub(super) fn is_of_all(&self) -> bool {
        self.among.is_none()
    }

    /// Returns the communicator.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Returns the engine of this process.
    pub fn engine(&self) -> &Engine {
        self.comm.engine()
    }

    /// Returns the plane of the conversation's messages.
    pub fn plane(&self) -> Plane {
        self.plane
    }

    /// Returns the tag of the conversation's messages.
    pub fn tag(&self) -> i32 {
        self.tag
    }

    /// Returns a conversation with the same plane and tag on another communicator.
    pub fn on(&self, comm: &Comm) -> Conversation {
        Conversation {
            comm: comm.clone(),
            ..self.clone()
        }
    }

    /// Starts sending to `dest`; the future completes when `buf` may be reused.
    pub fn isend(&self, buf: SendBuf, dest: u32) -> Pending {
        // An internal message requires that all members that take part are alive, not only `dest`.
        let sent = self.usable().and_then(|()| {
            self.comm
                .p2p()
                .isend_on(self.plane, buf, dest, self.tag, Mode::Standard)
        });
        self.pending(sent)
    }

    /// Starts receiving from `source` a message that may be shorter than `buf`.
    pub fn irecv(&self, buf: RecvBuf, source: u32) -> Pending {
        let req = self.usable().and_then(|()| {
            self.comm
                .p2p()
                .irecv_on(self.plane, buf, source as i32, self.tag)
        });
        self.pending(req.map(Sent::Pending))
    }

    #[inline]
    fn usable(&self) -> Result<(), Error> {
        self.comm.failures().usable_among(self.among.as_ref())
    }

    fn pending(&self, started: Result<Sent, Error>) -> Pending {
        let state = match started {
            Ok(Sent::Done) => State::Done,
            Ok(Sent::Pending(req)) => State::Waiting(req),
            Err(e) => State::Failed(e),
        };
        Pending {
            engine: self.engine().clone(),
            comm: self.comm.downgrade(),
            among: self.among.clone(),
            state,
            given_up: false,
        }
    }

    /// Sends and waits for completion, which may require the matching receive.
    pub async fn send(&self, buf: SendBuf, dest: u32) -> Result<(), Error> {
        self.isend(buf, dest).await.map(drop)
    }

    /// Receives a message that must be as long as `buf`.
    pub async fn recv(&self, buf: RecvBuf, source: u32) -> Result<(), Error> {
        let due = buf.bytes() as u64;
        let status = self.irecv(buf, source).await?;
        whole(status, due)
    }

    /// Sends and receives at the same time; the received message must be as long as `recv`.
    pub async fn sendrecv(
        &self,
        send: SendBuf,
        dest: u32,
        recv: RecvBuf,
        source: u32,
    ) -> Result<(), Error> {
        let due = recv.bytes() as u64;
        // Post the receive first: its message may already be in transfer, and a posted receive avoids the copy into the unexpected queue.
        let incoming = self.irecv(recv, source);
        let outgoing = self.isend(send, dest);
        whole(incoming.await?, due)?;
        outgoing.await.map(drop)
    }

    /// Waits until all messages in `pending` have completed; returns the first error.
    pub async fn all(&self, pending: Vec<Pending>) -> Result<(), Error> {
        let mut outcome = Ok(());
        for p in pending {
            outcome = outcome.and(p.await.map(drop));
        }
        outcome
    }
}

/// Returns an error if an internal message is shorter than `due` bytes, which is a protocol error of the sender.
fn whole(status: Status, due: u64) -> Result<(), Error> {
    let Status { source, bytes, .. } = status;
    match bytes < due {
        true => Err(CommError::Short { source, bytes, due }.into()),
        false => Ok(()),
    }
}

/// A future for a message in progress.
/// If the future is dropped, the message is abandoned and its buffer is no longer accessed.
#[must_use = "a message that is not awaited is cancelled"]
pub struct Pending {
    engine: Engine,
    /// Weak, because components own messages of their communicator, and a strong reference would keep it alive.
    comm: WeakComm,
    among: Option<Group>,
    state: State,
    /// True if the message was cancelled because a member has failed; the future then waits until the buffer is free.
    given_up: bool,
}

enum State {
    Done,
    Failed(Error),
    Waiting(Req),
}

impl Pending {
    /// Returns true if the message is complete, so that the next poll returns its result.
    pub fn is_complete(&self) -> bool {
        match &self.state {
            State::Waiting(req) => req.is_complete(),
            State::Done | State::Failed(_) => true,
        }
    }

    /// Cancels the message after a failure on the communicator. Returns the error when the buffer is free.
    #[cold]
    fn give_up(&mut self, comm: &Comm, req: &Req) -> Option<Error> {
        let error = comm.failures().usable_among(self.among.as_ref()).err()?;
        if !self.given_up {
            self.engine().pml().termination().give_up(req, &error);
            self.given_up = true;
        }
        if !req.is_complete() {
            return None;
        }
        let outcome = self.engine().pml().requests().finish(req);
        outcome.err().or(Some(error))
    }

    /// Returns the engine on which the message was started.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl Future for Pending {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Done => Poll::Ready(Ok(Status::EMPTY)),
            State::Failed(e) => Poll::Ready(Err(e)),
            State::Waiting(req) if req.is_complete() => {
                Poll::Ready(self.engine().pml().requests().finish(&req))
            }
            State::Waiting(req) => {
                if let Some(comm) = self.comm.upgrade()
                    && !comm.is_sound()
                    && let Some(error) = self.give_up(&comm, &req)
                {
                    return Poll::Ready(Err(error));
                }
                self.state = State::Waiting(req);
                Poll::Pending
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let State::Waiting(req) = &self.state {
            self.engine().pml().termination().abandon(req);
        }
    }
}
