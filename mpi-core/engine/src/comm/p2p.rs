//! Point-to-point operations of a communicator: translation of ranks to processes, and completion of operations on `MPI_PROC_NULL`.

use super::planes::Planes;
use super::{Comm, CommError};
use crate::Error;
use crate::datatype::{RecvBuf, RecvBytes, RecvTarget, SendBuf};
use crate::pml::{Envelope, Key, Matching, Message, Mode, Plane, Sent};
use crate::request::{ANY_SOURCE, Outcome, PROC_NULL, Req, Status};
use std::rc::Rc;

/// The point-to-point operations of a communicator.
#[derive(Clone, Copy)]
pub struct P2p<'a> {
    comm: &'a Comm,
    planes: &'a Planes,
}

impl<'a> P2p<'a> {
    #[inline(always)]
    pub(super) fn new(comm: &'a Comm, planes: &'a Planes) -> P2p<'a> {
        P2p { comm, planes }
    }

    pub(super) fn comm(self) -> &'a Comm {
        self.comm
    }

    /// Implements `MPI_Isend` and, depending on `mode`, `MPI_Issend`.
    #[inline]
    pub fn isend(self, buf: SendBuf, dest: i32, tag: i32, mode: Mode) -> Result<Sent, Error> {
        if !self.comm.is_sound() {
            self.comm.failures().error_of_peer(dest)?;
        }
        if dest == PROC_NULL {
            return Ok(Sent::Done);
        }
        self.isend_on(Plane::User, buf, dest as u32, tag, mode)
    }

    /// Implements `MPI_Irecv`.
    #[inline(always)]
    pub fn irecv(self, buf: impl Into<RecvTarget>, source: i32, tag: i32) -> Result<Req, Error> {
        if !self.comm.is_sound() {
            return self.irecv_after_failure(buf.into(), source, tag);
        }
        if source == PROC_NULL {
            return Ok(self.comm.engine().operations().completed(Status::PROC_NULL));
        }
        self.irecv_of_program(buf, source, tag)
    }

    /// Same as [`P2p::irecv`] after a failure:
    /// a receive from a dead process fails immediately, unless its message has arrived,
    /// and a receive from any source is interrupted.
    #[cold]
    fn irecv_after_failure(self, buf: RecvTarget, source: i32, tag: i32) -> Result<Req, Error> {
        self.comm.failures().error_if_revoked()?;
        if source == PROC_NULL {
            return Ok(self.comm.engine().operations().completed(Status::PROC_NULL));
        }
        let req = self.irecv_on(Plane::User, buf, source, tag)?;
        if source == ANY_SOURCE {
            self.comm.failures().interrupt_receives();
        }
        Ok(req)
    }

    /// Implements `MPI_Send` and, depending on `mode`, `MPI_Ssend`.
    #[inline]
    pub fn send(self, buf: SendBuf, dest: i32, tag: i32, mode: Mode) -> Result<(), Error> {
        match self.isend(buf, dest, tag, mode)? {
            Sent::Done => Ok(()),
            Sent::Pending(req) => self.comm.engine().wait(&req).map(|_| ()),
        }
    }

    /// Implements `MPI_Recv`.
    #[inline]
    pub fn recv(self, buf: impl Into<RecvTarget>, source: i32, tag: i32) -> Outcome {
        let req = self.irecv(buf, source, tag)?;
        self.comm.engine().wait(&req)
    }

    /// Sends a short contiguous message, if it can be sent without waiting.
    /// Otherwise returns false, and the caller must use [`P2p::send`].
    #[inline]
    pub fn try_send(self, data: &[u8], dest: i32, tag: i32) -> bool {
        if !self.comm.is_sound() {
            return false;
        }
        // MPI_PROC_NULL and other negative ranks have no process, so the result is false for them.
        let Some(proc) = self.comm.peers().proc(dest as u32) else {
            return false;
        };
        let pml = self.comm.engine().pml();
        let envelope = Envelope {
            context: self.comm.context().plane(Plane::User),
            source: self.comm.rank() as i32,
            dest,
            proc,
            tag,
        };
        let sent = pml.try_send(envelope.context, envelope.source, proc, tag, data);
        if sent {
            // The message has already been sent; it is recorded with the start time of the call.
            pml.observe_send(&envelope, data.len() as u64);
        }
        sent
    }

    /// `MPI_Recv` into a contiguous buffer.
    #[inline]
    pub fn recv_bytes(self, buf: RecvBytes, source: i32, tag: i32) -> Outcome {
        let pml = self.comm.engine().pml();
        let known = source == ANY_SOURCE || (source as u32) < self.comm.peers().size();
        let (matching, key) = (self.planes.user(), Key::new(source, tag));
        if known
            && self.comm.is_sound()
            && pml.try_recv_here(matching, self.comm.rank() as i32, key, buf)
        {
            self.comm.engine().wait_here();
            return pml.end_here();
        }
        self.recv(buf, source, tag)
    }

    /// `MPI_Sendrecv` of a short contiguous message and into a contiguous buffer.
    ///
    /// The message is sent first. Nothing is polled before the receive begins, so the peer's message still matches the posted receive.
    /// If the message cannot be sent without waiting, or if the receive has no sender, returns `None` without effect.
    #[inline]
    pub fn try_exchange(
        self,
        (data, dest, send_tag): (&[u8], i32, i32),
        (buf, source, recv_tag): (RecvBytes, i32, i32),
    ) -> Option<Outcome> {
        let known = source == ANY_SOURCE || (source as u32) < self.comm.peers().size();
        let sent = known && self.try_send(data, dest, send_tag);
        sent.then(|| self.recv_bytes(buf, source, recv_tag))
    }

    /// Returns the sources and tags of the user's messages that have arrived and match no receive so far, in order of arrival.
    ///
    /// Empty on a communicator that has lost a member or has been revoked, since a failure explains such messages.
    pub fn unreceived(self) -> Vec<Key> {
        match self.comm.is_sound() {
            true => self.planes.user().unexpected_keys(),
            false => Vec::new(),
        }
    }

    /// Returns the lengths of the queues of posted receives and of unexpected user messages.
    pub fn queue_lengths(self) -> (usize, usize) {
        self.planes.user().lengths()
    }

    /// Returns the user's messages that have arrived and match no receive so far, with their lengths in bytes, in any order.
    pub fn unexpected(self) -> Vec<(Key, u64)> {
        self.planes.user().unexpected()
    }

    /// Implements `MPI_Imrecv`.
    pub fn imrecv(self, message: Message, buf: RecvBuf) -> Req {
        self.comm
            .engine()
            .pml()
            .imrecv(message, self.comm.rank() as i32, buf)
    }

    #[inline]
    pub fn isend_on(
        self,
        plane: Plane,
        buf: SendBuf,
        dest: u32,
        tag: i32,
        mode: Mode,
    ) -> Result<Sent, Error> {
        let Some(proc) = self.comm.peers().proc(dest) else {
            return Err(self.no_rank(i64::from(dest as i32)));
        };
        let context = self.comm.context().plane(plane);
        let envelope = Envelope {
            context,
            source: self.comm.rank() as i32,
            dest: dest as i32,
            proc,
            tag,
        };
        self.comm.engine().pml().isend(envelope, buf, mode)
    }

    #[inline(always)]
    pub fn irecv_on(
        self,
        plane: Plane,
        buf: impl Into<RecvTarget>,
        source: i32,
        tag: i32,
    ) -> Result<Req, Error> {
        if source != ANY_SOURCE && source as u32 >= self.comm.peers().size() {
            return Err(self.no_rank(i64::from(source)));
        }
        let (pml, key) = (self.comm.engine().pml(), Key::new(source, tag));
        let matching = self.plane(plane);
        Ok(pml.irecv(matching, self.comm.rank() as i32, key, buf))
    }

    /// Fails if a persistent operation cannot have this peer: a rank of the communicator,
    /// `MPI_PROC_NULL`, or `MPI_ANY_SOURCE` if `takes_any` is true.
    pub fn check_peer(self, peer: i32, takes_any: bool) -> Result<(), Error> {
        let is_special = peer == PROC_NULL || (takes_any && peer == ANY_SOURCE);
        match is_special || (peer as u32) < self.comm.peers().size() {
            true => Ok(()),
            false => Err(self.no_rank(i64::from(peer))),
        }
    }

    #[cold]
    pub(super) fn no_rank(self, rank: i64) -> Error {
        CommError::Rank {
            rank,
            size: self.comm.peers().size(),
            comm: match self.comm.is_inter() {
                true => format!("the remote group of {}", self.comm.label()),
                false => self.comm.label(),
            },
        }
        .into()
    }

    #[inline(always)]
    fn plane(self, plane: Plane) -> &'a Rc<Matching> {
        self.planes
            .common(plane)
            .unwrap_or_else(|| self.rare_plane(plane))
    }

    #[cold]
    fn rare_plane(self, plane: Plane) -> &'a Rc<Matching> {
        self.planes.rare(plane, || {
            let context = self.comm.context().plane(plane);
            let pml = self.comm.engine().pml();
            pml.matching_among(context, self.comm.peers())
        })
    }
}
