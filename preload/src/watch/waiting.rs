//! The state page of this rank: current call, awaited rank and message, collective operations.
//!
//! Portcullis's own engine stores the awaited message after a short wait.
//! A library of another implementation does not show whether a call waits.
//! So a call that may wait is stored at its start.
//! Three kinds of calls need special treatment:
//!
//! * A call that waits for all of several requests does not report which requests are complete.
//!   While more than one request is active, the requests are tested one by one,
//!   at first without and later with a pause. The library's function waits for the last request.
//! * A call that sends to one rank and receives from another may wait for either rank;
//!   the page then shows "one of two".
//! * A test or probe without a result is not counted as a call: a rank that only polls makes
//!   no progress. The page shows the poll until the rank makes another call.
#![allow(unsafe_code)]

use super::Watch;
use super::call_args::{CallArgs, Direction, Message, RequestSet, Requests};
use super::comms::Communicator;
use super::pending::{Pending, Transfer};
use coll_hwbarr_foreign::library::Handle;
use mpi_base::clock::now_ns;
use mpi_base::state::{About, NO_PEER, NO_TAG, StatePage, Waits};
use mpi_base::yield_now::Backoff;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Duration for which requests are tested without a pause.
const EAGER: Duration = Duration::from_millis(20);
/// Pause between two tests after `EAGER`.
const PAUSE: Duration = Duration::from_micros(500);

/// Describes a send or a receive for the state page: peer, tag, length.
fn about(
    watch: &Watch,
    direction: Direction,
    comm: &Communicator,
    peer: c_int,
    tag: c_int,
    bytes: u64,
) -> About {
    let constants = &watch.constants;
    let any = direction == Direction::Recv && peer == constants.any_source;
    About {
        waits: match direction {
            _ if peer == constants.proc_null => Waits::Nothing,
            Direction::Send => Waits::Send,
            Direction::Recv => Waits::Recv,
        },
        comm: comm.number,
        peer: if any { NO_PEER } else { peer },
        proc: if any { NO_PEER } else { comm.in_job(peer) },
        tag: match direction {
            Direction::Recv if tag == constants.any_tag => NO_TAG,
            _ => tag,
        },
        bytes,
        requests: 1,
        begun: 0,
    }
}

impl Watch {
    /// Returns the writer of this rank's state page.
    pub fn state(&self) -> StateWriter<'_> {
        StateWriter { watch: self }
    }
}

/// Writes the state page of this rank.
#[derive(Clone, Copy)]
pub struct StateWriter<'a> {
    watch: &'a Watch,
}

impl<'a> StateWriter<'a> {
    fn page(self) -> Option<&'a StatePage> {
        self.watch.pages.as_ref().map(super::page::Pages::mine)
    }

    /// Stores the start of a call that is not a poll.
    pub fn enters(self, call: u16) {
        if let Some(page) = self.page() {
            self.stops_polling(page);
            page.enter(call);
        }
    }

    fn stops_polling(self, page: &StatePage) {
        match self.watch.polling.swap(0, Relaxed) {
            0 => {}
            polling => page.leave(polling),
        }
    }

    /// Stores the start of a call; `handles` are the call's requests.
    pub fn publish_wait(self, call: u16, args: &CallArgs, handles: &[Handle], began: u64) {
        let Some(page) = self.page() else {
            return;
        };
        if args.flag().is_some() {
            return;
        }
        self.enters(call);
        if let Some(about) = self.waits_for(args, handles) {
            page.about(&about);
            page.waits_since(began);
        }
        if matches!(args, CallArgs::Round(_, None)) {
            page.waits_since(began);
        }
    }

    /// Stores the end of a call; `found` is the flag of a test or probe.
    pub fn clear_wait(self, call: u16, args: &CallArgs, handles: &[Handle], found: bool) {
        let Some(page) = self.page() else {
            return;
        };
        if args.flag().is_none() {
            if matches!(args, CallArgs::Round(_, None)) {
                page.inside(false);
            }
            return page.leave(call);
        }
        if found {
            self.enters(call);
            return page.leave(call);
        }
        if self.watch.polling.load(Relaxed) != call {
            self.enters(call);
            self.watch.polling.store(call, Relaxed);
            page.waits_since(now_ns());
        }
        if let Some(about) = self.waits_for(args, handles) {
            page.about(&about);
        }
    }

    fn waits_for(self, args: &CallArgs, handles: &[Handle]) -> Option<About> {
        let side = |direction, message: &Message| {
            let comm = self.watch.communicator(message.comm)?;
            let bytes = self.watch.bytes(message.count, message.datatype);
            Some(about(
                self.watch,
                direction,
                &comm,
                message.peer,
                message.tag,
                bytes,
            ))
        };
        let probe = |source: i64, tag: i64, comm| {
            let comm = self.watch.communicator(comm)?;
            Some(about(
                self.watch,
                Direction::Recv,
                &comm,
                source as c_int,
                tag as c_int,
                0,
            ))
        };
        match args {
            CallArgs::Send(message) => side(Direction::Send, message),
            CallArgs::Recv(message, _) => side(Direction::Recv, message),
            CallArgs::Sendrecv(out, back, _) => {
                let (out, back) = (side(Direction::Send, out)?, side(Direction::Recv, back)?);
                Some(match (out.waits, back.waits) {
                    (_, Waits::Nothing) => out,
                    (Waits::Nothing, _) => back,
                    _ if out.proc == back.proc => back,
                    _ => About {
                        waits: Waits::Any,
                        requests: 2,
                        ..About::default()
                    },
                })
            }
            CallArgs::Probe(source, tag, comm)
            | CallArgs::Mprobe(source, tag, comm, ..)
            | CallArgs::Iprobe(source, tag, comm, _)
            | CallArgs::Improbe(source, tag, comm, ..) => probe(*source, *tag, *comm),
            CallArgs::Completes(requests, _) => self.waits_for_requests(requests.set, handles),
            _ => None,
        }
    }

    fn waits_for_requests(self, which: RequestSet, handles: &[Handle]) -> Option<About> {
        let open = self.under_way(handles);
        let first = open.first()?;
        let requests = open.len() as u32;
        if which != RequestSet::All && requests > 1 {
            return Some(About {
                waits: Waits::Any,
                requests,
                ..About::default()
            });
        }
        let about = match self.watch.pendings().get(*first)? {
            Pending::Transfer(Transfer {
                direction,
                comm,
                peer,
                tag,
                bytes,
                ..
            }) => about(self.watch, *direction, comm, *peer, *tag, *bytes),
            Pending::Round | Pending::Duplicate(..) => About {
                waits: Waits::Collective,
                ..About::default()
            },
        };
        Some(About { requests, ..about })
    }

    /// Returns the handles whose requests may be active.
    fn under_way(self, handles: &[Handle]) -> Vec<Handle> {
        let pendings = self.watch.pendings();
        let is_open = |handle: &Handle| match pendings.get(*handle) {
            Some(Pending::Transfer(transfer)) => transfer.is_open,
            Some(_) => true,
            None => *handle != self.watch.constants.request_null && *handle != 0,
        };
        handles.iter().copied().filter(is_open).collect()
    }

    /// Tests the requests of a call such as `MPI_Waitall` before the call,
    /// until one active request is left or the library returns an error.
    pub fn publish_states(self, requests: &Requests, handles: &[Handle]) {
        let Some(page) = self.page() else {
            return;
        };
        let mut open = match requests.set {
            RequestSet::All => self.under_way(handles),
            _ => return,
        };
        let (begin, ignore) = (Instant::now(), self.watch.library.constants.status_ignore);
        let mut backoff = Backoff::new();
        while open.len() > 1 {
            let before = open.len();
            let mut is_wrong = false;
            open.retain(|handle| {
                let mut over: c_int = 0;
                // SAFETY: the program passed a valid request; the flag is a live local,
                // and the status is `MPI_STATUS_IGNORE`.
                let code = unsafe {
                    (self.watch.functions.request_get_status)(*handle, &raw mut over, ignore)
                };
                is_wrong |= code != 0;
                over == 0
            });
            if is_wrong {
                return;
            }
            if open.len() != before {
                page.progressed();
                if let Some(about) = self.waits_for_requests(RequestSet::All, &open) {
                    page.about(&about);
                }
            } else if begin.elapsed() < EAGER {
                backoff.pause();
            } else {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Stores the start of a collective operation in the state page, if there is a page.
    pub fn publish_round(self, comm: &Arc<Communicator>, round: u64, words: [u64; 4], waits: bool) {
        if let Some(page) = self.page() {
            page.collective(comm.number, comm.members, round, words);
            page.inside(waits);
        }
    }
}
