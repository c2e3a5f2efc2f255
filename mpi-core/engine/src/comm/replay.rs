//! Receives and probes of a run that is recorded or replayed: what they find is written down, or was ([`crate::record`]).

use super::Comm;
use crate::Error;
use crate::datatype::Room;
use crate::pml::Key;
use crate::pml::Plane;
use crate::record::{Asker, Script};
use crate::request::{ANY_SOURCE, ANY_TAG, Req, Status};

impl Comm {
    #[inline]
    pub(super) fn script(&self) -> Option<&Script> {
        self.engine().script()
    }

    #[cold]
    pub(super) fn irecv_scripted(
        &self,
        script: &Script,
        buf: Room,
        source: i32,
        tag: i32,
    ) -> Result<Req, Error> {
        let key = script.posts(Key::new(source, tag))?;
        let req = self.irecv_on(Plane::User, buf, key.source(), key.tag())?;
        script.posted(req.id(), key);
        Ok(req)
    }

    /// A probe that does not wait.
    #[cold]
    pub(super) fn probe_replayed<T>(
        &self,
        script: &Script,
        (source, tag): (i32, i32),
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
                    self.engine().poll_once();
                    Ok(None)
                }
            };
        }
        let found = self.look_for(|| look(Key::new(source, tag)), source, tag)?;
        match found.as_ref().map(status) {
            Some(status) => script.found(ASKER, status.source, status.tag)?,
            None => script.found_nothing(ASKER)?,
        }
        Ok(found)
    }

    /// A probe that waits; without a wildcard it is no decision.
    #[cold]
    pub(super) fn wait_scripted<T>(
        &self,
        script: &Script,
        (source, tag): (i32, i32),
        look: impl Fn(Key) -> Option<T>,
        status: impl Fn(&T) -> Status,
    ) -> Result<T, Error> {
        const ASKER: Asker = Asker::Probe;
        let asked = Key::new(source, tag);
        let is_wild = source == ANY_SOURCE || tag == ANY_TAG;
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
