//! The origin's side of network access: put, get and flush of a window.

#![allow(unsafe_code)]

use crate::Error;
use crate::am::active::{Active, Purpose};
use crate::am::{Peer, Service};
use crate::btl::{Btl, Endpoint, GetError, Region, RemoteMemory, Span};
use crate::datatype::{RecvBuf, SendBuf};
use crate::error::{OscClass, OscError};
use crate::request::Req;
use crate::state::registration::Keys;
use crate::state::remote_members::RemoteMember;
use crate::state::target::Target;
use crate::target_args::TargetArgs;
use crate::win::Win;
use mpi_base::state::WindowNeed;
use std::rc::Rc;

/// Data up to this length in bytes are copied, so a put returns before the network has read them.
const COPIED: usize = 64 << 10;

impl Win {
    /// Returns the network operations of this window, or `None` if its memory is not registered.
    #[inline]
    pub(crate) fn network(&self) -> Option<NetworkAccesses<'_>> {
        let keys = self.state().keys()?;
        Some(NetworkAccesses { win: self, keys })
    }
}

/// The put, get and flush of a window by the network.
#[derive(Clone, Copy)]
pub(crate) struct NetworkAccesses<'a> {
    win: &'a Win,
    keys: &'a Keys,
}

/// The parameters of an access: service, target process, key, offset and length in bytes.
struct Way<'a> {
    service: Rc<Service>,
    peer: Rc<Peer>,
    key: &'a [u8],
    offset: u64,
    len: usize,
}

impl<'a> NetworkAccesses<'a> {
    fn remote(self, target: &Target) -> &'a RemoteMember {
        self.win.state().remote().of(target.rank)
    }

    /// Returns the parameters for the first `bytes` bytes of a target's elements.
    /// Returns `None` if the bytes are not contiguous at the target, or if the target has no key.
    fn way(
        self,
        target: &Target,
        at: u64,
        target_args: &TargetArgs<'_>,
        bytes: i64,
    ) -> Option<Way<'a>> {
        let (first, _) = target_args.datatype.contiguous_bytes(target_args.count)?;
        let key = self.keys.of(target.rank);
        if key.is_empty() || bytes <= 0 {
            return None;
        }
        let service = self.win.service();
        let peer = service.peer(target.proc).ok()?;
        Some(Way {
            service,
            peer,
            key,
            offset: at.checked_add_signed(first)?,
            len: usize::try_from(bytes).ok()?,
        })
    }

    /// Starts an access; waits while the network has no space for it.
    /// Returns `None` if the network refuses the access.
    fn start(
        self,
        target: &Target,
        peer: &Peer,
        purpose: Purpose,
        begin: impl Fn(&dyn RemoteMemory, Endpoint) -> Result<u64, GetError>,
    ) -> Result<Option<u64>, Error> {
        let service = self.win.service();
        loop {
            if service.is_lost(target.proc) {
                return Err(self.win.waits().gone("an access", target));
            }
            self.win.comm().usable()?;
            let Some(memory) = peer.btl().capabilities().remote_memory else {
                return Ok(None);
            };
            match begin(memory, peer.endpoint()) {
                Ok(number) => {
                    let to = (target.rank, target.proc);
                    let win = self.win.downgrade();
                    let active = Active::new(win, to, peer.btl(), number, purpose);
                    self.win
                        .state()
                        .remote()
                        .begins_by_network(self.remote(target));
                    service.add_active(active);
                    return Ok(Some(number));
                }
                Err(GetError::Busy) => {
                    self.win.engine().poll_once();
                }
                // The next iteration fails, because the target is now recorded as lost.
                Err(GetError::PeerGone) => {
                    service.lose(target.proc, "the peer has ended");
                }
                Err(GetError::Forbidden | GetError::BadAddress) => return Ok(None),
            }
        }
    }

    /// Starts a put; the program may reuse the origin buffer after the return.
    /// Returns false if the access must use messages.
    pub fn put(
        self,
        target: &Target,
        at: u64,
        origin: &SendBuf,
        target_args: &TargetArgs<'_>,
    ) -> Result<bool, Error> {
        let bytes = origin
            .bytes()
            .min(target_args.datatype.bytes(target_args.count));
        let Some(way) = self.way(target, at, target_args, bytes) else {
            return Ok(false);
        };
        let in_place = origin
            .contiguous()
            .filter(|data| data.len() >= way.len && way.len > COPIED);
        let mut copy = None;
        let data = match in_place {
            Some(data) => data.as_ptr(),
            None => {
                let mut packed = vec![0; way.len].into_boxed_slice();
                origin.pack_at(0, &mut packed);
                copy.insert(packed).as_ptr()
            }
        };
        let span = Span {
            key: way.key,
            offset: way.offset,
            local: Region {
                address: data.expose_provenance() as u64,
                len: way.len as u64,
            },
        };
        // SAFETY: the data are in `copy`, which `Active` owns until the access has ended,
        // or in the origin buffer; in that case this function waits for the end of the access.
        let begin = |memory: &dyn RemoteMemory, to| unsafe { memory.write(to, span) };
        let Some(number) = self.start(target, &way.peer, Purpose::Put(copy), begin)? else {
            return Ok(false);
        };
        if way.len > COPIED {
            let is_over = || !way.service.is_active(way.peer.btl(), number);
            self.wait(target, is_over);
        }
        Ok(true)
    }

    /// Starts a get. Returns its request, or `None` if the access must use messages.
    pub fn get(
        self,
        target: &Target,
        at: u64,
        origin: &mut RecvBuf,
        target_args: &TargetArgs<'_>,
    ) -> Result<Option<Req>, Error> {
        let bytes = target_args.datatype.bytes(target_args.count);
        let Some(way) = self.way(target, at, target_args, bytes) else {
            return Ok(None);
        };
        let Some(room) = origin.contiguous().filter(|room| room.len() >= way.len) else {
            return Ok(None);
        };
        let span = Span {
            key: way.key,
            offset: way.offset,
            local: Region {
                address: room.as_mut_ptr().expose_provenance() as u64,
                len: way.len as u64,
            },
        };
        let (token, req) = way.service.expect_from_network(self.win, target, origin);
        // SAFETY: only this access uses the origin buffer until the epoch ends.
        // The end of the epoch waits for the access, also if the target is lost.
        let begin = |memory: &dyn RemoteMemory, from| unsafe { memory.read(from, span) };
        match self.start(target, &way.peer, Purpose::Get(token), begin) {
            Ok(Some(_)) => Ok(Some(req)),
            refused => {
                way.service.detach(&req);
                way.service.finish(token, Ok(()));
                refused.map(|_| None)
            }
        }
    }

    /// Waits until all network accesses to these members are complete at target and origin.
    pub fn flush(self, targets: &[&Target]) -> Result<(), Error> {
        let used = |target: &&&Target| self.remote(target).network.is_used.get();
        let targets: Vec<&Target> = targets.iter().filter(used).copied().collect();
        let mut outcome = Ok(());
        for target in &targets {
            let remote = self.remote(target);
            self.wait(target, || remote.network.active.get() == 0);
            if remote.network.has_put.replace(false) {
                let peer = self.win.service().peer(target.proc)?;
                let begin = |memory: &dyn RemoteMemory, to| memory.flush(to);
                let started = self.start(target, &peer, Purpose::Flush, begin);
                outcome = outcome.and(match started {
                    Ok(Some(_)) => Ok(()),
                    Ok(None) => Err(self.failed(target).into()),
                    Err(error) => Err(error),
                });
            }
        }
        for target in &targets {
            let remote = self.remote(target);
            self.wait(target, || remote.network.active.get() == 0);
            remote.network.is_used.set(false);
        }
        outcome
    }

    /// Waits until `is_over` returns true. Accesses to a lost target end too, by cancellation.
    fn wait(self, target: &Target, is_over: impl Fn() -> bool) {
        if !is_over() {
            let publish = || self.win.waits().publish_wait(target, WindowNeed::Answer);
            self.win.engine().wait_publishing(is_over, publish);
        }
    }

    /// Returns the error for a network access that has started but failed.
    fn failed(self, target: &Target) -> OscError {
        let sentence = format!(
            "the network has not completed accesses of rank {} to the memory of rank {} through {}",
            self.win.rank(),
            target.rank,
            self.win.label()
        );
        OscError::new(OscClass::Gone, sentence)
    }
}

impl Service {
    /// Completes all network accesses that have ended. Returns true if there was at least one.
    #[cold]
    pub(crate) fn end_by_network(&self) -> bool {
        let ended = self.active().take_ended(|proc| self.is_lost(proc));
        let moved = !ended.is_empty();
        for (active, success) in ended {
            let Some(win) = active.win.upgrade() else {
                continue;
            };
            let (Some(target), Some(network)) = (
                win.state().targets().get(active.rank as usize),
                win.network(),
            ) else {
                continue;
            };
            let remote = network.remote(target);
            remote.network.active.set(remote.network.active.get() - 1);
            let outcome = match success {
                true => Ok(()),
                false => Err(network.failed(target)),
            };
            match active.purpose {
                Purpose::Get(token) => self.finish(token, outcome),
                Purpose::Put(_) => {
                    remote.network.has_put.set(true);
                    if let Err(error) = outcome {
                        remote.refused.borrow_mut().get_or_insert(error);
                    }
                }
                Purpose::Flush => {
                    if let Err(error) = outcome {
                        remote.refused.borrow_mut().get_or_insert(error);
                    }
                }
            }
            win.engine().pml().requests().nudge();
        }
        moved
    }

    /// Returns true if the network access with this number has not ended.
    pub(crate) fn is_active(&self, btl: &Rc<dyn Btl>, number: u64) -> bool {
        self.active().has(btl, number)
    }
}
