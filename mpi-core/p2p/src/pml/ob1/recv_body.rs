//! What a receive remembers: where its data belong, what it accepts, and what has come of a message that comes piece by piece.
//!
//! Most receives never learn of pieces, so what is known of them lies apart.

use super::incoming::Incoming;
use super::matching::{Key, Matching};
use crate::btl::ProcId;
use crate::datatype::{RecvBytes, Room};
use crate::request::id::ReqId;
use mpi_base::state::About;
use std::cell::Cell;
use std::rc::Rc;

/// A receive under way.
pub struct RecvBody {
    buf: Room,
    key: Key,
    /// The receiver's rank in the communicator, for error texts.
    receiver: i32,
    matching: Rc<Matching>,
    /// Set once a message was matched whose data come piece by piece; apart, because most receives never have it.
    incoming: Option<Box<Incoming>>,
}

impl RecvBody {
    /// Where from, with which tag, how many bytes at most: what the state page tells.
    pub fn about(&self) -> About {
        self.matching.about(self.key, self.buf.bytes())
    }

    /// Whether it holds no memory beyond its own.
    #[inline]
    pub(crate) fn is_light(&self) -> bool {
        matches!(self.buf, Room::Bytes(_)) && self.incoming.is_none()
    }

    /// Whether its messages come in this context.
    #[inline]
    pub(crate) fn is_in(&self, matching: &Rc<Matching>) -> bool {
        Rc::ptr_eq(&self.matching, matching)
    }

    /// Makes a [light](RecvBody::is_light) receive another one of the same context.
    #[inline(always)]
    pub(crate) fn renew(&mut self, bytes: RecvBytes, key: Key, receiver: i32) {
        // Word by word: what is put together elsewhere and then copied in one piece stalls the processor.
        if let Room::Bytes(place) = &mut self.buf {
            *place = bytes;
        }
        self.key = key;
        self.receiver = receiver;
    }

    /// What can complete it: a message of this context and key, or the process whose message it has met.
    pub(super) fn from(&self) -> (&Matching, Key, Option<ProcId>) {
        let incoming = self.incoming.as_ref().map(|incoming| incoming.from());
        (&self.matching, self.key, incoming)
    }

    /// The message it has met, if it does not come in one go.
    pub(super) fn incoming(&self) -> Option<&Incoming> {
        self.incoming.as_deref()
    }

    /// The same, to go on with it.
    pub(super) fn incoming_mut(&mut self) -> Option<&mut Incoming> {
        self.incoming.as_deref_mut()
    }

    /// The receiver's rank in the communicator, for error texts.
    pub(super) fn receiver(&self) -> i32 {
        self.receiver
    }

    /// How many bytes it has room for.
    pub(super) fn capacity(&self) -> u64 {
        self.buf.bytes()
    }

    /// Puts a message that has come whole into its memory, as far as it fits; answers how much fits, and whether the receive is [light](RecvBody::is_light).
    #[inline]
    pub(super) fn fill(&mut self, data: &[u8]) -> (u64, bool) {
        match &mut self.buf {
            Room::Bytes(room) => {
                room.fill(data);
                (room.len() as u64, self.incoming.is_none())
            }
            room => {
                room.fill(data);
                (room.bytes(), false)
            }
        }
    }

    /// Puts a fragment where it belongs.
    pub(super) fn put_fragment(&mut self, at: u64, data: &[u8]) {
        let buf = &mut self.buf;
        let mut put = || buf.unpack_at(at as i64, data);
        match (self.incoming.as_ref()).and_then(|incoming| incoming.transfer()) {
            Some(transfer) => transfer.put(put),
            None => put(),
        }
    }

    /// Takes it out of the queue of its context; false when a message has met it.
    pub(super) fn withdraw(&self, id: ReqId) -> bool {
        self.matching.withdraw(self.key, id)
    }

    /// Whether its memory is in few and long runs.
    pub(super) fn is_in_runs(&self) -> bool {
        self.buf.is_in_runs()
    }

    /// Shows the places of the first `len` bytes to `f`, if they are in few and long runs.
    pub(super) fn in_runs<R>(
        &mut self,
        len: u64,
        f: impl FnOnce(&[&[Cell<u8>]]) -> R,
    ) -> Option<R> {
        self.buf.in_runs(len, f)
    }

    /// The whole memory as one slice, if it is one run.
    pub(super) fn contiguous(&mut self) -> Option<&mut [u8]> {
        self.buf.contiguous()
    }

    /// The message it met comes piece by piece.
    pub(super) fn expect(&mut self, incoming: Incoming) {
        self.incoming = Some(Box::new(incoming));
    }

    /// Puts packed bytes from `at` on where they belong, as far as they are wanted; answers how many were.
    pub(super) fn put(&mut self, at: u64, data: &[u8]) -> usize {
        let wanted = (self.incoming.as_ref()).map_or(u64::MAX, |incoming| incoming.wanted());
        let room = usize::try_from(wanted.saturating_sub(at)).unwrap_or(usize::MAX);
        let data = &data[..data.len().min(room)];
        self.buf.unpack_at(at as i64, data);
        data.len()
    }

    /// A receive whose message is known already.
    #[inline(always)]
    pub(crate) fn matched(buf: Room, key: Key, receiver: i32, matching: Rc<Matching>) -> RecvBody {
        RecvBody {
            buf,
            key,
            receiver,
            matching,
            incoming: None,
        }
    }
}
