//! The state of a receive: its buffer, its key, and the progress of a message that arrives in several parts.
//!
//! The progress is allocated separately, because most receives do not need it.

use super::incoming::Incoming;
use super::matching::{Key, Matching};
use crate::btl::ProcId;
use crate::datatype::{Datatype, RecvBytes, RecvTarget};
use crate::pml::envelope::Context;
use crate::request::id::ReqId;
use mpi_base::accelerator::twins::{self, Part};
use mpi_base::state::About;
use std::cell::Cell;
use std::rc::Rc;

/// An active receive.
pub struct RecvBody {
    buf: RecvTarget,
    key: Key,
    /// The receiver's rank in the communicator, for error texts.
    receiver: i32,
    matching: Rc<Matching>,
    /// Set when the receive has matched a message that arrives in several parts. Boxed, because most receives do not need it.
    incoming: Option<Box<Incoming>>,
}

impl RecvBody {
    /// Returns the context in which this receive matches messages.
    pub fn context(&self) -> Context {
        self.matching.context()
    }

    /// Returns the receive's source, tag and buffer size in bytes, for the state page.
    pub fn about(&self) -> About {
        self.matching.about(self.key, self.buf.bytes())
    }

    /// Returns true if the receive is *light*: it owns no separately allocated memory.
    #[inline]
    pub(crate) fn is_light(&self) -> bool {
        matches!(self.buf, RecvTarget::Bytes(_)) && self.incoming.is_none()
    }

    /// Returns true if the receive belongs to this context.
    #[inline]
    pub(crate) fn is_in(&self, matching: &Rc<Matching>) -> bool {
        Rc::ptr_eq(&self.matching, matching)
    }

    /// Reuses a [light](RecvBody::is_light) receive for another receive in the same context.
    #[inline(always)]
    pub(crate) fn renew(&mut self, bytes: RecvBytes, key: Key, receiver: i32) {
        // Assigns single fields: building a new struct and copying it as a whole would cause failed store forwarding in the processor.
        if let RecvTarget::Bytes(place) = &mut self.buf {
            *place = bytes;
        }
        self.key = key;
        self.receiver = receiver;
    }

    /// Returns the receive's context and key,
    /// and the sender of the matched message if the message arrives in several parts.
    pub(super) fn from(&self) -> (&Matching, Key, Option<ProcId>) {
        let incoming = self.incoming.as_ref().map(|incoming| incoming.from());
        (&self.matching, self.key, incoming)
    }

    /// Returns the progress of the matched message if it arrives in several parts.
    pub(super) fn incoming(&self) -> Option<&Incoming> {
        self.incoming.as_deref()
    }

    /// Returns the same as [`RecvBody::incoming`], mutable.
    pub(super) fn incoming_mut(&mut self) -> Option<&mut Incoming> {
        self.incoming.as_deref_mut()
    }

    /// Returns the receiver's rank in the communicator, for error texts.
    pub(super) fn receiver(&self) -> i32 {
        self.receiver
    }

    /// Returns the size of the receive buffer in bytes.
    pub(super) fn capacity(&self) -> u64 {
        self.buf.bytes()
    }

    /// Returns the datatype of the buffer and the number of its elements; `None` for a buffer given as bytes.
    pub(super) fn elements(&self) -> Option<(&Datatype, i64)> {
        match &self.buf {
            RecvTarget::Bytes(_) => None,
            RecvTarget::Typed(buf) => Some((buf.datatype(), buf.count())),
        }
    }

    /// Copies a complete message into the receive buffer; bytes that do not fit are dropped.
    /// Returns the size of the buffer in bytes, and true if the receive is
    /// [light](RecvBody::is_light).
    #[inline]
    pub(super) fn fill(&mut self, data: &[u8]) -> (u64, bool) {
        match &mut self.buf {
            RecvTarget::Bytes(buffer) => {
                buffer.fill(data);
                (buffer.len() as u64, self.incoming.is_none())
            }
            buffer => {
                buffer.fill(data);
                (buffer.bytes(), false)
            }
        }
    }

    /// Copies a fragment into the receive buffer.
    pub(super) fn put_fragment(&mut self, at: u64, data: &[u8]) {
        let buf = &mut self.buf;
        let mut put = || buf.unpack_at(at as i64, data);
        match (self.incoming.as_ref()).and_then(|incoming| incoming.transfer()) {
            Some(transfer) => transfer.put(put),
            None => put(),
        }
    }

    /// Removes the receive from its context's queue. Returns false if a message has already matched the receive.
    pub(super) fn withdraw(&self, id: ReqId) -> bool {
        self.matching.withdraw(self.key, id)
    }

    /// Returns true if the receive buffer consists of few, long contiguous segments.
    pub(super) fn is_in_runs(&self) -> bool {
        self.buf.is_in_runs()
    }

    /// Calls `f` with the contiguous segments of the buffer's first `len` bytes. Returns `None` without a call if the segments are many or short.
    pub(super) fn in_runs<R>(
        &mut self,
        len: u64,
        f: impl FnOnce(&[&[Cell<u8>]]) -> R,
    ) -> Option<R> {
        self.buf.in_runs(len, f)
    }

    /// Returns the whole buffer as one slice, or `None` if it is not contiguous.
    pub(super) fn contiguous(&mut self) -> Option<&mut [u8]> {
        self.buf.contiguous()
    }

    /// Returns the device memory of which the receive buffer is the host staging copy; `None` for another buffer.
    pub(super) fn device(&mut self) -> Option<Part> {
        let all = self.contiguous()?;
        twins::of(all.as_ptr(), all.len())
    }

    /// Stores the progress of the matched message, which arrives in several parts.
    pub(super) fn expect(&mut self, mut incoming: Incoming) {
        if twins::exist() {
            incoming.set_device(self.device());
        }
        self.incoming = Some(Box::new(incoming));
    }

    /// Unpacks packed bytes `data` at offset `at` of the message; bytes that do not fit are dropped. Returns the number of bytes unpacked.
    pub(super) fn put(&mut self, at: u64, data: &[u8]) -> usize {
        let wanted = (self.incoming.as_ref()).map_or(u64::MAX, |incoming| incoming.wanted());
        let buffer = usize::try_from(wanted.saturating_sub(at)).unwrap_or(usize::MAX);
        let data = &data[..data.len().min(buffer)];
        self.buf.unpack_at(at as i64, data);
        data.len()
    }

    /// Creates a receive that is never posted, because its message has already matched.
    #[inline(always)]
    pub(crate) fn matched(
        buf: RecvTarget,
        key: Key,
        receiver: i32,
        matching: Rc<Matching>,
    ) -> RecvBody {
        RecvBody {
            buf,
            key,
            receiver,
            matching,
            incoming: None,
        }
    }
}
