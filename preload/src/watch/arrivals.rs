//! Results of successful calls: messages, requests and new communicators.
#![allow(unsafe_code)]

use super::Watch;
use super::call_args::{CallArgs, Direction, HandleKind, HandlePtr, Message};
use super::comms::Communicator;
use super::event_log::Arrived;
use super::pending::{Pending, Transfer};
use super::record::Before;
use mpi_base::clock::now_ns;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

impl Watch {
    /// Records the results of a call. `statuses` points to the statuses that the library wrote;
    /// `before` holds the program's handles read before the call.
    pub fn completed_call(
        &self,
        args: &CallArgs,
        before: &Before,
        statuses: *mut c_void,
        began: u64,
    ) {
        match args {
            CallArgs::Plain | CallArgs::Probe(..) | CallArgs::Iprobe(..) | CallArgs::Drops(_) => {}
            CallArgs::Send(message) => self.sent(message, began),
            CallArgs::Recv(message, _) => self.received(message, statuses),
            CallArgs::Sendrecv(out, back, _) => {
                self.sent(out, began);
                self.received(back, statuses);
            }
            CallArgs::Started(direction, message, request) => {
                self.started(*direction, message, *request, began)
            }
            CallArgs::Prepared(direction, message, request) => {
                self.prepared(*direction, message, *request)
            }
            CallArgs::Starts(..) => before
                .numbers
                .iter()
                .for_each(|number| self.starts(*number, began)),
            CallArgs::Mprobe(source, tag, comm, message, _)
            | CallArgs::Improbe(source, tag, comm, _, message, _) => {
                let posted = (*source as c_int, *tag as c_int);
                self.matched(posted, *comm, *message, statuses);
            }
            CallArgs::Mrecv(_) => {
                if let (Some((comm, arrived)), Some(mut event_log)) =
                    (&before.matched, self.event_log())
                {
                    event_log.receives(comm, *arrived, now_ns());
                }
            }
            CallArgs::Imrecv(_, request) => {
                if let Some((comm, arrived)) = &before.matched {
                    let transfer = Transfer {
                        direction: Direction::Recv,
                        comm: Arc::clone(comm),
                        peer: arrived.source,
                        tag: arrived.tag,
                        bytes: arrived.bytes,
                        number: arrived.number,
                        stays: false,
                        is_open: true,
                    };
                    self.begins_request(*request, Pending::Transfer(transfer));
                }
            }
            CallArgs::Completes(requests, _) => {
                for (number, status) in requests.completed() {
                    let request = (before.handles.get(number), before.numbers.get(number));
                    if let (Some(request), Some(number)) = request {
                        self.completed(*request, *number, self.status(statuses, status));
                    }
                }
            }
            CallArgs::Forgets(_) => {
                // The program freed an active request: no later call reports its completion.
                for (request, number) in before.handles.iter().zip(&before.numbers) {
                    self.pendings().forgets(*request, *number);
                }
            }
            CallArgs::Round(_, None) => {}
            CallArgs::Round(_, Some(request)) => self.begins_request(*request, Pending::Round),
            CallArgs::Makes(handle) => self.makes(handle.read(self, HandleKind::Comm, 0)),
            CallArgs::MakesLater(parent, handle, request) => {
                if let Some(parent) = self.communicator(*parent) {
                    self.begins_request(*request, Pending::Duplicate(parent, *handle));
                }
            }
        }
    }

    fn begins_request(&self, request: HandlePtr, pending: Pending) {
        let request = request.read(self, HandleKind::Request, 0);
        self.pendings().add(request, pending);
    }

    fn sent(&self, message: &Message, at: u64) {
        if message.peer == self.constants.proc_null || self.event_log.is_none() {
            return;
        }
        let bytes = self.bytes(message.count, message.datatype);
        if let (Some(comm), Some(mut event_log)) =
            (self.communicator(message.comm), self.event_log())
        {
            event_log.sends(&comm, message.peer, message.tag, bytes, at);
        }
    }

    fn received(&self, message: &Message, status: *mut c_void) {
        if message.peer == self.constants.proc_null || self.event_log.is_none() {
            return;
        }
        let posted = (message.peer, message.tag);
        let arrived = self.arrived(posted, None, 0, self.status(status, 0));
        if let (Some(comm), Some(mut event_log)) =
            (self.communicator(message.comm), self.event_log())
        {
            event_log.receives(&comm, arrived, now_ns());
        }
    }

    /// Counts a posted receive. Returns the sequence number of the message that it will receive,
    /// or `None` for a receive with a wildcard.
    fn number(&self, comm: &Communicator, (source, tag): (c_int, c_int)) -> Option<u64> {
        let names_both = source != self.constants.any_source && tag != self.constants.any_tag;
        let mut event_log = self.event_log().filter(|_| names_both)?;
        Some(event_log.posts(comm, source, tag))
    }

    fn transfer(&self, direction: Direction, message: &Message, stays: bool) -> Option<Transfer> {
        if message.peer == self.constants.proc_null {
            return None;
        }
        let comm = self.communicator(message.comm)?;
        Some(Transfer {
            direction,
            comm,
            peer: message.peer,
            tag: message.tag,
            bytes: self.bytes(message.count, message.datatype),
            number: None,
            stays,
            is_open: !stays,
        })
    }

    fn started(&self, direction: Direction, message: &Message, request: HandlePtr, began: u64) {
        let Some(mut transfer) = self.transfer(direction, message, false) else {
            return;
        };
        match direction {
            Direction::Send => self.sent(message, began),
            Direction::Recv => {
                transfer.number = self.number(&transfer.comm, (transfer.peer, transfer.tag));
            }
        }
        self.begins_request(request, Pending::Transfer(transfer));
    }

    fn prepared(&self, direction: Direction, message: &Message, request: HandlePtr) {
        if let Some(transfer) = self.transfer(direction, message, true) {
            self.begins_request(request, Pending::Transfer(transfer));
        }
    }

    /// Marks a persistent request as active again.
    fn starts(&self, number: u64, began: u64) {
        let mut pendings = self.pendings();
        let Some(transfer) = pendings.starts(number) else {
            return;
        };
        let (comm, posted) = (Arc::clone(&transfer.comm), (transfer.peer, transfer.tag));
        match transfer.direction {
            Direction::Recv => transfer.number = self.number(&comm, posted),
            Direction::Send => {
                if let Some(mut event_log) = self.event_log() {
                    event_log.sends(&comm, posted.0, posted.1, transfer.bytes, began);
                }
            }
        }
    }

    fn matched(
        &self,
        posted: (c_int, c_int),
        comm: usize,
        message: HandlePtr,
        status: *mut c_void,
    ) {
        if posted.0 == self.constants.proc_null || self.event_log.is_none() {
            return;
        }
        let Some(comm) = self.communicator(comm) else {
            return;
        };
        let mut arrived = self.arrived(posted, None, 0, self.status(status, 0));
        if let Some(mut event_log) = self.event_log() {
            arrived.number = Some(event_log.posts(&comm, arrived.source, arrived.tag));
        }
        let message = message.read(self, HandleKind::Message, 0);
        self.pendings().matches(message, comm, arrived);
    }

    fn completed(&self, request: usize, number: u64, status: Option<*const u8>) {
        let completed = self.pendings().completes(request, number);
        match completed {
            Some(Pending::Duplicate(parent, handle)) => {
                self.makes_later(&parent, handle.read(self, HandleKind::Comm, 0));
            }
            Some(Pending::Transfer(transfer)) if transfer.direction == Direction::Recv => {
                let posted = (transfer.peer, transfer.tag);
                if self.is_cancelled(status) {
                    if let (Some(_), Some(mut event_log)) = (transfer.number, self.event_log()) {
                        event_log.unposts(&transfer.comm, posted.0, posted.1);
                    }
                    return;
                }
                let arrived = self.arrived(posted, transfer.number, transfer.bytes, status);
                if let Some(mut event_log) = self.event_log() {
                    event_log.receives(&transfer.comm, arrived, now_ns());
                }
            }
            _ => {}
        }
    }

    /// Returns the address of the status with index `number`.
    /// Returns `None` if the call has no statuses, or if the program ignores them.
    fn status(&self, statuses: *mut c_void, number: usize) -> Option<*const u8> {
        let is_none = statuses.is_null() || statuses.addr() == self.constants.statuses_ignore;
        let offset = number * self.constants.status_bytes;
        (!is_none).then(|| statuses.cast::<u8>().wrapping_add(offset).cast_const())
    }

    fn is_cancelled(&self, status: Option<*const u8>) -> bool {
        let Some(status) = status.filter(|_| self.event_log.is_some()) else {
            return false;
        };
        let mut cancelled: c_int = 0;
        // SAFETY: `status` points to a status of the library, and `cancelled` is a live local.
        unsafe { (self.functions.test_cancelled)(status.cast(), &raw mut cancelled) };
        cancelled != 0
    }

    /// Returns source, tag and size of a received message:
    /// from its status, else from the arguments.
    fn arrived(
        &self,
        (source, tag): (c_int, c_int),
        number: Option<u64>,
        bytes: u64,
        status: Option<*const u8>,
    ) -> Arrived {
        let asked = Arrived {
            source,
            tag,
            bytes,
            number,
        };
        let Some(status) = status.filter(|_| self.event_log.is_some()) else {
            return asked;
        };
        let (mut count, byte) = (0, self.library.constants.byte);
        // SAFETY: `status` points to a status that the library wrote; its tag follows its source.
        let (from, with, code) = unsafe {
            let at = status.add(self.constants.source_at).cast::<c_int>();
            let code = (self.functions.get_count)(status.cast(), byte, &raw mut count);
            (at.read_unaligned(), at.add(1).read_unaligned(), code)
        };
        Arrived {
            source: from,
            tag: with,
            bytes: match code {
                0 => u64::try_from(count).unwrap_or(bytes),
                _ => bytes,
            },
            number,
        }
    }
}
