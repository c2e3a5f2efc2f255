//! The bounded pool of send buffers of a fabric transport.
//!
//! A library that does not transmit a message immediately refers to its buffer until the transmission is complete.
//! The pool limits the memory of these buffers.
//! Short buffers are numerous, so that short messages do not wait for long ones. Buffers are allocated when they are first needed.

use super::frame::HEADER;
use crate::btl::ProcId;
use std::cell::RefCell;

/// Length of a short buffer in bytes, with the frame header.
const SHORT: usize = 1 << 10;
/// Maximum number of short buffers.
const SHORTS: usize = 1 << 10;

/// A send buffer with a message. It is boxed, so its address does not change.
pub type Slot = Box<Buffer>;

/// A send buffer. The context is the first field, so the context's address is also the buffer's address.
#[repr(C)]
pub struct Buffer {
    /// Memory that some libraries use while they transmit the message.
    context: [u64; 8],
    bytes: Box<[u8]>,
    len: usize,
    /// The peer to which the message is sent.
    pub peer: ProcId,
    /// A value that the port stores while it owns the buffer.
    pub tag: usize,
}

impl Buffer {
    fn new(len: usize) -> Slot {
        Box::new(Buffer {
            context: [0; 8],
            bytes: vec![0; len].into(),
            len: 0,
            peer: ProcId::MAX,
            tag: 0,
        })
    }

    /// Returns the frame header of the message.
    pub fn head(&self) -> &[u8] {
        &self.bytes[..HEADER]
    }

    /// Returns the payload of the message.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[HEADER..HEADER + self.len]
    }

    /// Returns the frame header and the payload.
    pub fn message(&self) -> &[u8] {
        &self.bytes[..HEADER + self.len]
    }

    /// Returns the whole memory of the buffer, for its registration with a library.
    pub fn whole(&self) -> &[u8] {
        &self.bytes
    }

    /// Sets the frame header.
    pub fn set_head(&mut self, head: &[u8; HEADER]) {
        self.bytes[..HEADER].copy_from_slice(head);
    }

    /// Returns the payload for writing.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[HEADER..HEADER + self.len]
    }
}

/// The free buffers of a transport, short and long ones,
/// and the number of buffers that may still be allocated.
pub struct Pool {
    /// Length of a long buffer in bytes.
    long: usize,
    free: RefCell<[Class; 2]>,
}

struct Class {
    slots: Vec<Slot>,
    unmade: usize,
}

impl Pool {
    /// Creates a pool with up to `longs` long buffers for payloads of at most `max` bytes.
    pub fn new(max: usize, longs: usize) -> Pool {
        let class = |unmade| Class {
            slots: Vec::new(),
            unmade,
        };
        Pool {
            long: (max + HEADER).max(SHORT),
            free: RefCell::new([class(SHORTS), class(longs.max(1))]),
        }
    }

    /// Returns a buffer for a payload of `len` bytes; `None` if all buffers of this size are in use.
    #[inline]
    pub fn take(&self, len: usize) -> Option<Slot> {
        let which = usize::from(len + HEADER > SHORT);
        let class = &mut self.free.borrow_mut()[which];
        let mut slot = match class.slots.pop() {
            Some(slot) => slot,
            None => {
                class.unmade = class.unmade.checked_sub(1)?;
                Buffer::new([SHORT, self.long][which])
            }
        };
        slot.len = len;
        Some(slot)
    }

    /// Returns a buffer to the pool.
    #[inline]
    pub fn put(&self, slot: Slot) {
        let which = usize::from(slot.bytes.len() > SHORT);
        self.free.borrow_mut()[which].slots.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_ends_and_a_returned_buffer_is_used_again() {
        let pool = Pool::new(64 << 10, 3);
        for (len, most) in [(8, SHORTS), (50_000, 3)] {
            let mut taken: Vec<Slot> = (0..most).filter_map(|_| pool.take(len)).collect();
            assert_eq!(taken.len(), most);
            assert!(pool.take(len).is_none());
            let slot = taken.pop().expect("there are some");
            assert_eq!(slot.payload().len(), len);
            pool.put(slot);
            let again = pool.take(len - 1).expect("one was returned");
            assert_eq!(again.payload().len(), len - 1);
            assert!(pool.take(len).is_none());
        }
    }
}
