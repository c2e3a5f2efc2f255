//! The target's side of active messages: executes requests. Also handles replies at the origin.
//!
//! The progress engine calls these functions, in any MPI call of this process.
//! The only blocking operation is a stripe lock, which its holder keeps briefly.
#![allow(unsafe_code)]

use super::super::win::Win;
use super::wire::{self, Runs, put_word, take_word};
use super::{Service, Waiting};
use crate::access::{self, Part};
use crate::btl::{Am, Header, ProcId};
use crate::datatype::{Datatype, Named, Run};
use crate::direct::apply::{self, Combine, Reach};
use crate::error::{OscClass, OscError};
use crate::op::Predefined;
use mpi_base::window::Mode;

/// Returns the payload of a [`wire::REFUSED`] message.
pub(crate) fn refusal(token: u64, error: &OscError) -> Vec<u8> {
    let mut payload = Vec::new();
    put_word(&mut payload, token);
    // Error texts are cut to this length in bytes.
    const LONGEST: usize = 1000;
    let mut end = error.sentence.len().min(LONGEST);
    while !error.sentence.is_char_boundary(end) {
        end -= 1;
    }
    payload.extend_from_slice(&error.sentence.as_bytes()[..end]);
    payload
}

impl Service {
    /// Handles a received message: executes a request, or records a reply or a notification.
    pub(crate) fn serve(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        if am == wire::REPLY {
            return self.on_reply(from, header, payload);
        }
        let Some(win) = self.window(header[0]) else {
            return self.serve_without_window(from, am, header, payload);
        };
        let Some(rank) = win.group().rank_of(from) else {
            return self.protocol_error();
        };
        let remote = win.state().remote().of(rank);
        let count = |cell: &std::cell::Cell<u32>| cell.set(cell.get().wrapping_add(1));
        match am {
            wire::PUT => self.answer(&win, from, 0, win.served().put(payload).map(|()| None)),
            wire::GET => {
                let served = self.serve_get(&win, from, header[1], payload);
                self.answer(&win, from, header[1], served.map(|()| None));
            }
            wire::ACCUMULATE => {
                let served = win.served().accumulate(payload, header[1] != 0);
                self.answer(&win, from, header[1], served);
            }
            wire::SWAP => {
                let served = win.served().swap(payload).map(|old| Some((0, old)));
                self.answer(&win, from, header[1], served);
            }
            wire::FLUSH => {
                let answer = [header[0], header[1]];
                self.reply(from, wire::FLUSHED, answer, Vec::new());
            }
            wire::FLUSHED => remote.answered.set(header[1] as u32),
            wire::LOCK => self.on_lock(&win, rank, header[1] != 0),
            wire::GRANTED => count(&remote.granted),
            wire::UNLOCK => match remote.holds.take() {
                Some(mode) => win.state().control().leave(win.memory().my_index(), mode),
                None => self.protocol_error(),
            },
            wire::POST => count(&remote.posts),
            wire::COMPLETE => count(&remote.completions),
            wire::REFUSED => self.on_refused(&win, rank, header, payload),
            _ => self.protocol_error(),
        }
    }

    pub(crate) fn protocol_error(&self) {
        self.protocol_errors.set(self.protocol_errors.get() + 1);
    }

    /// Sends a reply. If the receiver is unreachable, the next call that waits for it fails.
    pub(crate) fn reply(&self, to: ProcId, am: Am, header: Header, payload: Vec<u8>) {
        let _ = self.send(to, am, header, payload);
    }

    /// Sends the old elements and their position in the result, or the reason for a refusal.
    fn answer(
        &self,
        win: &Win,
        to: ProcId,
        token: u64,
        served: Result<Option<(u64, Vec<u8>)>, OscError>,
    ) {
        match served {
            Ok(None) => {}
            Ok(Some((position, old))) => self.reply(to, wire::REPLY, [token, position], old),
            Err(e) => {
                let header = [win.id(), e.class as u64];
                self.reply(to, wire::REFUSED, header, refusal(token, &e));
            }
        }
    }

    fn serve_get(
        &self,
        win: &Win,
        to: ProcId,
        token: u64,
        mut payload: &[u8],
    ) -> Result<(), OscError> {
        let position = take_word(&mut payload).ok_or_else(|| win.served().nonsense())?;
        let runs = Runs::take(&mut payload).ok_or_else(|| win.served().nonsense())?;
        let span = runs.span();
        let accessed = (runs.from(span.start), runs.bytes());
        let own = win.attached().own_memory(&span, accessed)?;
        let memory = own.memory;
        let Reach::Here(start) = memory.reach else {
            return Err(win.served().nonsense());
        };
        let longest = self.peer(to)?.max;
        let mut position = position;
        let mut piece: Vec<u8> = Vec::new();
        for run in runs.from(span.start) {
            let (mut offset, mut left) = (run.offset, run.len as usize);
            while left > 0 {
                let len = left.min(longest - piece.len());
                let at = start.wrapping_offset(offset as isize);
                // SAFETY: `own_memory` checked that all bytes of the runs are inside the window; concurrent conflicting accesses are the program's responsibility.
                piece.extend_from_slice(unsafe { std::slice::from_raw_parts(at, len) });
                offset += len as i64;
                left -= len;
                if piece.len() == longest {
                    let full = std::mem::take(&mut piece);
                    let next = position + full.len() as u64;
                    self.reply(to, wire::REPLY, [token, position], full);
                    position = next;
                }
            }
        }
        if !piece.is_empty() {
            self.reply(to, wire::REPLY, [token, position], piece);
        }
        Ok(())
    }

    fn on_reply(&self, from: ProcId, [token, position]: Header, data: &[u8]) {
        let over = {
            let mut fetches = self.fetches.borrow_mut();
            let fetch = fetches.get(token).filter(|fetch| fetch.proc == from);
            let Some(fetch) = fetch else {
                drop(fetches);
                return self.protocol_error();
            };
            let fits = data.len() as u64 <= fetch.left && i64::try_from(position).is_ok();
            if !fits {
                drop(fetches);
                return self.protocol_error();
            }
            fetch.buf.unpack_at(position as i64, data);
            fetch.left -= data.len() as u64;
            if let Some(win) = fetch.win.upgrade() {
                let remote = win.state().remote().of(fetch.rank);
                remote
                    .due
                    .set(remote.due.get().saturating_sub(data.len() as u64));
            }
            fetch.left == 0
        };
        if over {
            self.finish(token, Ok(()));
        }
    }

    fn on_refused(&self, win: &Win, rank: u32, header: Header, mut payload: &[u8]) {
        let Some(token) = take_word(&mut payload) else {
            return self.protocol_error();
        };
        let class = OscClass::from_number(header[1]);
        let sentence = String::from_utf8_lossy(payload).into_owned();
        if token == wire::LOCK_TOKEN {
            return win
                .messages()
                .on_lock_refused(rank, OscError::new(class, sentence));
        }
        let ours = self
            .fetches
            .borrow_mut()
            .get(token)
            .is_some_and(|fetch| fetch.rank == rank);
        match ours {
            true => self.finish(token, Err(OscError::new(class, sentence))),
            false => win.messages().on_refusal(rank, class, sentence),
        }
    }

    fn on_lock(&self, win: &Win, rank: u32, exclusive: bool) {
        let mode = match exclusive {
            true => Mode::Exclusive,
            false => Mode::Shared,
        };
        let index = win.memory().my_index();
        let waiting = Waiting {
            win: win.downgrade(),
            index,
            rank,
            ticket: win.state().control().draw(index, mode),
        };
        self.waiting.borrow_mut().push(waiting);
        self.grant_waiting();
        if !self.waiting.borrow().is_empty() {
            self.ask_for_turns();
        }
    }

    /// Grants all queued lock requests whose tickets are admitted.
    /// Returns true if at least one request was granted.
    pub(crate) fn grant_waiting(&self) -> bool {
        let mut all = self.waiting.take();
        let before = all.len();
        all.retain(|waiting| {
            let Some(win) = waiting.win.upgrade() else {
                return false;
            };
            let control = win.state().control();
            if !control.admits(waiting.index, waiting.ticket) {
                return true;
            }
            control.enter(waiting.index, waiting.ticket);
            let remote = win.state().remote().of(waiting.rank);
            remote.holds.set(Some(waiting.ticket.mode()));
            let proc = win.state().targets()[waiting.rank as usize].proc;
            self.reply(proc, wire::GRANTED, [win.id(), 0], Vec::new());
            false
        });
        let granted = all.len() < before;
        let mut list = self.waiting.borrow_mut();
        all.append(&mut list);
        *list = all;
        granted
    }
}

impl Win {
    /// Returns the handlers for requests of other members to this window.
    #[inline(always)]
    pub(crate) fn served(&self) -> ServedRequests<'_> {
        ServedRequests { win: self }
    }
}

/// The handlers for requests of other members, which access this process's memory.
#[derive(Clone, Copy)]
pub(crate) struct ServedRequests<'a> {
    win: &'a Win,
}

impl<'a> ServedRequests<'a> {
    fn nonsense(self) -> OscError {
        let sentence = format!(
            "rank {} of {} has received a message that makes no sense",
            self.win.rank(),
            self.win.label()
        );
        OscError::new(OscClass::Range, sentence)
    }

    fn put(self, mut payload: &[u8]) -> Result<(), OscError> {
        let runs = Runs::take(&mut payload).ok_or_else(|| self.nonsense())?;
        let span = runs.span();
        if payload.len() as u64 != runs.bytes() {
            return Err(self.nonsense());
        }
        let accessed = (runs.from(span.start), runs.bytes());
        let own = (self.win.attached()).own_memory(&span, accessed)?;
        let memory = own.memory;
        let Reach::Here(start) = memory.reach else {
            return Err(self.nonsense());
        };
        for run in runs.from(span.start) {
            let (data, rest) = payload.split_at(run.len as usize);
            let at = start.wrapping_offset(run.offset as isize);
            // SAFETY: `own_memory` checked that all bytes of the runs are inside the window; concurrent conflicting accesses are the program's responsibility.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), at, data.len()) };
            payload = rest;
        }
        Ok(())
    }

    /// Executes an accumulate. If `wanted`, returns old elements and their position in the result.
    fn accumulate(
        self,
        mut payload: &[u8],
        wanted: bool,
    ) -> Result<Option<(u64, Vec<u8>)>, OscError> {
        let nonsense = || self.nonsense();
        let position = take_word(&mut payload).ok_or_else(nonsense)?;
        let operation = take_word(&mut payload).and_then(wire::read_operation);
        let (op, handle) = operation.ok_or_else(nonsense)?;
        let named = Datatype::named(handle).and_then(|datatype| datatype.as_named());
        let named = named.ok_or_else(nonsense)?;
        let runs = Runs::take(&mut payload).ok_or_else(nonsense)?;
        let span = runs.span();
        let combine = self.win.accumulates().combine_of(op, named).map_err(|e| {
            let sentence = format!("rank {} of {}: {e}", self.win.rank(), self.win.label());
            OscError::new(OscClass::Op, sentence)
        })?;
        let accessed = (runs.from(span.start), runs.bytes());
        let own = (self.win.attached()).own_memory(&span, accessed)?;
        let mut old = match wanted {
            true => vec![0; runs.bytes() as usize],
            false => Vec::new(),
        };
        if !own.parts.is_empty() {
            let all = || runs.from(span.start);
            self.accumulate_parts((&own.parts, all), &combine, payload, &mut old)?;
            return Ok(wanted.then_some((position, old)));
        }
        // SAFETY: `own_memory` checked that all bytes of the runs are inside the window.
        let done = unsafe {
            let result = wanted.then_some(&mut old[..]);
            combine.run(&own.memory, runs.from(span.start), payload, result)
        };
        done.map_err(|_| self.nonsense())?;
        Ok(wanted.then_some((position, old)))
    }

    /// Executes an accumulate on attached memory of which some parts need locks and others do not.
    /// Stores the old elements in `old` unless it is empty.
    fn accumulate_parts<I: Iterator<Item = Run>>(
        self,
        (parts, all): (&[Part<'_>], impl Fn() -> I),
        combine: &Combine,
        input: &[u8],
        old: &mut [u8],
    ) -> Result<(), OscError> {
        access::check_elements(self.win, parts, self.win.rank(), combine.size())?;
        for part in parts {
            let Some(memory) = &part.memory else {
                return Err(self.nonsense());
            };
            let range = part.packed.start as usize..part.packed.end as usize;
            let given = match combine.op() {
                Predefined::NoOp => &[],
                _ => input.get(range.clone()).ok_or_else(|| self.nonsense())?,
            };
            let cut = access::cut(all(), part.packed.clone());
            // SAFETY: `own_memory` checked that all bytes of the runs are inside the window.
            let done = unsafe { combine.run(memory, cut, given, old.get_mut(range)) };
            done.map_err(|_| self.nonsense())?;
        }
        Ok(())
    }

    /// Executes a compare-and-swap. Returns the old element.
    fn swap(self, mut payload: &[u8]) -> Result<Vec<u8>, OscError> {
        let at = take_word(&mut payload).ok_or_else(|| self.nonsense())?;
        let handle = take_word(&mut payload).and_then(|word| usize::try_from(word).ok());
        let named = handle.and_then(Named::from_handle);
        let named = named.ok_or_else(|| self.nonsense())?;
        let size = named.info().size as usize;
        if payload.len() != 2 * size {
            return Err(self.nonsense());
        }
        let end = at.checked_add(size as u64).ok_or_else(|| self.nonsense())?;
        let run = std::iter::once(Run::new(0, size as i64));
        let own = (self.win.attached()).own_memory(&(at..end), (run, size as u64))?;
        access::check_elements(self.win, &own.parts, self.win.rank(), size)?;
        let memory = own.memory;
        let (compare, new) = payload.split_at(size);
        let mut old = vec![0; size];

        // SAFETY: `own_memory` checked that `at..end` is inside the window; all three slices have `size` bytes.
        let done = unsafe { apply::compare_and_swap(&memory, named, [compare, new], &mut old) };
        done.map_err(|_| self.nonsense())?;
        Ok(old)
    }
}
