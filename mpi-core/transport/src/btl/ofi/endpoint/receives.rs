//! The buffers for arriving messages. The library owns each buffer except while its message is processed.

use super::super::abi::Pointer;
use std::cell::RefCell;

/// Number of receive buffers; each buffer receives one message.
/// Buffers for several messages (`FI_MULTI_RECV`) are not used:
/// the provider `ofi_rxm` returns such a buffer before its longer messages have arrived completely.
const RECEIVES: usize = 64;

pub(super) struct ReceiveBuffers {
    all: Vec<Receive>,
    /// The indices of the buffers that the library does not own.
    unposted: RefCell<Vec<usize>>,
}

/// A buffer for one message, and the context memory that the provider needs during the receive.
pub(super) struct Receive {
    pub context: Box<[u64; 8]>,
    pub bytes: Box<[u8]>,
}

impl ReceiveBuffers {
    /// Allocates buffers for messages of at most `longest` bytes. No buffer is posted.
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

    /// Returns the next buffer to be posted, if the library does not own all buffers.
    pub fn next_unposted(&self) -> Option<&Receive> {
        let index = *self.unposted.borrow().last()?;
        self.all.get(index)
    }

    /// Records that the library has accepted the buffer that [`ReceiveBuffers::next_unposted`] returned.
    pub fn posted(&self) {
        self.unposted.borrow_mut().pop();
    }

    /// Records that the library has returned the buffer with this index.
    pub fn give_back(&self, index: usize) {
        self.unposted.borrow_mut().push(index);
    }

    /// Returns the index of the receive buffer with this context; `None` for the context of another operation.
    pub fn index_of(&self, context: Pointer) -> Option<usize> {
        let is = |receive: &Receive| context.addr() == receive.context.as_ptr().addr();
        self.all.iter().position(is)
    }

    /// Returns the `len` bytes of the message in a buffer; `None` if `len` exceeds the buffer.
    pub fn message(&self, index: usize, len: usize) -> Option<&[u8]> {
        self.all[index].bytes.get(..len)
    }
}
