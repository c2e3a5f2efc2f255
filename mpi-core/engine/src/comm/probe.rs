//! Probes of a communicator: a nonblocking probe tests for a matching message, a blocking probe waits for one.

use super::Comm;
use super::planes::Planes;
use crate::Error;
use crate::pml::{Key, Matching, Message, Plane};
use crate::request::{ANY_SOURCE, PROC_NULL, Status};
use std::rc::Rc;

/// The probes of a communicator.
#[derive(Clone, Copy)]
pub struct Probes<'a> {
    comm: &'a Comm,
    planes: &'a Planes,
}

impl<'a> Probes<'a> {
    #[inline(always)]
    pub(super) fn new(comm: &'a Comm, planes: &'a Planes) -> Probes<'a> {
        Probes { comm, planes }
    }

    pub(super) fn comm(self) -> &'a Comm {
        self.comm
    }

    /// Implements `MPI_Iprobe`.
    pub fn iprobe(self, source: i32, tag: i32) -> Result<Option<Status>, Error> {
        self.check_revoked()?;
        if source == PROC_NULL {
            return Ok(Some(Status::PROC_NULL));
        }
        let look = |key| self.peek(key);
        self.find_now(Key::new(source, tag), look, |status| *status)
    }

    /// Implements `MPI_Probe`.
    pub fn probe(self, source: i32, tag: i32) -> Result<Status, Error> {
        self.check_revoked()?;
        if source == PROC_NULL {
            return Ok(Status::PROC_NULL);
        }
        let look = |key| self.peek(key);
        self.find(Key::new(source, tag), look, |status| *status)
    }

    /// `MPI_Improbe`; for source `MPI_PROC_NULL` the result is `Probed::NoProc`.
    pub fn improbe(self, source: i32, tag: i32) -> Result<Option<Probed>, Error> {
        self.check_revoked()?;
        if source == PROC_NULL {
            return Ok(Some(Probed::NoProc));
        }
        let (asked, look) = (Key::new(source, tag), |key| self.pick(key));
        let found = self.find_now(asked, look, |message| message.status);
        Ok(found?.map(Probed::Message))
    }

    /// Implements `MPI_Mprobe`.
    pub fn mprobe(self, source: i32, tag: i32) -> Result<Probed, Error> {
        self.check_revoked()?;
        if source == PROC_NULL {
            return Ok(Probed::NoProc);
        }
        let (asked, look) = (Key::new(source, tag), |key| self.pick(key));
        let message = self.find(asked, look, |message| message.status);
        Ok(Probed::Message(message?))
    }

    #[inline(always)]
    fn peek(self, key: Key) -> Option<Status> {
        self.comm.engine().pml().iprobe(self.matching(), key)
    }

    fn pick(self, key: Key) -> Option<Message> {
        self.comm.engine().pml().improbe(self.matching(), key)
    }

    /// Returns an error if no remaining process can send a message that the probe would find.
    #[inline(always)]
    fn in_vain(self, source: i32, tag: i32) -> Result<(), Error> {
        match self.comm.is_sound() && !self.comm.engine().pml().has_losses() {
            true => Ok(()),
            false => self.in_vain_after_failures(source, tag),
        }
    }

    #[cold]
    fn in_vain_after_failures(self, source: i32, tag: i32) -> Result<(), Error> {
        let pml = self.comm.engine().pml();
        if let Some(error) = pml
            .termination()
            .no_sender(self.matching(), Key::new(source, tag))
        {
            return Err(error.into());
        }
        self.check_revoked()?;
        match source {
            ANY_SOURCE if !self.comm.is_sound() => {
                let error = self
                    .comm
                    .failures()
                    .unacknowledged()
                    .or_else(|| self.comm.failures().no_sender());
                error.map_or(Ok(()), |e| Err(e.into()))
            }
            _ => Ok(()),
        }
    }

    /// Looks for a message; if there is none, makes progress and looks again.
    #[inline(always)]
    pub(super) fn look_for<T>(
        self,
        look: impl Fn() -> Option<T>,
        source: i32,
        tag: i32,
    ) -> Result<Option<T>, Error> {
        // If progress has done no work, no new message can have arrived.
        let mut found = look();
        if found.is_none() && self.comm.engine().poll_once() {
            found = look();
        }
        if found.is_none() {
            self.in_vain(source, tag)?;
        }
        Ok(found)
    }

    /// Looks for a message until one is found, or no process is left that could send it.
    pub(super) fn wait_for<T>(
        self,
        look: impl Fn() -> Option<T>,
        source: i32,
        tag: i32,
    ) -> Result<T, Error> {
        let mut found = None;
        loop {
            let mut vain = Ok(());
            let done = || {
                // `done` may be called again after a message was found; the message must be kept, since a matched probe has removed it from the queue.
                if found.is_none() {
                    found = look();
                    vain = self.in_vain(source, tag);
                }
                found.is_some() || vain.is_err()
            };
            let context = self.comm.context().plane(Plane::User);
            let tell = || {
                let key = Key::new(source, tag);
                self.comm
                    .engine()
                    .published()
                    .waits_for_message(context, key, 0);
            };
            self.comm.engine().wait_publishing(done, tell);
            match found {
                Some(found) => return Ok(found),
                None => vain?,
            }
        }
    }

    fn matching(self) -> &'a Rc<Matching> {
        self.planes.user()
    }

    #[inline]
    fn check_revoked(self) -> Result<(), Error> {
        match self.comm.is_sound() {
            true => Ok(()),
            false => self.comm.failures().error_if_revoked(),
        }
    }
}

/// The result of a matched probe.
pub enum Probed {
    Message(Message),
    /// The source was `MPI_PROC_NULL`: `MPI_MESSAGE_NO_PROC`.
    NoProc,
}
