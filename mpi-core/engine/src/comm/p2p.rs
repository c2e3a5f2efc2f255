//! Point-to-point operations of a communicator: translates ranks to processes, and completes operations on `MPI_PROC_NULL`.

use super::{Comm, CommError};
use crate::Error;
use crate::datatype::{RecvBuf, RecvBytes, Room, SendBuf};
use crate::pml::Key;
use crate::pml::{Envelope, Mode, Plane};
use crate::pml::{Message, Sent};
use crate::request::{ANY_SOURCE, Outcome, PROC_NULL, Req, Status};

impl Comm {
    /// `MPI_Isend` and, by mode, `MPI_Issend`.
    #[inline]
    pub fn isend(&self, buf: SendBuf, dest: i32, tag: i32, mode: Mode) -> Result<Sent, Error> {
        if !self.failure_state().is_none() {
            self.error_of_peer(dest)?;
        }
        if dest == PROC_NULL {
            return Ok(Sent::Done);
        }
        self.isend_on(Plane::User, buf, dest as u32, tag, mode)
    }

    /// `MPI_Irecv`.
    #[inline(always)]
    pub fn irecv(&self, buf: impl Into<Room>, source: i32, tag: i32) -> Result<Req, Error> {
        if !self.failure_state().is_none() {
            return self.irecv_after_failure(buf.into(), source, tag);
        }
        if source == PROC_NULL {
            return Ok(self.completed(Status::PROC_NULL));
        }
        self.irecv_of_program(buf, source, tag)
    }

    /// As [`Comm::irecv`] after a failure: a receive from a dead process fails at once unless its message has arrived,
    /// and a receive from any source is interrupted.
    #[cold]
    fn irecv_after_failure(&self, buf: Room, source: i32, tag: i32) -> Result<Req, Error> {
        self.error_if_revoked()?;
        if source == PROC_NULL {
            return Ok(self.completed(Status::PROC_NULL));
        }
        let req = self.irecv_on(Plane::User, buf, source, tag)?;
        if source == ANY_SOURCE {
            self.interrupt_receives();
        }
        Ok(req)
    }

    /// `MPI_Send` and, by mode, `MPI_Ssend`.
    #[inline]
    pub fn send(&self, buf: SendBuf, dest: i32, tag: i32, mode: Mode) -> Result<(), Error> {
        match self.isend(buf, dest, tag, mode)? {
            Sent::Done => Ok(()),
            Sent::Pending(req) => self.engine().wait(&req).map(|_| ()),
        }
    }

    /// `MPI_Recv`.
    #[inline]
    pub fn recv(&self, buf: impl Into<Room>, source: i32, tag: i32) -> Outcome {
        let req = self.irecv(buf, source, tag)?;
        self.engine().wait(&req)
    }

    /// Sends a short contiguous message if that is possible at once. If it returns false nothing was sent, and [`Comm::send`] must do it.
    #[inline]
    pub fn try_send(&self, data: &[u8], dest: i32, tag: i32) -> bool {
        if !self.failure_state().is_none() {
            return false;
        }
        // MPI_PROC_NULL and other negative numbers are not ranks either.
        let Some(proc) = self.peers().proc(dest as u32) else {
            return false;
        };
        let pml = self.engine().pml();
        let envelope = Envelope {
            context: self.context().plane(Plane::User),
            source: self.rank() as i32,
            dest,
            proc,
            tag,
        };
        let sent = pml.try_send(envelope.context, envelope.source, proc, tag, data);
        if sent && let Some(observer) = pml.observer() {
            // The message has left already, but it is recorded with the time at which its call began.
            observer.sends(&envelope, data.len() as u64);
        }
        sent
    }

    /// `MPI_Recv` into a contiguous buffer.
    #[inline]
    pub fn recv_bytes(&self, buf: RecvBytes, source: i32, tag: i32) -> Outcome {
        let pml = self.engine().pml();
        let known = source == ANY_SOURCE || (source as u32) < self.peers().size();
        let (matching, key) = (self.plane(Plane::User), Key::new(source, tag));
        if known
            && self.failure_state().is_none()
            && pml.try_recv_here(matching, self.rank() as i32, key, buf)
        {
            self.engine().wait_here();
            return pml.end_here();
        }
        self.recv(buf, source, tag)
    }

    /// Returns the sources and tags of the user's messages that have arrived and match no receive so far, in order of arrival.
    ///
    /// Empty on a communicator that has lost a member or is revoked: messages remain there because of the failure.
    pub fn unreceived(&self) -> Vec<Key> {
        match self.failure_state().is_none() {
            true => self.plane(Plane::User).unexpected_keys(),
            false => Vec::new(),
        }
    }

    /// `MPI_Iprobe`.
    pub fn iprobe(&self, source: i32, tag: i32) -> Result<Option<Status>, Error> {
        self.sound()?;
        if source == PROC_NULL {
            return Ok(Some(Status::PROC_NULL));
        }
        let look = |key| self.peek(key);
        self.find_now(Key::new(source, tag), look, |status| *status)
    }

    /// `MPI_Probe`.
    pub fn probe(&self, source: i32, tag: i32) -> Result<Status, Error> {
        self.sound()?;
        if source == PROC_NULL {
            return Ok(Status::PROC_NULL);
        }
        let look = |key| self.peek(key);
        self.find(Key::new(source, tag), look, |status| *status)
    }

    /// `MPI_Improbe`; with source `MPI_PROC_NULL` the result is `Probed::NoProc`.
    pub fn improbe(&self, source: i32, tag: i32) -> Result<Option<Probed>, Error> {
        self.sound()?;
        if source == PROC_NULL {
            return Ok(Some(Probed::NoProc));
        }
        let (asked, look) = (Key::new(source, tag), |key| self.pick(key));
        let found = self.find_now(asked, look, |message| message.status);
        Ok(found?.map(Probed::Message))
    }

    /// `MPI_Mprobe`.
    pub fn mprobe(&self, source: i32, tag: i32) -> Result<Probed, Error> {
        self.sound()?;
        if source == PROC_NULL {
            return Ok(Probed::NoProc);
        }
        let (asked, look) = (Key::new(source, tag), |key| self.pick(key));
        let message = self.find(asked, look, |message| message.status);
        Ok(Probed::Message(message?))
    }

    fn peek(&self, key: Key) -> Option<Status> {
        self.engine().pml().iprobe(self.plane(Plane::User), key)
    }

    fn pick(&self, key: Key) -> Option<Message> {
        self.engine().pml().improbe(self.plane(Plane::User), key)
    }

    /// Returns the error of a probe that no remaining process can satisfy.
    fn in_vain(&self, source: i32, tag: i32) -> Result<(), Error> {
        let pml = self.engine().pml();
        if let Some(error) = pml.no_sender(self.plane(Plane::User), Key::new(source, tag)) {
            return Err(error.into());
        }
        self.sound()?;
        match source {
            ANY_SOURCE if !self.failure_state().is_none() => {
                let error = self.unacknowledged().or_else(|| self.no_sender());
                error.map_or(Ok(()), |e| Err(e.into()))
            }
            _ => Ok(()),
        }
    }

    /// Checks that it is not revoked.
    #[inline]
    fn sound(&self) -> Result<(), Error> {
        match self.failure_state().is_none() {
            true => Ok(()),
            false => self.error_if_revoked(),
        }
    }

    /// Polls, progresses once, and polls again.
    pub(super) fn look_for<T>(
        &self,
        look: impl Fn() -> Option<T>,
        source: i32,
        tag: i32,
    ) -> Result<Option<T>, Error> {
        // If progress has done nothing, no new message can have arrived.
        let found = look().or_else(|| self.engine().poll_once().then(&look).flatten());
        if found.is_none() {
            self.in_vain(source, tag)?;
        }
        Ok(found)
    }

    /// Polls until a message is found, or no process is left that could send it.
    pub(super) fn wait_for<T>(
        &self,
        look: impl Fn() -> Option<T>,
        source: i32,
        tag: i32,
    ) -> Result<T, Error> {
        let mut found = None;
        loop {
            let mut vain = Ok(());
            let done = || {
                // It may be called again after it has found a message, which a second search might not find.
                if found.is_none() {
                    found = look();
                    vain = self.in_vain(source, tag);
                }
                found.is_some() || vain.is_err()
            };
            let context = self.context().plane(Plane::User);
            let tell = || {
                let key = Key::new(source, tag);
                self.engine().publish_wait_receive(context, key, 0);
            };
            self.engine().wait_publishing(done, tell);
            match found {
                Some(found) => return Ok(found),
                None => vain?,
            }
        }
    }

    /// `MPI_Imrecv`.
    pub fn imrecv(&self, message: Message, buf: RecvBuf) -> Req {
        self.engine().pml().imrecv(message, self.rank() as i32, buf)
    }

    /// Returns a request that is already complete.
    pub fn completed(&self, status: Status) -> Req {
        self.engine().completed(status)
    }

    #[inline]
    pub fn isend_on(
        &self,
        plane: Plane,
        buf: SendBuf,
        dest: u32,
        tag: i32,
        mode: Mode,
    ) -> Result<Sent, Error> {
        let Some(proc) = self.peers().proc(dest) else {
            return Err(self.no_rank(i64::from(dest as i32)));
        };
        let context = self.context().plane(plane);
        let envelope = Envelope {
            context,
            source: self.rank() as i32,
            dest: dest as i32,
            proc,
            tag,
        };
        self.engine().pml().isend(envelope, buf, mode)
    }

    #[inline(always)]
    pub fn irecv_on(
        &self,
        plane: Plane,
        buf: impl Into<Room>,
        source: i32,
        tag: i32,
    ) -> Result<Req, Error> {
        if source != ANY_SOURCE && source as u32 >= self.peers().size() {
            return Err(self.no_rank(i64::from(source)));
        }
        let (pml, key) = (self.engine().pml(), Key::new(source, tag));
        let matching = self.plane(plane);
        Ok(pml.irecv(matching, self.rank() as i32, key, buf))
    }

    #[cold]
    pub(super) fn no_rank(&self, rank: i64) -> Error {
        CommError::Rank {
            rank,
            size: self.peers().size(),
            comm: match self.is_inter() {
                true => format!("the remote group of {}", self.label()),
                false => self.label(),
            },
        }
        .into()
    }

    #[inline]
    fn plane(&self, plane: Plane) -> &std::rc::Rc<crate::pml::Matching> {
        self.0
            .planes
            .get(plane as usize)
            .unwrap_or_else(|| self.rare_plane(plane))
    }
}

/// The result of a matched probe.
pub enum Probed {
    Message(Message),
    /// The source was `MPI_PROC_NULL`: `MPI_MESSAGE_NO_PROC`.
    NoProc,
}
