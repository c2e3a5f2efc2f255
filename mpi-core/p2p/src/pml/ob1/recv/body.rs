//! What a receive remembers: where its data belong, what it accepts, and what has come of a message that comes piece by piece.
//!
//! Most receives never learn of pieces, so what is known of them lies apart.

use crate::btl::ProcId;
use crate::datatype::{RecvBytes, Room};
use crate::pml::PmlError;
use crate::pml::ob1::Matching;
use crate::pml::ob1::matching::Key;
use crate::pml::ob1::protocol_choice::TimedTransfer;
use crate::pml::ob1::single_copy::Shared;
use crate::request::ReqId;
use mpi_base::state::About;
use std::cell::Cell;
use std::rc::Rc;

/// A receive under way.
pub struct RecvBody {
    pub(super) buf: Room,
    pub(super) key: Key,
    /// The receiver's rank in the communicator, for error texts.
    pub(super) receiver: i32,
    pub(super) matching: Rc<Matching>,
    /// Set once a message was matched whose data come piece by piece; apart, because most receives never have it.
    pub(super) incoming: Option<Box<Incoming>>,
}

pub(in crate::pml::ob1) struct Incoming {
    pub(in crate::pml::ob1) from: ProcId,
    pub(in crate::pml::ob1) received: u64,
    pub(in crate::pml::ob1) wanted: u64,
    /// The send that waits for our word that all has come.
    pub(super) sender: Option<ReqId>,
    /// Reported when all that fits has come.
    pub(super) truncated: Option<PmlError>,
    /// Set while both sides work on one copy.
    pub(in crate::pml::ob1) shared: Option<Shared>,
    /// Set if it is measured how fast it comes.
    pub(in crate::pml::ob1) transfer: Option<TimedTransfer>,
}

impl Incoming {
    /// A message that nothing has come of yet.
    pub(in crate::pml::ob1) fn of(
        from: ProcId,
        wanted: u64,
        truncated: Option<PmlError>,
    ) -> Incoming {
        Incoming {
            from,
            received: 0,
            wanted,
            sender: None,
            truncated,
            shared: None,
            transfer: None,
        }
    }
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
    pub(in crate::pml::ob1) fn from(&self) -> (&Matching, Key, Option<ProcId>) {
        let incoming = self.incoming.as_ref().map(|incoming| incoming.from);
        (&self.matching, self.key, incoming)
    }

    /// The message it has met, if it does not come in one go.
    pub(in crate::pml::ob1) fn incoming(&mut self) -> Option<&mut Incoming> {
        self.incoming.as_deref_mut()
    }

    /// Whether its memory is in few and long runs.
    pub(in crate::pml::ob1) fn is_in_runs(&self) -> bool {
        self.buf.is_in_runs()
    }

    /// Shows the places of the first `len` bytes to `f`, if they are in few and long runs.
    pub(in crate::pml::ob1) fn in_runs<R>(
        &mut self,
        len: u64,
        f: impl FnOnce(&[&[Cell<u8>]]) -> R,
    ) -> Option<R> {
        self.buf.in_runs(len, f)
    }

    /// The whole memory as one slice, if it is one run.
    pub(in crate::pml::ob1) fn contiguous(&mut self) -> Option<&mut [u8]> {
        self.buf.contiguous()
    }

    /// The message it met comes piece by piece.
    pub(in crate::pml::ob1) fn expect(&mut self, incoming: Incoming) {
        self.incoming = Some(Box::new(incoming));
    }

    /// Puts packed bytes from `at` on where they belong, as far as they are wanted; answers how many were.
    pub(in crate::pml::ob1) fn put(&mut self, at: u64, data: &[u8]) -> usize {
        let wanted = (self.incoming.as_ref()).map_or(u64::MAX, |incoming| incoming.wanted);
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
