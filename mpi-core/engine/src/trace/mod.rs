//! Tracing: records this process's messages and calls in its [event ring](mpi_base::node::EventRing), for `mpirun --trace`.
//!
//! Messages have no additional header for tracing:
//! messages with the same sender, context and tag match in the order in which they were sent
//! (MPI 5.0, section 3.5), so sender and receiver count the messages
//! of each key (context, source, destination, tag) and get the same number for a message.
//! At most `KEYS` keys are counted; messages with further keys get the number 0, and the trace has no arrows for them.
//!
//! Most of the cost is that of reading the clock.
//! So a message that is the first event of a call gets the call's start time,
//! and the call and the message share a cell of the ring.
//!
//! `Comm` and `ob1` record messages, `Comm` records collective operations,
//! a hardware barrier records its wire, and `mpi-abi` records calls.
//! Without tracing there is no `Trace`, and each of these places costs one branch on a plain load.

use crate::coll::CallSignature;
use crate::pml::Key;
use crate::pml::{Context, Envelope, Plane};
use mpi_base::node::{Event, EventKind, EventRing, Node};
use mpi_base::param::{Level, Param};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Parameter that `mpirun --trace` sets.
pub static TRACE: Param<u32> = Param::new(
    "mpi",
    "base",
    "trace",
    "0",
    Level::USER,
    "Number of latest events that each rank keeps for mpirun --trace, 64 bytes each; 0: no trace",
);

const KEYS: usize = 1 << 16;

/// A process's trace.
pub struct Trace {
    event_ring: Rc<EventRing>,
    sent: RefCell<Counters>,
    received: RefCell<Counters>,
    /// The start time of the present call until its first event, otherwise 0.
    fresh: Cell<u64>,
}

/// A key: context, rank of the other process, and tag.
type Counted = (Context, i32, i32);

#[derive(Default)]
struct Counters {
    all: HashMap<Counted, u64>,
    /// The last key that was counted, with its count; the map may have an older count of this key.
    /// The next message usually has the same key.
    latest: Option<(Counted, u64)>,
}

impl Counters {
    #[inline]
    fn next(&mut self, key: Counted) -> u64 {
        match &mut self.latest {
            Some((latest, count)) if *latest == key => {
                *count += 1;
                *count
            }
            _ => self.turn_to(key),
        }
    }

    fn turn_to(&mut self, key: Counted) -> u64 {
        if let Some((latest, count)) = self.latest.take() {
            self.all.insert(latest, count);
        }
        if self.all.len() >= KEYS && !self.all.contains_key(&key) {
            return 0;
        }
        let count = self.all.entry(key).or_default();
        *count += 1;
        self.latest = Some((key, *count));
        *count
    }
}

impl Trace {
    /// Creates a trace with a new ring; `None` if the node's memory has no space for a ring.
    pub fn new(node: &Node, events: u32) -> Option<Trace> {
        Some(Trace {
            event_ring: Rc::new(node.event_ring(events)?),
            sent: RefCell::default(),
            received: RefCell::default(),
            fresh: Cell::new(0),
        })
    }

    /// Returns the ring, to which layers above write events of their own.
    pub fn event_ring(&self) -> &Rc<EventRing> {
        &self.event_ring
    }

    /// Records the start of a call. Returns the time by the ring's clock, which must be passed to [`Trace::called`].
    #[inline]
    pub fn begins(&self) -> u64 {
        let now = self.event_ring.now();
        self.fresh.set(now);
        now
    }

    /// Records the return of a call that began at `began`.
    pub fn called(&self, call: u16, began: u64, thread: u32) {
        self.fresh.set(0);
        self.event_ring
            .write_call(call, began, self.event_ring.now(), thread);
    }

    /// Records that a message is sent.
    pub(crate) fn sends(&self, to: &Envelope, bytes: u64) {
        // A message of the program is sent when its call begins.
        // A message of a collective operation may be sent after a wait.
        let at = match (
            self.fresh.take(),
            to.context.plane(Plane::User) == to.context,
        ) {
            (began, true) if began != 0 => began,
            _ => self.event_ring.now(),
        };
        let key = (to.context, to.proc as i32, to.tag);
        self.event_ring.write(&Event {
            peer: to.proc as i32,
            tag: to.tag,
            comm: to.context.0,
            bytes,
            number: self.sent.borrow_mut().next(key),
            extra: to.source as u32 as u64,
            ..Event::new(EventKind::Sent, at)
        });
    }

    /// Records that a message has matched its receive; `message` is the message's source and tag.
    pub(crate) fn meets(&self, context: Context, message: Key, bytes: u64) {
        self.fresh.set(0);
        let key = (context, message.source(), message.tag());
        self.event_ring.write(&Event {
            peer: message.source(),
            tag: message.tag(),
            comm: context.0,
            bytes,
            number: self.received.borrow_mut().next(key),
            ..Event::new(EventKind::Received, self.event_ring.now())
        });
    }

    /// Records the start of a collective operation.
    pub(crate) fn rounds(&self, comm: u64, round: u64, signature: &CallSignature) {
        let [call, root, op, bytes] = signature.words();
        self.event_ring.write(&Event {
            call: call as u16,
            peer: root as i32,
            comm,
            bytes,
            number: round,
            extra: op,
            ..Event::new(EventKind::Round, self.event_ring.now())
        });
    }

    /// Decodes the signature in an event that `Trace::rounds` has written.
    pub fn signature(event: &Event) -> CallSignature {
        let root = u64::from(event.peer as u32);
        CallSignature::from_words(&[event.call.into(), root, event.extra, event.bytes])
    }

    /// Records a completed system call on a file; `began` is its start time by the ring's clock.
    pub fn file_call(&self, call: u16, file: u64, began: u64, (offset, bytes): (u64, u64)) {
        self.fresh.set(0);
        let now = self.event_ring.now();
        self.event_ring.write(&Event {
            until: now,
            call,
            number: file,
            bytes,
            extra: offset,
            ..Event::new(EventKind::File, began)
        });
    }

    /// Records that the running call accesses a member's window, with the displacement and the length in bytes.
    pub fn accesses(&self, window: u64, rank: u32, (displacement, bytes): (i64, u64)) {
        self.fresh.set(0);
        self.event_ring.write(&Event {
            peer: rank as i32,
            comm: window,
            bytes,
            extra: displacement as u64,
            ..Event::new(EventKind::Access, self.event_ring.now())
        });
    }

    /// Records the name of a window.
    pub fn names_window(&self, window: u64, name: &str) {
        let [first, second, third] = window_name_words(name);
        self.event_ring.write(&Event {
            comm: window,
            bytes: first,
            number: second,
            extra: third,
            ..Event::new(EventKind::WindowName, self.event_ring.now())
        });
    }

    /// Decodes the name in an event that [`Trace::names_window`] has written.
    pub fn window_name(event: &Event) -> String {
        let [first, third] = [event.bytes, event.extra].map(u64::to_le_bytes);
        let second = event.number.to_le_bytes();
        let bytes = [&first[..], &second[..NUMBER_BYTES], &third[..]].concat();
        let end = bytes.iter().rposition(|byte| *byte != 0);
        String::from_utf8_lossy(&bytes[..end.map_or(0, |at| at + 1)]).into_owned()
    }

    /// Records how many barriers have been entered and released on a wire of the hardware barrier.
    pub(crate) fn wire(&self, wire: u32, entered: u64, released: u64) {
        self.event_ring.write(&Event {
            peer: wire as i32,
            number: entered,
            extra: released,
            ..Event::new(EventKind::Wire, self.event_ring.now())
        });
    }
}

/// Number of bytes that fit the field `number` of an event.
const NUMBER_BYTES: usize = 5;

/// Encodes the beginning of a window's name as three words, of which the second has [`NUMBER_BYTES`] bytes.
fn window_name_words(name: &str) -> [u64; 3] {
    let mut bytes = name.bytes();
    [8, NUMBER_BYTES, 8].map(|len| {
        let mut word = [0; 8];
        for (place, byte) in word[..len].iter_mut().zip(bytes.by_ref().take(len)) {
            *place = byte;
        }
        u64::from_le_bytes(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_windows_name_is_kept() {
        for name in [
            "",
            "board",
            "exactly twenty-one by",
            "twenty-one bytes and more",
        ] {
            let [bytes, number, extra] = window_name_words(name);
            let event = Event {
                bytes,
                number,
                extra,
                ..Event::new(EventKind::WindowName, 1)
            };
            // The event as it is read from the ring.
            let event = Event::of(event.words()).expect("an event");
            assert_eq!(Trace::window_name(&event), name[..name.len().min(21)]);
        }
    }

    #[test]
    fn messages_are_counted_for_each_key_whatever_comes_between() {
        let mut counters = Counters::default();
        let key = |tag| (Context(8), 1, tag);
        let order = [1, 1, 2, 1, 3, 3, 2, 1];
        let numbers = order.map(|tag| counters.next(key(tag)));
        assert_eq!(numbers, [1, 2, 1, 3, 1, 2, 2, 4]);
    }

    #[test]
    fn keys_beyond_the_limit_are_not_counted_and_earlier_ones_still_are() {
        let mut counters = Counters::default();
        let key = |tag| (Context(8), 1, tag);
        assert!((0..KEYS as i32).all(|tag| counters.next(key(tag)) == 1));
        assert_eq!(counters.next(key(KEYS as i32)), 0);
        assert_eq!(counters.next(key(KEYS as i32)), 0);
        assert_eq!(counters.next(key(7)), 2);
    }
}
