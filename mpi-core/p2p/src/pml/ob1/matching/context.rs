//! The matching state of one context: its posted receives and unexpected messages.
//!
//! No `RefCell` borrow outlives a method, so callers may pass the returned requests and messages to any module.

use super::arrived::{Arrived, Content};
use super::key::Key;
use super::posted::Posted;
use super::unexpected::Unexpected;
use crate::btl::ProcId;
use crate::group::Group;
use crate::pml::envelope::Context;
use crate::request::id::ReqId;
use mpi_base::state::{About, NO_PEER, Waits};
use mpi_types::status::ANY_SOURCE;
use std::cell::RefCell;

/// The posted receives and unexpected messages of one context.
pub struct Matching {
    context: Context,
    /// The group to which the ranks in this context's messages refer; `None` until a communicator sets it.
    peers: RefCell<Option<Group>>,
    posted: RefCell<Posted<ReqId>>,
    unexpected: RefCell<Unexpected<Arrived>>,
}

impl Matching {
    pub(in crate::pml::ob1) fn new(context: Context) -> Matching {
        Matching {
            context,
            peers: RefCell::default(),
            posted: RefCell::default(),
            unexpected: RefCell::default(),
        }
    }

    /// Returns the context to which this matching state belongs.
    #[inline]
    pub fn context(&self) -> Context {
        self.context
    }

    /// Returns true if a receive was posted or an unexpected message was kept since the context was created.
    pub(in crate::pml::ob1) fn is_used(&self) -> bool {
        self.posted.borrow().is_used() || self.unexpected.borrow().is_used()
    }

    /// Drops the group of [`Matching::set_peers`].
    pub(in crate::pml::ob1) fn forget_peers(&self) {
        self.peers.take();
    }

    /// Makes this the matching state of a new context; only if it is not used, and without peers.
    pub(in crate::pml::ob1) fn reuse(&mut self, context: Context) {
        debug_assert!(!self.is_used() && self.peers.get_mut().is_none());
        self.context = context;
    }

    /// Returns the state-page entry of a process that waits in a receive with this key and a buffer of `bytes` bytes.
    pub fn about(&self, key: Key, bytes: u64) -> About {
        About {
            waits: Waits::Recv,
            comm: self.context.number(),
            peer: match key.source() {
                ANY_SOURCE => NO_PEER,
                source => source,
            },
            proc: self.names(key).map_or(NO_PEER, |proc| proc as i32),
            tag: key.tag(),
            bytes,
            requests: 1,
            begun: 0,
        }
    }

    /// Sets the group to which the ranks in this context's messages refer.
    pub(in crate::pml::ob1) fn set_peers(&self, peers: &Group) {
        *self.peers.borrow_mut() = Some(peers.clone());
    }

    /// Returns the process at the source rank of `key`. Returns `None` for `MPI_ANY_SOURCE`, or if the
    /// communicator is not known yet.
    pub(in crate::pml::ob1) fn names(&self, key: Key) -> Option<ProcId> {
        let source = u32::try_from(key.source()).ok()?;
        self.peers.borrow().as_ref()?.proc(source)
    }

    /// Returns true if `from` has the message's source rank in the communicator, or if the communicator is not known yet.
    pub(in crate::pml::ob1) fn may_be_of(&self, key: Key, from: ProcId) -> bool {
        self.peers.borrow().is_none() || self.names(key) == Some(from)
    }

    /// Calls `of` for each process of the communicator except `me`.
    /// Returns `None` if a call returns `None`, or if the communicator is not known yet.
    pub(in crate::pml::ob1) fn of_all_but<T>(
        &self,
        me: ProcId,
        of: impl Fn(ProcId) -> Option<T>,
    ) -> Option<Vec<T>> {
        let peers = self.peers.borrow();
        let others = peers.as_ref()?.iter().filter(|&proc| proc != me);
        others.map(of).collect()
    }

    /// Appends a receive to the posted receives.
    #[inline(always)]
    pub(in crate::pml::ob1) fn post(&self, key: Key, receive: ReqId) {
        self.posted.borrow_mut().post(key, receive);
    }

    /// Removes and returns the receive that a message of this key matches.
    #[inline(always)]
    pub(in crate::pml::ob1) fn take_posted(&self, message: Key) -> Option<ReqId> {
        self.posted.borrow_mut().take(message)
    }

    /// Returns the receive that a message of this key would match.
    pub(in crate::pml::ob1) fn peek_posted(&self, message: Key) -> Option<ReqId> {
        self.posted.borrow().peek(message).copied()
    }

    /// Removes a receive from its queue. Returns false if a message has already matched the receive.
    pub(in crate::pml::ob1) fn withdraw(&self, key: Key, receive: ReqId) -> bool {
        self.posted.borrow_mut().remove(key, &receive)
    }

    /// Returns true if there is no unexpected message.
    #[inline(always)]
    pub(in crate::pml::ob1) fn has_no_unexpected(&self) -> bool {
        self.unexpected.borrow().is_empty()
    }

    /// Returns the number of posted receives and of unexpected messages.
    pub fn lengths(&self) -> (usize, usize) {
        (self.posted.borrow().len(), self.unexpected.borrow().len())
    }

    /// Returns the keys and lengths in bytes of the unexpected messages, in no particular order.
    /// Messages whose data have not arrived are included.
    pub fn unexpected(&self) -> Vec<(Key, u64)> {
        let unexpected = self.unexpected.borrow();
        let messages = unexpected.messages();
        messages
            .map(|(key, message)| (key, message.content.bytes()))
            .collect()
    }

    /// Returns the keys of the unexpected messages, in order of arrival.
    pub fn unexpected_keys(&self) -> Vec<Key> {
        self.unexpected.borrow().keys()
    }

    /// Adds an unexpected message.
    pub(in crate::pml::ob1) fn keep(&self, key: Key, message: Arrived) {
        self.unexpected.borrow_mut().push(key, message);
    }

    /// Removes and returns the earliest unexpected message that a receive with this key accepts.
    #[inline]
    pub(in crate::pml::ob1) fn take_unexpected(&self, receive: Key) -> Option<(Key, Arrived)> {
        self.unexpected.borrow_mut().take(receive)
    }

    /// Returns the key and the length in bytes of the earliest unexpected message that a receive with this key accepts.
    #[inline]
    pub(in crate::pml::ob1) fn peek_unexpected(&self, receive: Key) -> Option<(Key, u64)> {
        if self.unexpected.borrow().is_empty() {
            return None;
        }
        let mut unexpected = self.unexpected.borrow_mut();
        let (key, arrived) = unexpected.peek(receive)?;
        Some((key, arrived.content.bytes()))
    }

    /// Discards the unexpected message that the request `send` of the process `from` announced.
    /// Returns true if the message existed, that is, no receive had matched it.
    pub(in crate::pml::ob1) fn drop_announced(&self, key: Key, from: ProcId, send: ReqId) -> bool {
        let is = |message: &Arrived| match &message.content {
            Content::Rendezvous(announced) => message.from == from && announced.sender == send,
            _ => false,
        };
        self.unexpected.borrow_mut().take_one(key, is).is_some()
    }

    /// Removes and returns all unexpected messages.
    pub(in crate::pml::ob1) fn take_all(&self) -> impl Iterator<Item = Arrived> + use<> {
        self.unexpected.take().into_messages()
    }

    /// Returns true if a receive with this key would be the first for its messages: no unexpected message matches the key,
    /// and no posted receive accepts any message that this key accepts.
    #[inline]
    pub(in crate::pml::ob1) fn is_next(&self, key: Key) -> bool {
        let alone = self.unexpected.borrow().is_empty() && self.posted.borrow().is_empty();
        alone || self.is_next_among(key)
    }

    #[inline(never)]
    fn is_next_among(&self, key: Key) -> bool {
        let posted = self.posted.borrow();
        // A wildcard key accepts messages of many keys. Only a search of all posted receives
        // could find one that accepts any of these messages, so a wildcard requires that no receive is posted.
        let first = match key.is_exact() {
            true => posted.peek(key).is_none(),
            false => posted.is_empty(),
        };
        first && self.unexpected.borrow_mut().peek(key).is_none()
    }
}
