//! The matching state of one context: the receives and messages that have not met.
//!
//! No borrow outlives a method, so the requests and messages that come out may be given to any other part.

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

/// One context's receives and messages that have not met.
pub struct Matching {
    context: Context,
    /// The processes that ranks name, once a communicator has said so.
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

    /// The communicator and plane whose receives and messages meet here.
    #[inline]
    pub fn context(&self) -> Context {
        self.context
    }

    /// What the state page tells of a process that waits here for a message of this key.
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
        }
    }

    /// From now on ranks in this context's messages name these processes.
    pub(in crate::pml::ob1) fn set_peers(&self, peers: &Group) {
        *self.peers.borrow_mut() = Some(peers.clone());
    }

    /// The process a key names, if it names one.
    pub(in crate::pml::ob1) fn names(&self, key: Key) -> Option<ProcId> {
        let source = u32::try_from(key.source()).ok()?;
        self.peers.borrow().as_ref()?.proc(source)
    }

    /// Whether the communicator, if this process knows it, gives `from` the rank that the message names.
    pub(in crate::pml::ob1) fn may_be_of(&self, key: Key, from: ProcId) -> bool {
        self.peers.borrow().is_none() || self.names(key) == Some(from)
    }

    /// What `of` says of each process of the communicator but `me`; `None` if it says nothing of one, or the communicator is not known.
    pub(in crate::pml::ob1) fn of_all_but<T>(
        &self,
        me: ProcId,
        of: impl Fn(ProcId) -> Option<T>,
    ) -> Option<Vec<T>> {
        let peers = self.peers.borrow();
        let others = peers.as_ref()?.iter().filter(|&proc| proc != me);
        others.map(of).collect()
    }

    /// Posts a receive behind all others.
    #[inline(always)]
    pub(in crate::pml::ob1) fn post(&self, key: Key, receive: ReqId) {
        self.posted.borrow_mut().post(key, receive);
    }

    /// Takes the receive for a message of this key.
    #[inline(always)]
    pub(in crate::pml::ob1) fn take_posted(&self, message: Key) -> Option<ReqId> {
        self.posted.borrow_mut().take(message)
    }

    /// The receive that a message of this key would meet.
    pub(in crate::pml::ob1) fn peek_posted(&self, message: Key) -> Option<ReqId> {
        self.posted.borrow().peek(message).copied()
    }

    /// Takes a receive out of its queue; false when a message has met it.
    pub(in crate::pml::ob1) fn withdraw(&self, key: Key, receive: ReqId) -> bool {
        self.posted.borrow_mut().remove(key, &receive)
    }

    /// Whether no message waits here.
    #[inline(always)]
    pub(in crate::pml::ob1) fn has_no_unexpected(&self) -> bool {
        self.unexpected.borrow().is_empty()
    }

    /// The keys of the messages that wait here, in the order of their arrival.
    pub fn unexpected_keys(&self) -> Vec<Key> {
        self.unexpected.borrow().keys()
    }

    /// Keeps a message that no receive has asked for.
    pub(in crate::pml::ob1) fn keep(&self, key: Key, message: Arrived) {
        self.unexpected.borrow_mut().push(key, message);
    }

    /// Takes the earliest message that a receive with this key accepts.
    #[inline]
    pub(in crate::pml::ob1) fn take_unexpected(&self, receive: Key) -> Option<(Key, Arrived)> {
        self.unexpected.borrow_mut().take(receive)
    }

    /// The key and the length of the earliest message that a receive with this key accepts.
    pub(in crate::pml::ob1) fn peek_unexpected(&self, receive: Key) -> Option<(Key, u64)> {
        let mut unexpected = self.unexpected.borrow_mut();
        let (key, arrived) = unexpected.peek(receive)?;
        Some((key, arrived.content.bytes()))
    }

    /// Drops the message that this send of `from` has announced; answers whether it was still here.
    pub(in crate::pml::ob1) fn drop_announced(&self, key: Key, from: ProcId, send: ReqId) -> bool {
        let is = |message: &Arrived| match &message.content {
            Content::Rendezvous(announced) => message.from == from && announced.sender == send,
            _ => false,
        };
        self.unexpected.borrow_mut().take_one(key, is).is_some()
    }

    /// Takes all messages that wait here.
    pub(in crate::pml::ob1) fn take_all(&self) -> impl Iterator<Item = Arrived> + use<> {
        self.unexpected.take().into_messages()
    }

    /// Whether nothing that a receive with this key accepts has arrived, and nothing that it will accept is another receive's.
    #[inline]
    pub(in crate::pml::ob1) fn is_next(&self, key: Key) -> bool {
        let alone = self.unexpected.borrow().is_empty() && self.posted.borrow().is_empty();
        alone || self.is_next_among(key)
    }

    #[inline(never)]
    fn is_next_among(&self, key: Key) -> bool {
        let posted = self.posted.borrow();
        // A receive with wildcards accepts messages of many keys, and what is posted for one of them would have to be looked for among all.
        let first = match key.is_exact() {
            true => posted.peek(key).is_none(),
            false => posted.is_empty(),
        };
        first && self.unexpected.borrow_mut().peek(key).is_none()
    }
}
