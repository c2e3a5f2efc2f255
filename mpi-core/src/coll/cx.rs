//! What an algorithm works with: one invocation of one collective on one communicator.
//!
//! Every invocation has its own tag in the communicator's collective plane, drawn in the order in which the members call,
//! which the standard requires to be the same everywhere; so invocations that overlap in time never mix.
//! Between one pair of ranks the messages of an invocation match in the order in which they were sent.

use crate::Error;
use crate::comm::Comm;
use crate::datatype::{RecvBuf, SendBuf};
use crate::engine::Engine;
use crate::pml::ob1::Sent;
use crate::pml::{Mode, Plane};
use crate::request::Req;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// One invocation.
#[derive(Clone)]
pub struct Cx {
    comm: Comm,
    plane: Plane,
    tag: i32,
    /// How many components above this one handed the call down.
    depth: usize,
}

impl Cx {
    pub(crate) fn new(comm: Comm, plane: Plane, tag: i32, depth: usize) -> Cx {
        Cx {
            comm,
            plane,
            tag,
            depth,
        }
    }

    /// Where it takes place; on an intercommunicator ranks of the methods below name the other group.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// The engine of this process, for its clock, its node and its parameters.
    pub fn engine(&self) -> &Engine {
        self.comm.engine()
    }

    /// This process's rank in its own group.
    pub fn rank(&self) -> u32 {
        self.comm.rank()
    }

    /// How many members its own group has.
    pub fn size(&self) -> u32 {
        self.comm.size()
    }

    /// This invocation's number on its communicator.
    pub fn tag(&self) -> i32 {
        self.tag
    }

    /// How many components of the call's chain stand above the one that carries it out.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The same invocation as the next component down sees it.
    pub fn next_down(&self) -> Cx {
        Cx {
            depth: self.depth + 1,
            ..self.clone()
        }
    }

    /// The same invocation among the members of our own group; on an intercommunicator only.
    pub(crate) fn inside(&self, operation: &'static str) -> Result<Cx, Error> {
        Ok(Cx {
            comm: self.comm.local(operation)?.clone(),
            ..self.clone()
        })
    }

    /// Starts sending to `dest`; the future ends when `buf` may be reused.
    pub fn isend(&self, buf: &SendBuf, dest: u32) -> Pending {
        Pending::new(
            self.engine(),
            self.comm
                .isend_on(self.plane, buf.clone(), dest, self.tag, Mode::Standard),
        )
    }

    /// Starts receiving from `source`; the future ends when `buf` is filled.
    pub fn irecv(&self, buf: &RecvBuf, source: u32) -> Pending {
        Pending::new(
            self.engine(),
            self.comm
                .irecv_on(self.plane, buf.clone(), source as i32, self.tag)
                .map(Sent::Pending),
        )
    }

    /// As [`Cx::isend`], waited for at once: it may wait for the receive.
    pub async fn send(&self, buf: &SendBuf, dest: u32) -> Result<(), Error> {
        self.isend(buf, dest).await
    }

    /// As [`Cx::irecv`], waited for at once; a longer message than `buf` is an error.
    pub async fn recv(&self, buf: &RecvBuf, source: u32) -> Result<(), Error> {
        self.irecv(buf, source).await
    }

    /// Sends and receives at the same time.
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
    engine: Engine,
    state: State,
}

enum State {
    Done,
    Failed(Error),
    Waiting(Req),
}

impl Pending {
    pub(crate) fn new(engine: &Engine, started: Result<Sent, Error>) -> Pending {
        let state = match started {
            Ok(Sent::Done) => State::Done,
            Ok(Sent::Pending(req)) => State::Waiting(req),
            Err(e) => State::Failed(e),
        };
        Pending {
            engine: engine.clone(),
            state,
        }
    }
}

impl Future for Pending {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Done => Poll::Ready(Ok(())),
            State::Failed(e) => Poll::Ready(Err(e)),
            State::Waiting(req) if req.is_complete() => {
                Poll::Ready(self.engine.pml().requests().finish(&req).map(|_| ()))
            }
            waiting => {
                self.state = waiting;
                Poll::Pending
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let State::Waiting(req) = &self.state {
            self.engine.pml().abandon(req);
        }
    }
}
