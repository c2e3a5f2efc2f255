//! Receives and probes in a recorded or replayed run ([`crate::record`]): the recording stores their matches, and the replay reads them.
//!
//! In a normal run, each receive or probe only tests a flag for this (a plain load and a branch).

use super::{P2p, Probes};
use crate::Error;
use crate::datatype::RecvTarget;
use crate::pml::{Key, Plane};
use crate::record::{Asker, Script};
use crate::request::{ANY_SOURCE, ANY_TAG, Req, Status};

impl P2p<'_> {
    /// Posts a receive of the program; a replay uses the recorded message's source and tag.
    #[inline(always)]
    pub(super) fn irecv_of_program(
        self,
        buf: impl Into<RecvTarget>,
        source: i32,
        tag: i32,
    ) -> Result<Req, Error> {
        if let Some(script) = self.comm().engine().script() {
            return self.irecv_scripted(script, buf.into(), source, tag);
        }
        self.irecv_on(Plane::User, buf, source, tag)
    }

    #[cold]
    fn irecv_scripted(
        self,
        script: &Script,
        buf: RecvTarget,
        source: i32,
        tag: i32,
    ) -> Result<Req, Error> {
        let key = script.posts(Key::new(source, tag))?;
        let req = self.irecv_on(Plane::User, buf, key.source(), key.tag())?;
        script.posted(req.id(), key);
        Ok(req)
    }
}

impl Probes<'_> {
    /// Nonblocking probe: returns a matching message, if there is one.
    #[inline(always)]
    pub(super) fn find_now<T>(
        self,
        asked: Key,
        look: impl Fn(Key) -> Option<T>,
        status: impl Fn(&T) -> Status,
    ) -> Result<Option<T>, Error> {
        match self.comm().engine().script() {
            Some(script) => self.find_now_scripted(script, asked, look, status),
            None => self.look_for(|| look(asked), asked.source(), asked.tag()),
        }
    }

    /// Blocking probe: waits for a matching message.
    pub(super) fn find<T>(
        self,
        asked: Key,
        look: impl Fn(Key) -> Option<T>,
        status: impl Fn(&T) -> Status,
    ) -> Result<T, Error> {
        match self.comm().engine().script() {
            Some(script) => self.find_scripted(script, asked, look, status),
            None => self.wait_for(|| look(asked), asked.source(), asked.tag()),
        }
    }

    #[cold]
    fn find_now_scripted<T>(
        self,
        script: &Script,
        asked: Key,
        look: impl Fn(Key) -> Option<T>,
        status: impl Fn(&T) -> Status,
    ) -> Result<Option<T>, Error> {
        const ASKER: Asker = Asker::Iprobe;
        if script.is_replay() {
            return match script.probed(ASKER)? {
                Some(key) => self
                    .wait_for(|| look(key), key.source(), key.tag())
                    .map(Some),
                None => {
                    self.comm().engine().poll_once();
                    Ok(None)
                }
            };
        }
        let found = self.look_for(|| look(asked), asked.source(), asked.tag())?;
        match found.as_ref().map(status) {
            Some(status) => script.found(ASKER, status.source, status.tag)?,
            None => script.found_nothing(ASKER)?,
        }
        Ok(found)
    }

    /// A blocking probe without a wildcard makes no nondeterministic decision, so it is not recorded.
    #[cold]
    fn find_scripted<T>(
        self,
        script: &Script,
        asked: Key,
        look: impl Fn(Key) -> Option<T>,
        status: impl Fn(&T) -> Status,
    ) -> Result<T, Error> {
        const ASKER: Asker = Asker::Probe;
        let is_wild = asked.source() == ANY_SOURCE || asked.tag() == ANY_TAG;
        let recorded = match script.is_replay() && is_wild {
            true => script.probed(ASKER)?,
            false => None,
        };
        let key = recorded.unwrap_or(asked);
        let found = self.wait_for(|| look(key), key.source(), key.tag())?;
        if is_wild && !script.is_replay() {
            let status = status(&found);
            script.found(ASKER, status.source, status.tag)?;
        }
        Ok(found)
    }
}
