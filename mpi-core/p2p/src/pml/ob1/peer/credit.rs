//! The sender's side of flow control: the limits for eager messages to one peer.
//!
//! Each send compares its length with one variable, `eager_below`; THROTTLE sets this variable to zero.
//! A sender that never waits would not receive THROTTLE, so it polls its transports after every [`LOOK`] bytes of eager data.

use std::cell::Cell;

/// The overhead of a buffered message in bytes: its queue entries and the allocator's administration.
pub const COST: usize = 128;

/// The number of eager bytes between two polls for THROTTLE. Each message counts as its length plus [`COST`],
/// because the receiver may have to buffer it.
/// A poll costs as much time as a few short messages.
pub const LOOK: isize = 1 << 20;

pub struct Credit {
    /// The eager limit of the transport in bytes.
    eager: usize,
    /// Messages shorter than this (in bytes) are sent eagerly. The value is the eager limit plus one, or zero
    /// while the peer throttles this process or is not connected.
    eager_below: Cell<usize>,
    /// True until the first message has been sent to or received from the peer;
    /// the connection may have to be established first.
    unconnected: Cell<bool>,
    /// The remaining eager bytes before the next poll for THROTTLE.
    unpolled_bytes: Cell<isize>,
}

impl Credit {
    /// Creates the credit for a peer to which no message has been sent.
    /// `unconnected` is true if a connection may have to be established first.
    pub(super) fn new(eager: usize, unconnected: bool) -> Credit {
        Credit {
            eager,
            // The first message takes the general path, which sends it after the connection is established.
            eager_below: Cell::new(match unconnected {
                true => 0,
                false => eager + 1,
            }),
            unconnected: Cell::new(unconnected),
            unpolled_bytes: Cell::new(LOOK),
        }
    }

    /// Returns the length in bytes below which messages are sent eagerly.
    #[inline]
    pub fn eager_below(&self) -> usize {
        self.eager_below.get()
    }

    /// Returns true if every message must use rendezvous.
    pub fn is_withdrawn(&self) -> bool {
        self.eager_below.get() == 0
    }

    /// Handles THROTTLE: if `withdrawn`, every message must use rendezvous; otherwise eager messages are permitted again.
    pub fn withdraw(&self, withdrawn: bool) {
        self.eager_below.set(match withdrawn {
            true => 0,
            false => self.eager + 1,
        });
    }

    /// Records that a message of the peer has arrived; so the connection exists.
    pub fn was_heard(&self) {
        self.unconnected.set(false);
    }

    /// Records that the first message has been sent by the general path; later messages may use the fast path.
    pub fn connects(&self) {
        if self.unconnected.replace(false) {
            self.eager_below.set(self.eager + 1);
        }
    }

    /// Counts `bytes` bytes as sent eagerly. Returns the remaining bytes before the next poll; negative if a poll is due.
    #[inline]
    pub fn spend(&self, bytes: usize) -> isize {
        let unpolled_bytes = self.unpolled_bytes.get() - (bytes + COST) as isize;
        self.unpolled_bytes.set(unpolled_bytes);
        unpolled_bytes
    }

    /// Returns true if a poll for THROTTLE is due.
    pub fn is_spent(&self) -> bool {
        self.unpolled_bytes.get() < 0
    }

    /// Records that the transports have been polled.
    pub fn renew(&self) {
        self.unpolled_bytes.set(LOOK);
    }
}
