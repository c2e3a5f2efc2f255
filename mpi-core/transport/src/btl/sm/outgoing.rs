//! Sender of the transport `sm`: the ring to one peer of the node.

use std::cell::RefCell;

use mpi_base::copy::copy;
use mpi_base::doorbell::GONE;
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use mpi_base::node::{FragPool, Node, NodeError};
use mpi_base::ring::{Full, Producer};

use super::super::{Am, Header};

/// The reason why a message was not sent.
pub(super) enum Refused {
    Full,
    Gone,
}

/// The sender of one ring. A payload that fits into the ring is written there, a longer one to a pooled fragment.
/// If a ring is read as fast as it is written, the same few pages are reused and stay in the caches.
/// If both cores share a cache, streams of messages of 16 and 32 KiB reached 50 GB/s in the ring and 35 GB/s in pooled fragments.
pub(super) struct Outgoing {
    producer: Producer,
    /// The receiver's inbox.
    inbox: Held<Inbox>,
    me: usize,
    to: u32,
    /// True if the ring was announced to the receiver.
    announced: bool,
    /// True in the usual case: the ring was announced,
    /// and the receiver can execute the memory fence for this process (`membarrier`).
    /// The fast path tests only this flag.
    usual: bool,
    /// Length in bytes of the latest refused payload; `None` after a payload was accepted.
    wants_space: Option<usize>,
    /// The number of this process's polls at the latest send.
    looks: u32,
    /// True if the receiver's shared memory is invalid; nothing is sent afterwards.
    condemned: bool,
}

impl Outgoing {
    pub fn new(node: &Node, to: u32) -> Result<Outgoing, NodeError> {
        let mut producer = node.producer(to)?;
        producer.set_span(node.ring_span());
        Ok(Outgoing {
            producer,
            inbox: node.inbox(to)?,
            me: node.rank() as usize,
            to,
            announced: false,
            usual: false,
            wants_space: None,
            looks: 0,
            condemned: false,
        })
    }

    /// Sends a payload of eight bytes.
    #[inline]
    pub fn put_word(&mut self, am: Am, header: Header, word: u64) -> Result<(), Refused> {
        let result = self.producer.push_word(am, header, word);
        self.after(result, 8)
    }

    /// Sends a contiguous payload of at most the length of a pooled fragment.
    #[inline]
    pub fn put_bytes(
        &mut self,
        frags: &RefCell<FragPool>,
        am: Am,
        header: Header,
        bytes: &[u8],
    ) -> Result<(), Refused> {
        let len = bytes.len();
        let result = if len <= self.producer.longest() {
            self.producer.push_bytes(am, header, bytes)
        } else {
            self.put_fragment(frags, am, header, len, |place| copy(bytes, place))
        };
        self.after(result, len)
    }

    /// Sends a payload of `len` bytes, at most the length of a pooled fragment; `fill` writes it.
    #[inline]
    pub fn put(
        &mut self,
        frags: &RefCell<FragPool>,
        am: Am,
        header: Header,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Refused> {
        let result = if len <= self.producer.longest() {
            self.producer.push(am, header, len, fill)
        } else {
            self.put_fragment(frags, am, header, len, fill)
        };
        self.after(result, len)
    }

    fn put_fragment(
        &mut self,
        frags: &RefCell<FragPool>,
        am: Am,
        header: Header,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Full> {
        // A free cell is checked first: without a cell, the receiver could not be notified of a filled fragment.
        if !self.producer.has_cell() {
            return Err(Full);
        }
        let mut frags = frags.try_borrow_mut().map_err(|_| Full)?;
        let token = frags.fill(self.to, len, fill).ok_or(Full)?;
        self.producer.push_elsewhere(am, header, len, token)
    }

    #[inline(always)]
    fn after(&mut self, result: Result<(), Full>, len: usize) -> Result<(), Refused> {
        if result.is_err() {
            return Err(self.refused(len));
        }
        let heard = if self.usual {
            self.inbox.notify_lightly(self.me)
        } else {
            self.notify_first()
        };
        if heard { Ok(()) } else { Err(Refused::Gone) }
    }

    /// Returns true if this process has not polled since its latest send. `looks` is its present number of polls.
    #[inline(always)]
    pub fn goes_on(&self, looks: u32) -> bool {
        looks == self.looks
    }

    /// Records a send. `looks` is the present number of polls.
    /// Two sends without a poll between them indicate a stream, so the next cell is prefetched.
    #[inline(always)]
    pub fn go_on(&mut self, looks: u32) {
        if self.goes_on(looks) {
            self.producer.expect_next();
        } else {
            self.producer.begin_run();
        }
        self.looks = looks;
    }

    /// Announces the ring to the receiver if this is its first message,
    /// and notifies the receiver with a full fence. Returns false if the receiver has ended.
    #[cold]
    fn notify_first(&mut self) -> bool {
        if !self.announced {
            self.announced = true;
            self.inbox.announce(self.me);
            self.usual = mpi_base::fence::register();
        }
        self.inbox.notify(self.me)
    }

    /// Populates the first pages of the ring; see [`Producer::populate_first`].
    pub fn populate_first(&mut self, bytes: usize) {
        self.producer.populate_first(bytes);
    }

    /// Populates the next pages of the ring. Returns false if the ring is unused or all pages exist; see [`Producer::populate_ahead`].
    pub fn populate_ahead(&mut self) -> bool {
        !self.condemned && self.producer.populate_ahead()
    }

    /// Stops sending to the receiver.
    pub fn condemn(&mut self) {
        self.condemned = true;
        self.wants_space = None;
    }

    /// Returns true if the receiver has written an invalid position into the ring.
    pub fn is_broken(&self) -> bool {
        self.producer.is_broken() && !self.condemned
    }

    /// Returns the local rank that reads the ring.
    pub fn to(&self) -> u32 {
        self.to
    }

    /// Returns true if sending was stopped by [`Outgoing::condemn`].
    pub fn is_condemned(&self) -> bool {
        self.condemned
    }

    #[cold]
    fn refused(&mut self, len: usize) -> Refused {
        if self.condemned || self.inbox.doorbell().wishes() & GONE != 0 {
            return Refused::Gone;
        }
        self.wants_space = Some(len);
        Refused::Full
    }

    pub fn wants_space(&self) -> bool {
        self.wants_space.is_some()
    }

    /// Requests a doorbell for the time when the refused payload has space. Returns true if it already has space.
    pub fn call_for_room(&mut self, all: &[RefCell<Outgoing>], frags: &mut FragPool) -> bool {
        let Some(len) = self.wants_space else {
            return false;
        };
        self.call();
        let in_ring = len <= self.producer.longest();
        if !in_ring && let Some(slowest) = frags.slowest() {
            // The slowest receiver, which holds a fragment, may be another rank; then it is called, too.
            // If it is this ring's own receiver, `try_borrow` fails, because `self` is borrowed; `self.call()` has already called it.
            if let Some(Ok(holder)) = all.get(slowest as usize).map(RefCell::try_borrow) {
                holder.call();
            }
        }
        let room = if in_ring {
            self.producer.has_room(len)
        } else {
            self.producer.has_cell() && frags.has_free()
        };
        if room {
            self.wants_space = None;
        }
        room
    }

    fn call(&self) {
        self.inbox.want_space(self.me);
        self.inbox.notify(self.me);
    }
}
