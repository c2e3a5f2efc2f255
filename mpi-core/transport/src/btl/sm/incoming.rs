//! Receiver of the transport `sm`: polls the rings from all peers of the node.

use std::cell::Cell;

use mpi_base::bitmap::ones;
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use mpi_base::node::Node;
use mpi_base::ring::{Body, Consumer, Polled};

use super::super::{ProcId, Sink};
use super::SCAN;
use super::span::Spans;

/// Maximum number of messages that are taken from one ring before the next ring is polled and a waiting thread checks its condition.
const TURN: usize = 32;
/// Maximum number of bytes that are taken from one ring in one poll,
/// before the next ring is polled and a waiting thread checks its condition.
///
/// With data in both directions, the limit returns space to the sender sooner, while the space is still in the cache.
/// It also avoids unexpected data, which are copied one more time:
/// without this limit, a third of the messages were unexpected in a test
/// in which both peers sent windows of 64 messages of 16 KiB,
/// because one poll took the reply to a window together with the next window.
/// Bandwidths in GB/s on two cores that share a cache, without a limit and with limits of 128, 64 and 32 KiB:
/// both directions, messages of 16 KiB: 35.8, 41.8, 45.6 and 45.9; messages of 32 KiB: 38.0, 52.1, 52.8 and 51.2;
/// one direction, messages of 32 KiB: 57.8, 56.9, 54.5 and 53.1.
pub(super) const TURN_BYTES: usize = 128 << 10;

/// A poll that takes at least this number of bytes from a ring has received long data,
/// whose throughput depends on the used span of the ring.
pub(super) const LONG: usize = 8 << 10;

pub(super) struct Incoming {
    node: Node,
    procs: Vec<ProcId>,
    inbox: Held<Inbox>,
    /// The value of the inbox's call counter (announcements of senders and requests for space) up to which calls were handled.
    calls: u32,
    /// The rings of all peers that have sent messages, in the order of their first message.
    rings: Vec<Ring>,
    /// The index of each sender's ring in `rings`, by local rank.
    place: Vec<Option<u32>>,
    /// Bit set of the rings to poll, by local rank.
    /// `None` until this process has requested that senders mark their rings.
    marks: Option<Vec<u64>>,
    /// Local ranks whose rings were found invalid since the last call of [`Incoming::take_condemned`].
    condemned: Vec<u32>,
    /// True if a ring has a cell with invalid contents, which can never become readable.
    odd: Cell<bool>,
}

struct Ring {
    from: u32,
    proc: ProcId,
    consumer: Consumer,
    /// The measurements that choose the used span of the ring; `None` if the ring is too short for a choice.
    spans: Option<Spans>,
}

impl Incoming {
    pub fn new(node: Node, procs: Vec<ProcId>) -> Incoming {
        Incoming {
            inbox: node.my_inbox().clone(),
            calls: 0,
            rings: Vec::new(),
            place: vec![None; node.nlocal() as usize],
            marks: None,
            condemned: Vec::new(),
            odd: Cell::new(false),
            node,
            procs,
        }
    }

    /// Delivers messages that have arrived: at most [`TURN`] messages or [`TURN_BYTES`] from each ring. Returns their number.
    #[inline]
    pub fn progress(&mut self, sink: &dyn Sink) -> usize {
        let called = self.inbox.calls() != self.calls;
        if called {
            self.admit();
        }
        let delivered = match &mut self.marks {
            None => {
                let mut delivered = 0;
                for ring in &mut self.rings {
                    if ring.consumer.is_ready_or_await() {
                        delivered += ring.turn(&self.node, sink).0;
                        if ring.consumer.is_broken() {
                            self.condemned.push(ring.from);
                        }
                    } else {
                        ring.consumer.give_back();
                    }
                }
                delivered
            }
            Some(marks) => {
                let mut delivered = 0;
                for (w, mark) in marks.iter_mut().enumerate() {
                    let due = std::mem::take(mark) | self.inbox.take_news(w);
                    for bit in ones(due) {
                        let place = self.place.get(w * 64 + bit).copied().flatten();
                        if let Some(ring) = place.and_then(|at| self.rings.get_mut(at as usize)) {
                            let was_broken = ring.consumer.is_broken();
                            let (count, left) = ring.turn(&self.node, sink);
                            if ring.consumer.is_broken() && !was_broken {
                                self.condemned.push(ring.from);
                            }
                            delivered += count;
                            *mark |= u64::from(left) << bit;
                        }
                    }
                }
                delivered
            }
        };
        if called {
            self.feed();
        }
        if self.odd.take() {
            self.condemn_odd();
        }
        delivered
    }

    #[cold]
    fn condemn_odd(&mut self) {
        for ring in self.rings.iter_mut().filter(|ring| ring.consumer.is_odd()) {
            ring.consumer.condemn();
            self.condemned.push(ring.from);
        }
    }

    /// Returns true if a ring was found invalid since the last call of [`Incoming::take_condemned`].
    #[inline]
    pub fn has_condemned(&self) -> bool {
        !self.condemned.is_empty()
    }

    /// Returns the local ranks whose rings were found invalid since the last call.
    pub fn take_condemned(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.condemned)
    }

    /// Stops receiving from a local rank, because its ring is invalid.
    pub fn condemn(&mut self, from: u32) {
        let place = self.place.get(from as usize).copied().flatten();
        if let Some(ring) = place.and_then(|at| self.rings.get_mut(at as usize)) {
            ring.consumer.condemn();
        }
    }

    /// Returns true if `progress` would deliver messages, release space, add new senders, or remove invalid ones.
    #[inline]
    pub fn has_work(&self) -> bool {
        let is_due = |ring: &Ring| ring.consumer.is_ready() || ring.consumer.owes_space();
        self.inbox.calls() != self.calls
            || self.odd.get()
            || self.has_condemned()
            || match &self.marks {
                None => self.rings.iter().any(is_due),
                Some(marks) => {
                    self.inbox.any_news(marks.len()) || marks.iter().any(|&mark| mark != 0)
                }
            }
    }

    /// Returns true if a message has arrived, or if a sender has announced itself or requested space.
    /// Called before the process sleeps, so it also searches for cells that can never become readable.
    pub fn has_news(&self) -> bool {
        if self.rings.iter().any(|ring| ring.consumer.is_odd()) {
            self.odd.set(true);
            return true;
        }
        self.inbox.calls() != self.calls
            || match &self.marks {
                None => self.rings.iter().any(|ring| ring.consumer.is_ready()),
                Some(marks) => {
                    self.inbox.any_news(marks.len()) || marks.iter().any(|&mark| mark != 0)
                }
            }
    }

    /// Adds the rings of new senders.
    #[cold]
    fn admit(&mut self) {
        self.calls = self.inbox.calls();
        for w in 0..self.words() {
            for bit in ones(self.inbox.senders(w)) {
                let from = w * 64 + bit;
                if let (Some(place @ None), Some(&proc)) =
                    (self.place.get_mut(from), self.procs.get(from))
                    && let Ok(consumer) = self.node.consumer(from as u32)
                {
                    *place = Some(self.rings.len() as u32);
                    self.rings.push(Ring {
                        from: from as u32,
                        proc,
                        spans: Spans::new(consumer.shape().bytes(), self.node.ring_span()),
                        consumer,
                    });
                }
            }
        }
        if self.rings.len() > SCAN {
            if self.marks.is_none() {
                self.inbox.doorbell().ask_for_marks();
            }
            // Messages have no mark if they were sent before the sender noticed the request for marks, or before its ring was added. So all rings are polled once.
            let mut marks = vec![0; self.words()];
            for ring in &self.rings {
                marks[ring.from as usize / 64] |= 1 << (ring.from % 64);
            }
            self.marks = Some(marks);
        }
    }

    /// Releases consumed space to the senders that have requested it, and rings their doorbells.
    #[cold]
    fn feed(&mut self) {
        for w in 0..self.words() {
            for bit in ones(self.inbox.take_wants_space(w)) {
                let from = w * 64 + bit;
                let place = self.place.get(from).copied().flatten();
                if let Some(ring) = place.and_then(|at| self.rings.get_mut(at as usize)) {
                    ring.consumer.give_back();
                }
                if let Ok(inbox) = self.node.inbox(from as u32) {
                    inbox.doorbell().ring();
                }
            }
        }
    }

    fn words(&self) -> usize {
        self.place.len().div_ceil(64)
    }
}

impl Ring {
    /// Delivers up to [`TURN`] messages or [`TURN_BYTES`]. Returns the number of messages, and true if the ring may contain more.
    ///
    /// Consumed space is released in a later poll that finds no message,
    /// so the release does not delay a thread that waits for a message.
    #[inline]
    fn turn(&mut self, node: &Node, sink: &dyn Sink) -> (usize, bool) {
        let (from, proc) = (self.from, self.proc);
        let mut left = TURN_BYTES;
        let turn = 'turn: {
            for before in 0..TURN {
                let polled = self.consumer.pop(|message| match message.body {
                    Body::Here(bytes) => {
                        left = left.saturating_sub(bytes.len());
                        sink.deliver(proc, message.am, message.header, bytes);
                        true
                    }
                    Body::Elsewhere { token, len } => node
                        .read_frag(from, token, len, |bytes| {
                            left = left.saturating_sub(len);
                            sink.deliver(proc, message.am, message.header, bytes);
                        })
                        .is_some(),
                });
                match polled {
                    Polled::Got(true) if left == 0 => break 'turn (before + 1, true),
                    Polled::Got(true) if self.consumer.is_ready() => self.consumer.await_more(),
                    Polled::Got(true) => break 'turn (before + 1, false),
                    Polled::Empty => {
                        self.consumer.give_back();
                        break 'turn (before, false);
                    }
                    // Invalid contents: no later contents can be trusted either, so the ring is no longer read.
                    Polled::Got(false) | Polled::Broken => {
                        self.consumer.condemn();
                        break 'turn (before, false);
                    }
                }
            }
            (TURN, true)
        };
        if left <= TURN_BYTES - LONG {
            self.measure(TURN_BYTES - left);
        }
        turn
    }

    /// Counts the bytes of long data in one poll, and requests another span of the ring if the measurements favour it.
    #[inline(never)]
    fn measure(&mut self, bytes: usize) {
        let Some(spans) = &mut self.spans else { return };
        if let Some(span) = spans.count(bytes) {
            let ring = self.consumer.shape().bytes();
            self.consumer.wish_span(span.of(ring));
        }
    }
}
