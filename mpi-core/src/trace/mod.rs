//! Tracing: what this process sends, receives and calls, written to its [tape](mpi_base::node::Tape) for `mpirun --trace`.
//!
//! A message needs no mark of its own on the wire. Messages of one sender, context and tag match in the order in which they were sent
//! (MPI 5.0, section 3.5), so counting them by (context, source, destination, tag) on both sides gives both the same number.
//! Counters are kept for as many keys as [`KEYS`]; messages of later keys have number 0, and no arrow leads to them.
//!
//! Who calls what: `Comm` and `ob1` tell of messages, `Comm` of collective operations, a hardware barrier of its wire, `mpi-abi` of calls.
//! While nobody traces there is no `Trace`, and each of these places is one branch on a plain load.

use crate::coll::Said;
use crate::engine::Engine;
use crate::pml::ob1::matching::Key;
use crate::pml::{Context, Envelope};
use mpi_base::node::{Event, EventKind, Tape};
use mpi_base::param::{Level, Param};
use std::cell::RefCell;
use std::collections::HashMap;

/// Set by `mpirun --trace`.
pub static TRACE: Param<u32> = Param::new(
    "mpi",
    "base",
    "trace",
    "0",
    Level::USER,
    "How many of its latest events each rank keeps for mpirun --trace, 64 bytes each; 0 traces nothing",
);

/// How many keys are counted.
const KEYS: usize = 1 << 16;

/// A process's trace.
pub struct Trace {
    tape: Tape,
    sent: RefCell<Counters>,
    received: RefCell<Counters>,
}

/// By context, rank of the other side, and tag.
#[derive(Default)]
struct Counters(HashMap<(Context, i32, i32), u64>);

impl Counters {
    fn next(&mut self, key: (Context, i32, i32)) -> u64 {
        if self.0.len() >= KEYS && !self.0.contains_key(&key) {
            return 0;
        }
        let count = self.0.entry(key).or_default();
        *count += 1;
        *count
    }
}

impl Trace {
    /// A trace on a new tape; `None` where the node's memory has no room for one.
    pub fn new(engine: &Engine, events: u32) -> Option<Trace> {
        Some(Trace {
            tape: engine.node().tape(events)?,
            sent: RefCell::default(),
            received: RefCell::default(),
        })
    }

    /// A call has returned; `began` is what [`now_ns`] said when it began.
    pub fn called(&self, call: u16, began: u64, thread: u32) {
        self.tape.write(&Event {
            until: now_ns(),
            call,
            thread,
            ..Event::new(EventKind::Call, began)
        });
    }

    /// A message is about to leave.
    pub(crate) fn sends(&self, to: &Envelope, bytes: u64) {
        let key = (to.context, to.proc as i32, to.tag);
        self.tape.write(&Event {
            peer: to.proc as i32,
            tag: to.tag,
            comm: to.context.0,
            bytes,
            number: self.sent.borrow_mut().next(key),
            extra: to.source as u32 as u64,
            ..Event::new(EventKind::Sent, now_ns())
        });
    }

    /// A message has met its receive; the key is the message's own.
    pub(crate) fn meets(&self, context: Context, message: Key, bytes: u64) {
        let key = (context, message.source(), message.tag());
        self.tape.write(&Event {
            peer: message.source(),
            tag: message.tag(),
            comm: context.0,
            bytes,
            number: self.received.borrow_mut().next(key),
            ..Event::new(EventKind::Received, now_ns())
        });
    }

    /// A collective operation begins.
    pub(crate) fn rounds(&self, comm: u64, round: u64, said: &Said) {
        let [call, root, op, bytes] = said.words();
        self.tape.write(&Event {
            call: call as u16,
            peer: root as i32,
            comm,
            bytes,
            number: round,
            extra: op,
            ..Event::new(EventKind::Round, now_ns())
        });
    }

    /// What [`Trace::rounds`] wrote, for whoever plays the tape.
    pub fn said(event: &Event) -> Said {
        let root = u64::from(event.peer as u32);
        Said::from_words(&[event.call.into(), root, event.extra, event.bytes])
    }

    /// The wire of the hardware barrier has entered and released so many.
    pub(crate) fn wire(&self, wire: u32, entered: u64, released: u64) {
        self.tape.write(&Event {
            peer: wire as i32,
            number: entered,
            extra: released,
            ..Event::new(EventKind::Wire, now_ns())
        });
    }
}

/// The clock of the tape.
#[inline]
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
