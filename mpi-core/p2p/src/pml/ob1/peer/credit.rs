//! How much may be sent to a peer unasked: the sender's side of flow control.
//!
//! The eager limit that each send compares its size with is one word; an order to ask first sets it to nothing.
//! A sender that never waits would not hear the order, so it looks at its transports once in [`LOOK`] bytes.

use std::cell::Cell;

/// What a kept message takes besides its data: its place in the queues and what the allocator adds.
pub const COST: usize = 128;

/// A sender looks for what its peer has to say once in so many bytes, of which each message takes as many as it would if it were kept.
/// A look costs as much as a few short messages.
pub const LOOK: isize = 1 << 20;

pub struct Credit {
    /// The eager limit of the transport.
    eager: usize,
    /// Messages shorter than this travel unasked: the eager limit and one, or nothing while the peer holds too much.
    eager_below: Cell<usize>,
    /// Whether the peer has to be connected first, and nothing has been sent to it yet.
    unconnected: Cell<bool>,
    /// So much may be sent unasked before we hear whether the peer holds too much.
    unpolled_bytes: Cell<isize>,
}

impl Credit {
    /// Of a peer that nothing has been sent to, which may have to be connected first.
    pub(super) fn new(eager: usize, unconnected: bool) -> Credit {
        Credit {
            eager,
            // The first message takes the general path, which sees to its being on its way.
            eager_below: Cell::new(match unconnected {
                true => 0,
                false => eager + 1,
            }),
            unconnected: Cell::new(unconnected),
            unpolled_bytes: Cell::new(LOOK),
        }
    }

    /// Up to which length messages travel unasked; exclusive.
    #[inline]
    pub fn eager_below(&self) -> usize {
        self.eager_below.get()
    }

    /// Whether everything has to ask first.
    pub fn is_withdrawn(&self) -> bool {
        self.eager_below.get() == 0
    }

    /// The peer holds too much, so that everything is to ask first, or it does not any more.
    pub fn withdraw(&self, withdrawn: bool) {
        self.eager_below.set(match withdrawn {
            true => 0,
            false => self.eager + 1,
        });
    }

    /// A message of the peer has come, so there is a connection.
    pub fn was_heard(&self) {
        self.unconnected.set(false);
    }

    /// A first message is on its way by the general path; those behind it need not take that.
    pub fn connects(&self) {
        if self.unconnected.replace(false) {
            self.eager_below.set(self.eager + 1);
        }
    }

    /// So many bytes are sent unasked; answers how many more may be before we hear of it.
    #[inline]
    pub fn spend(&self, bytes: usize) -> isize {
        let unpolled_bytes = self.unpolled_bytes.get() - (bytes + COST) as isize;
        self.unpolled_bytes.set(unpolled_bytes);
        unpolled_bytes
    }

    /// Whether it is time to look at the transports.
    pub fn is_spent(&self) -> bool {
        self.unpolled_bytes.get() < 0
    }

    /// The transports have been looked at.
    pub fn renew(&self) {
        self.unpolled_bytes.set(LOOK);
    }
}
