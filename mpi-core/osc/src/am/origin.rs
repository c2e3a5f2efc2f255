//! The origin's side of active messages: requests for accesses, and waits for replies.

use super::super::runs;
use super::super::target_args::TargetArgs;
use super::super::win::Win;
use super::wire::{self, put_word};
use super::{ASKED, Fetch, QUEUED};
use crate::Error;
use crate::btl::{Am, Header};
use crate::datatype::{Named, RecvBuf, SendBuf};
use crate::direct::apply::Combine;
use crate::error::{OscClass, OscError};
use crate::op::Predefined;
use crate::request::Req;
use crate::state::remote_members::RemoteMember;
use crate::state::target::Target;
use mpi_base::state::WindowNeed;
use mpi_base::window::{Mode, has_reached};
use std::ops::Range;

/// The size in bytes of the two 64-bit words before the runs of a message.
const FRONT: usize = 2 * size_of::<u64>();

impl Win {
    /// Returns the operations of this window that use active messages.
    #[inline(always)]
    pub(crate) fn messages(&self) -> OriginMessages<'_> {
        OriginMessages { win: self }
    }
}

/// The accesses and lock requests of a window that use active messages.
#[derive(Clone, Copy)]
pub(crate) struct OriginMessages<'a> {
    win: &'a Win,
}

impl<'a> OriginMessages<'a> {
    fn remote(self, target: &Target) -> &'a RemoteMember {
        self.win.state().remote().of(target.rank)
    }

    /// Sends a message to a member; waits first while more than `QUEUED` bytes are queued for it.
    fn send_to(
        self,
        target: &Target,
        am: Am,
        header: Header,
        payload: Vec<u8>,
    ) -> Result<(), Error> {
        let service = self.win.service();
        let named = |e: OscError| {
            let sentence = format!(
                "rank {} cannot reach rank {} of {}: {e}",
                self.win.rank(),
                target.rank,
                self.win.label()
            );
            Error::from(OscError::new(e.class, sentence))
        };
        let peer = service.peer(target.proc).map_err(named)?;
        if peer.queued.get() > QUEUED {
            self.win
                .waits()
                .wait_for(("an access", WindowNeed::Answer), target, || {
                    peer.queued.get() <= QUEUED / 2
                })?;
        }
        if service.is_lost(target.proc) {
            return Err(self.win.waits().gone("an access", target));
        }
        service
            .send(target.proc, am, header, payload)
            .map_err(named)
    }

    fn budget(self, target: &Target) -> Result<usize, Error> {
        let peer = self.win.service().peer(target.proc)?;
        Ok(peer.max.saturating_sub(FRONT).max(256))
    }

    /// Puts the packed bytes `range` of the origin buffer.
    pub(crate) fn put(
        self,
        target: &Target,
        (at, range): (u64, Range<i64>),
        origin: &SendBuf,
        target_args: &TargetArgs<'_>,
    ) -> Result<(), Error> {
        let all = target_args.datatype.bytes(target_args.count);
        let range = range.start..range.end.min(all);
        let first = range.start;
        let runs = runs::of_range(target_args.datatype, target_args.count, range);
        let budget = self.budget(target)?;
        self.win.state().remote().begins(self.remote(target));
        wire::pieces(runs, at, 1, budget, |piece| {
            let mut payload = piece.runs;
            let start = payload.len();
            payload.resize(start + piece.bytes, 0);
            origin.pack_at(first + piece.position as i64, &mut payload[start..]);
            self.send_to(target, wire::PUT, [self.win.id(), 0], payload)
        })
    }

    /// Flow control of gets: waits while more than `ASKED` requested bytes have not arrived.
    fn wait_for_replies(self, target: &Target) -> Result<(), Error> {
        let remote = self.remote(target);
        if remote.due.get() <= ASKED {
            return Ok(());
        }
        self.win
            .waits()
            .wait_for(("an access", WindowNeed::Answer), target, || {
                remote.due.get() <= ASKED / 2
            })
    }

    /// Registers a fetch of `bytes` bytes into `buf`. Returns its token and request.
    fn expect(self, target: &Target, buf: &RecvBuf, bytes: u64) -> (u64, Req) {
        let service = self.win.service();
        let req = service.begin(self.win.engine());
        let remote = self.remote(target);
        self.win.state().remote().begins(remote);
        remote.due.set(remote.due.get() + bytes);
        let fetch = Fetch {
            win: self.win.downgrade(),
            rank: target.rank,
            proc: target.proc,
            buf: buf.clone(),
            left: bytes,
            req: Some(req.clone()),
        };
        let token = service.fetches.borrow_mut().insert(fetch);
        (token, req)
    }

    /// Gets the packed bytes `range` of the target's elements.
    pub(crate) fn get(
        self,
        target: &Target,
        (at, range): (u64, Range<i64>),
        origin: &RecvBuf,
        target_args: &TargetArgs<'_>,
    ) -> Result<Option<Req>, Error> {
        let bytes = range.end - range.start;
        if bytes <= 0 {
            return Ok(None);
        }
        self.wait_for_replies(target)?;
        let first = range.start as u64;
        let runs = runs::of_range(target_args.datatype, target_args.count, range);
        let (token, req) = self.expect(target, origin, bytes as u64);
        // A get request has runs but no data, and its reply has data but no runs.
        // So a get is split only if its list of runs is long.
        let budget = self.budget(target)?;
        let outcome = wire::pieces(runs, at, 1, budget, |piece| {
            let mut payload = Vec::with_capacity(FRONT + piece.runs.len());
            put_word(&mut payload, first + piece.position);
            payload.extend_from_slice(&piece.runs);
            self.send_to(target, wire::GET, [self.win.id(), token], payload)
        });
        self.unless_failed(token, req, outcome)
    }

    /// Returns the request of a fetch. If the message to the target could not be sent,
    /// cancels the fetch and returns the error.
    fn unless_failed(
        self,
        token: u64,
        req: Req,
        outcome: Result<(), Error>,
    ) -> Result<Option<Req>, Error> {
        match outcome {
            Ok(()) => Ok(Some(req)),
            Err(e) => {
                let service = self.win.service();
                service.detach(&req);
                service.finish(token, Ok(()));
                Err(e)
            }
        }
    }

    /// Combines the packed bytes `range` of the target's elements with those of `input`.
    pub(crate) fn accumulate(
        self,
        target: &Target,
        (at, range): (u64, Range<i64>),
        combine: &Combine,
        input: &[u8],
        target_args: &TargetArgs<'_>,
        result: Option<&RecvBuf>,
    ) -> Result<Option<Req>, Error> {
        let reads_nothing = combine.op() == Predefined::NoOp;
        let all = match (reads_nothing, result) {
            (true, Some(result)) => result
                .bytes()
                .min(target_args.datatype.bytes(target_args.count)),
            _ => input.len() as i64,
        };
        let range = range.start..range.end.min(all);
        let (first, bytes) = (range.start as u64, range.end - range.start);
        if bytes <= 0 {
            return Ok(None);
        }
        let budget = self.budget(target)?;
        let waits = match result {
            Some(result) => {
                self.wait_for_replies(target)?;
                Some(self.expect(target, result, bytes as u64))
            }
            None => {
                self.win.state().remote().begins(self.remote(target));
                None
            }
        };
        let token = waits.as_ref().map_or(0, |(token, _)| *token);
        let operation = wire::operation(combine.op(), combine.named().info().handle);
        let runs = runs::of_range(target_args.datatype, target_args.count, range);
        let outcome = wire::pieces(runs, at, combine.size(), budget, |piece| {
            let mut payload = Vec::with_capacity(FRONT + piece.runs.len() + piece.bytes);
            put_word(&mut payload, first + piece.position);
            put_word(&mut payload, operation);
            payload.extend_from_slice(&piece.runs);
            if !reads_nothing {
                let from = (first + piece.position) as usize;
                payload.extend_from_slice(&input[from..from + piece.bytes]);
            }
            self.send_to(target, wire::ACCUMULATE, [self.win.id(), token], payload)
        });
        match waits {
            Some((token, req)) => self.unless_failed(token, req, outcome),
            None => outcome.map(|()| None),
        }
    }

    pub(crate) fn swap(
        self,
        target: &Target,
        (at, named): (u64, Named),
        [compare, new]: [&[u8]; 2],
        result: &RecvBuf,
    ) -> Result<(), Error> {
        self.wait_for_replies(target)?;
        let (token, req) = self.expect(target, result, new.len() as u64);
        let mut payload = Vec::with_capacity(FRONT + 2 * new.len());
        put_word(&mut payload, at);
        put_word(&mut payload, u64::from(named.info().handle));
        payload.extend_from_slice(compare);
        payload.extend_from_slice(new);
        let outcome = self.send_to(target, wire::SWAP, [self.win.id(), token], payload);
        let req = self.unless_failed(token, req, outcome)?;
        self.win.accumulates().give_up(req);
        Ok(())
    }

    /// Waits until all accesses to one or all members are complete at the target and at the origin.
    pub(crate) fn flush(self, only: Option<&Target>) -> Result<(), Error> {
        if self.win.state().remote().is_idle() {
            return Ok(());
        }
        let all = self.win.state().targets();
        let chosen = match only {
            Some(target) => std::slice::from_ref(target),
            None => all,
        };
        let busy: Vec<&Target> = chosen
            .iter()
            .filter(|target| self.remote(target).sent.get())
            .collect();
        let mut outcome = match self.win.network() {
            Some(network) => network.flush(&busy),
            None => Ok(()),
        };
        let by_message = |target: &&&Target| self.remote(target).by_message.get();
        let (messaged, others): (Vec<&Target>, Vec<&Target>) =
            busy.into_iter().partition(|target| by_message(&target));
        for target in &messaged {
            let remote = self.remote(target);
            remote.asked.set(remote.asked.get().wrapping_add(1));
            let number = u64::from(remote.asked.get());
            let asked = self.send_to(target, wire::FLUSH, [self.win.id(), number], Vec::new());
            outcome = outcome.and(asked);
        }
        for target in messaged {
            let remote = self.remote(target);
            remote.by_message.set(false);
            let number = remote.asked.get();
            let done = || has_reached(remote.answered.get(), number) && remote.due.get() == 0;
            outcome = outcome.and(self.win.waits().wait_for(
                ("a flush", WindowNeed::Answer),
                target,
                done,
            ));
            outcome = outcome.and(self.end(remote));
        }
        for target in others {
            outcome = outcome.and(self.end(self.remote(target)));
        }
        outcome
    }

    /// Completes a flush of the accesses to a member.
    /// Fails if the member has refused an access since the last flush.
    fn end(self, remote: &RemoteMember) -> Result<(), Error> {
        self.win.state().remote().ends(remote);
        match remote.refused.take() {
            Some(refused) => Err(refused.into()),
            None => Ok(()),
        }
    }

    pub(crate) fn lock(self, target: &Target, mode: Mode) -> Result<(), Error> {
        let remote = self.remote(target);
        remote.wanted.set(remote.wanted.get().wrapping_add(1));
        let number = remote.wanted.get();
        let exclusive = u64::from(mode == Mode::Exclusive);
        self.send_to(target, wire::LOCK, [self.win.id(), exclusive], Vec::new())?;
        self.win
            .waits()
            .wait_for(("MPI_Win_lock", WindowNeed::Lock), target, || {
                has_reached(remote.granted.get(), number) || remote.lock_refused.borrow().is_some()
            })?;
        match remote.lock_refused.take() {
            None => Ok(()),
            Some(refused) => {
                // No grant follows a refusal, so `wanted` must not include the refused request:
                // the next grant then belongs to the next request.
                remote.wanted.set(remote.granted.get());
                Err(refused.into())
            }
        }
    }

    pub(crate) fn unlock(self, target: &Target, _: Mode) -> Result<(), Error> {
        self.send_to(target, wire::UNLOCK, [self.win.id(), 0], Vec::new())
    }

    pub(crate) fn post(self, origin: &Target) -> Result<(), Error> {
        self.send_to(origin, wire::POST, [self.win.id(), 0], Vec::new())
    }

    pub(crate) fn complete(self, target: &Target) -> Result<(), Error> {
        self.send_to(target, wire::COMPLETE, [self.win.id(), 0], Vec::new())
    }

    /// Handles the message with which a member refuses a lock request.
    pub(crate) fn on_lock_refused(self, rank: u32, error: OscError) {
        let remote = self.win.state().remote().of(rank);
        remote.lock_refused.borrow_mut().get_or_insert(error);
        self.win.engine().pml().requests().nudge();
    }

    /// Handles the message with which a member refuses an access.
    pub(crate) fn on_refusal(self, rank: u32, class: OscClass, sentence: String) {
        let remote = self.win.state().remote().of(rank);
        let error = OscError::new(class, sentence);
        remote.refused.borrow_mut().get_or_insert(error);
    }
}
