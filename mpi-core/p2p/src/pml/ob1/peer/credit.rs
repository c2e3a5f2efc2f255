//! The sender's side of flow control: how much may be sent eagerly to a peer.
//!
//! Each send compares its size with one variable, the eager limit; THROTTLE sets it to zero.
//! A sender that never waits would not receive THROTTLE, so it polls its transports after every [`LOOK`] bytes of eager data.

use std::cell::Cell;

/// The memory of a buffered message besides its data: its queue entries and the allocator's overhead.
pub const COST: usize = 128;

/// The eager bytes between two polls for THROTTLE. Each message counts its size plus [`COST`],
/// as if it were buffered.
/// A poll costs as much as a few short messages.
pub const LOOK: isize = 1 << 20;

pub struct Credit {
    /// The eager limit of the transport.
    eager: usize,
    /// Messages shorter than this are sent eagerly. The value is the eager limit plus one, or zero
    /// while the peer throttles or is not connected.
    eager_below: Cell<usize>,
    /// Whether no message has been sent yet,
    /// and the connection to the peer may have to be established.
    unconnected: Cell<bool>,
    /// The eager bytes that may be sent before the next poll for THROTTLE.
    unpolled_bytes: Cell<isize>,
}

impl Credit {
    /// Creates the credit of a peer to which no message has been sent; `unconnected` if the peer may have to be connected first.
    pub(super) fn new(eager: usize, unconnected: bool) -> Credit {
        Credit {
            eager,
            // The first message takes the general path, which makes sure that it is sent.
            eager_below: Cell::new(match unconnected {
                true => 0,
                false => eager + 1,
            }),
            unconnected: Cell::new(unconnected),
            unpolled_bytes: Cell::new(LOOK),
        }
    }

    /// Returns the length below which messages are sent eagerly.
    #[inline]
    pub fn eager_below(&self) -> usize {
        self.eager_below.get()
    }

    /// Returns true if every message must use rendezvous.
    pub fn is_withdrawn(&self) -> bool {
        self.eager_below.get() == 0
    }

    /// Handles THROTTLE: every message must use rendezvous, or no longer has to.
    pub fn withdraw(&self, withdrawn: bool) {
        self.eager_below.set(match withdrawn {
            true => 0,
            false => self.eager + 1,
        });
    }

    /// Records that a message of the peer has arrived, so a connection exists.
    pub fn was_heard(&self) {
        self.unconnected.set(false);
    }

    /// Records that the first message has been sent by the general path; later messages may use the fast path.
    pub fn connects(&self) {
        if self.unconnected.replace(false) {
            self.eager_below.set(self.eager + 1);
        }
    }

    /// Counts `bytes` eager bytes. Returns the number that may be sent before the next poll.
    #[inline]
    pub fn spend(&self, bytes: usize) -> isize {
        let unpolled_bytes = self.unpolled_bytes.get() - (bytes + COST) as isize;
        self.unpolled_bytes.set(unpolled_bytes);
        unpolled_bytes
    }

    /// Returns true if the transports must be polled.
    pub fn is_spent(&self) -> bool {
        self.unpolled_bytes.get() < 0
    }

    /// Notes that the transports have been polled.
    pub fn renew(&self) {
        self.unpolled_bytes.set(LOOK);
    }
}
