//! What a process needs to send to one peer of its node.

use std::cell::RefCell;

use mpi_base::copy::copy;
use mpi_base::doorbell::GONE;
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use mpi_base::node::{FragPool, Node, NodeError};
use mpi_base::ring::{Full, Producer};

use super::super::{Am, Header};
use super::span::SHORT;

/// Why nothing was sent.
pub(super) enum Refused {
    Full,
    Gone,
}

/// A payload that the ring can take goes into the ring, and only a longer one into a pooled fragment:
/// a ring that is read as fast as it is written uses the same few pages again and again, and no more than a few messages are on their way,
/// so they stay in the caches.
/// Streams of 16 and 32 KiB made 50 GB/s there and 35 through pooled fragments, where both cores share a cache.
pub(super) struct Outgoing {
    producer: Producer,
    /// The receiver's.
    inbox: Held<Inbox>,
    me: usize,
    to: u32,
    /// Whether the receiver knows of our ring.
    announced: bool,
    /// Whether it does and also executes our fences for us: the usual case, in one look.
    usual: bool,
    /// The length of the payload that found no room last, until one finds it.
    starving: Option<usize>,
    /// How often the process had looked for messages when it sent last.
    looks: u32,
    /// The receiver cannot be believed.
    condemned: bool,
}

impl Outgoing {
    pub fn new(node: &Node, to: u32) -> Result<Outgoing, NodeError> {
        let mut producer = node.producer(to)?;
        producer.set_span(SHORT);
        Ok(Outgoing {
            producer,
            inbox: node.inbox(to)?,
            me: node.rank() as usize,
            to,
            announced: false,
            usual: false,
            starving: None,
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

    /// Sends a payload that lies in memory, at most as long as a fragment.
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

    /// Sends a payload of `len` bytes that `fill` writes, at most as long as a fragment.
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
        // The cell comes first: a filled fragment that the receiver is not told of would be lost.
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

    /// Whether what is sent after `looks` looks for messages follows something else without a look between them.
    #[inline(always)]
    pub fn goes_on(&self, looks: u32) -> bool {
        looks == self.looks
    }

    /// A message has been sent after `looks` looks for others; one that follows another without a look between them is not the last either.
    #[inline(always)]
    pub fn go_on(&mut self, looks: u32) {
        if self.goes_on(looks) {
            self.producer.expect_next();
        }
        self.looks = looks;
    }

    /// As long as the receiver may not know us, or cannot execute our fences.
    #[cold]
    fn notify_first(&mut self) -> bool {
        if !self.announced {
            self.announced = true;
            self.inbox.announce(self.me);
            self.usual = mpi_base::fence::register();
        }
        self.inbox.notify(self.me)
    }

    /// Sends nothing any more.
    pub fn condemn(&mut self) {
        self.condemned = true;
        self.starving = None;
    }

    /// Whether the receiver has said of the ring what no receiver of ours says.
    pub fn is_broken(&self) -> bool {
        self.producer.is_broken() && !self.condemned
    }

    /// The local rank that reads the ring.
    pub fn to(&self) -> u32 {
        self.to
    }

    /// Whether nothing is sent any more.
    pub fn is_condemned(&self) -> bool {
        self.condemned
    }

    #[cold]
    fn refused(&mut self, len: usize) -> Refused {
        if self.condemned || self.inbox.bell().wishes() & GONE != 0 {
            return Refused::Gone;
        }
        self.starving = Some(len);
        Refused::Full
    }

    pub fn is_starving(&self) -> bool {
        self.starving.is_some()
    }

    /// Asks to be rung when there is room for the payload that found none, and answers whether there is already.
    pub fn call_for_room(&mut self, all: &[RefCell<Outgoing>], frags: &mut FragPool) -> bool {
        let Some(len) = self.starving else {
            return false;
        };
        self.call();
        let in_ring = len <= self.producer.longest();
        if !in_ring && let Some(slowest) = frags.slowest() {
            // The fragment that we need may be with another receiver; our own entry is borrowed and has been called.
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
            self.starving = None;
        }
        room
    }

    fn call(&self) {
        self.inbox.starve(self.me);
        self.inbox.notify(self.me);
    }
}
