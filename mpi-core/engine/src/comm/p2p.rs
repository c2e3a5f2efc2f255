//! Point-to-point on a communicator: ranks become processes, and `MPI_PROC_NULL` becomes nothing.

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
        if !self.trouble().is_none() {
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
        if !self.trouble().is_none() {
            return self.irecv_in_trouble(buf.into(), source, tag);
        }
        if source == PROC_NULL {
            return Ok(self.completed(Status::PROC_NULL));
        }
        self.irecv_of_program(buf, source, tag)
    }

    /// The same where something is wrong: a receive of a dead process's message ends at once unless that has come,
    /// and one from any source is told of failures.
    #[cold]
    fn irecv_in_trouble(&self, buf: Room, source: i32, tag: i32) -> Result<Req, Error> {
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

    /// Sends a short message that lies in one run, if that is possible at once; what the answer `false` leaves undone [`Comm::send`] does.
    #[inline]
    pub fn try_send(&self, data: &[u8], dest: i32, tag: i32) -> bool {
        if !self.trouble().is_none() {
            return false;
        }
        // MPI_PROC_NULL and other negative numbers are no ranks either.
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
        if sent && let Some(witness) = pml.witness() {
            // It has left, but its time is that at which its call began.
            witness.sends(&envelope, data.len() as u64);
        }
        sent
    }

    /// `MPI_Recv` into one run of bytes.
    #[inline]
    pub fn recv_bytes(&self, buf: RecvBytes, source: i32, tag: i32) -> Outcome {
        let pml = self.engine().pml();
        let known = source == ANY_SOURCE || (source as u32) < self.peers().size();
        let (matching, key) = (self.plane(Plane::User), Key::new(source, tag));
        if known
            && self.trouble().is_none()
            && pml.try_recv_here(matching, self.rank() as i32, key, buf)
        {
            self.engine().wait_here();
            return pml.end_here();
        }
        self.recv(buf, source, tag)
    }

    /// The sources and tags of the user's messages that have arrived and that no receive has taken, in the order of their arrival.
    ///
    /// None on a communicator that has lost a member or is revoked: what is left there is the failure's doing.
    pub fn unreceived(&self) -> Vec<Key> {
        match self.trouble().is_none() {
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

    /// `MPI_Improbe`; a message from `MPI_PROC_NULL` is `Probed::NoProc`.
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

    /// The error of a probe that no process is left to serve.
    fn in_vain(&self, source: i32, tag: i32) -> Result<(), Error> {
        let pml = self.engine().pml();
        if let Some(error) = pml.no_sender(self.plane(Plane::User), Key::new(source, tag)) {
            return Err(error.into());
        }
        self.sound()?;
        match source {
            ANY_SOURCE if !self.trouble().is_none() => {
                let error = self.unacknowledged().or_else(|| self.no_sender());
                error.map_or(Ok(()), |e| Err(e.into()))
            }
            _ => Ok(()),
        }
    }

    /// That it is not revoked.
    #[inline]
    fn sound(&self) -> Result<(), Error> {
        match self.trouble().is_none() {
            true => Ok(()),
            false => self.error_if_revoked(),
        }
    }

    /// Looks, progresses once, and looks again.
    pub(super) fn look_for<T>(
        &self,
        look: impl Fn() -> Option<T>,
        source: i32,
        tag: i32,
    ) -> Result<Option<T>, Error> {
        // Where polling has found nothing to do, there is nothing new to see.
        let found = look().or_else(|| self.engine().poll_once().then(&look).flatten());
        if found.is_none() {
            self.in_vain(source, tag)?;
        }
        Ok(found)
    }

    /// Looks until something is found, or no process is left that could send it.
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
                // It may be asked again after it has found a message, which may no longer be there to be found.
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

    /// A request that has completed already.
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

/// What a matched probe found.
pub enum Probed {
    Message(Message),
    /// The source was `MPI_PROC_NULL`: `MPI_MESSAGE_NO_PROC`.
    NoProc,
}
