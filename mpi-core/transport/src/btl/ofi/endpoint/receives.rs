//! The buffers for arriving messages. The library owns each one except while a message is read from it.

use super::super::abi::Pointer;
use std::cell::RefCell;

/// Number of receive buffers, one message each.
/// Buffers for several messages (`FI_MULTI_RECV`) are not used:
/// the provider `ofi_rxm` returns such a buffer before the longer ones of its messages are complete.
const RECEIVES: usize = 64;

pub(super) struct ReceiveBuffers {
    all: Vec<Receive>,
    /// Receive buffers that the library has returned.
    unposted: RefCell<Vec<usize>>,
}

/// A buffer for one message, and the memory that the provider needs during the receive.
pub(super) struct Receive {
    pub context: Box<[u64; 8]>,
    pub bytes: Box<[u8]>,
}

impl ReceiveBuffers {
    /// Buffers for messages of at most `longest` bytes.
    pub fn of(longest: usize) -> ReceiveBuffers {
        let receive = |_| Receive {
            context: Box::default(),
            bytes: vec![0; longest].into(),
        };
        ReceiveBuffers {
            all: (0..RECEIVES).map(receive).collect(),
            unposted: RefCell::new((0..RECEIVES).collect()),
        }
    }

    pub fn has_unposted(&self) -> bool {
        !self.unposted.borrow().is_empty()
    }

    /// Returns the next buffer that the library does not have.
    pub fn next_unposted(&self) -> Option<&Receive> {
        let index = *self.unposted.borrow().last()?;
        self.all.get(index)
    }

    /// Records that the library has taken the buffer that [`ReceiveBuffers::next_unposted`] returned.
    pub fn posted(&self) {
        self.unposted.borrow_mut().pop();
    }

    /// Records that the library has returned the buffer of this index.
    pub fn give_back(&self, index: usize) {
        self.unposted.borrow_mut().push(index);
    }

    /// Returns the index of the receive buffer of an operation.
    pub fn index_of(&self, context: Pointer) -> Option<usize> {
        let is = |receive: &Receive| context.addr() == receive.context.as_ptr().addr();
        self.all.iter().position(is)
    }

    /// Returns a message of `len` bytes; `None` if it is longer than the buffer.
    pub fn message(&self, index: usize, len: usize) -> Option<&[u8]> {
        self.all[index].bytes.get(..len)
    }
}
