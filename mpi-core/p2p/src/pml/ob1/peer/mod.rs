//! The state of one peer in ob1: its transport, and the state of each protocol.
//!
//! Each protocol has a struct for its state; only the protocol's module accesses the fields.

pub(in crate::pml) mod pipeline;

mod copying;
mod credit;
mod line;
mod queue;
mod throttle;

pub use credit::COST;
#[cfg(feature = "testing")]
pub use credit::LOOK;
pub(super) use queue::Queued;

use super::protocol_choice::ProtocolChooser;
use crate::btl::{Am, Btl, Endpoint, Header, Info, Limits, Payload, SendError};
use crate::request::id::ReqId;
use copying::Copying;
use credit::Credit;
use line::Line;
use pipeline::Pipeline;
use queue::SendQueue;
use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;
use throttle::Throttle;

pub struct Peer {
    btl: Rc<dyn Btl>,
    endpoint: Endpoint,
    /// The constant properties of the peer and its transport.
    info: Info,
    credit: Credit,
    throttle: Throttle,
    copying: Copying,
    chooser: Rc<ProtocolChooser>,
    pipeline: Pipeline,
    queue: SendQueue,
    line: Line,
    /// The receive into whose buffer a long eager message of the peer is being read.
    direct_receive: Cell<Option<ReqId>>,
}

/// The result of a peer lookup. Peers of this job are never removed; those of other jobs are removed when no
/// communicator contains them any longer.
pub enum PeerRef<'a> {
    OfJob(&'a Rc<Peer>),
    Foreign(Rc<Peer>),
}

impl Deref for PeerRef<'_> {
    type Target = Rc<Peer>;

    #[inline(always)]
    fn deref(&self) -> &Rc<Peer> {
        match self {
            PeerRef::OfJob(peer) => peer,
            PeerRef::Foreign(peer) => peer,
        }
    }
}

impl Peer {
    /// Creates the state of a peer that this transport reaches, on a node with `sharing` ranks per core.
    pub(super) fn new(btl: Rc<dyn Btl>, endpoint: Endpoint, sharing: u32) -> Peer {
        let info = *btl.info();
        Peer {
            credit: Credit::new(info.limits.eager, info.poll_is_syscall),
            throttle: Throttle::default(),
            copying: Copying::new(btl.capabilities().single_copy.is_some()),
            chooser: Rc::new(ProtocolChooser::where_cores_have(sharing)),
            pipeline: Pipeline::default(),
            queue: SendQueue::default(),
            line: Line::default(),
            direct_receive: Cell::new(None),
            info,
            btl,
            endpoint,
        }
    }

    /// Passes a message to the transport.
    #[inline]
    pub(super) fn send(
        &self,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        self.btl.send(self.endpoint, am, header, payload)
    }

    /// Returns the peer's transport.
    pub(super) fn btl(&self) -> &dyn Btl {
        &*self.btl
    }

    /// Returns the peer's transport as a counted reference.
    pub(super) fn shared_btl(&self) -> &Rc<dyn Btl> {
        &self.btl
    }

    /// Returns the peer's endpoint, its address in the transport.
    pub(super) fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// Returns the transport's message size limits.
    #[inline]
    pub(super) fn limits(&self) -> &Limits {
        &self.info.limits
    }

    /// Returns true if the receiver may request fragments again; then a send in fragments completes only with FIN.
    pub(super) fn is_fin_required(&self) -> bool {
        self.info.relies_on_senders
    }

    /// Returns the fragment length in bytes for a message of `bytes` bytes; see [`Capabilities::fragment`](crate::btl::Capabilities::fragment).
    pub(super) fn fragment(&self, bytes: u64, packed: bool, alone: bool) -> usize {
        let able = self.btl.capabilities();
        able.fragment(self.limits(), bytes, packed, alone)
    }

    /// Returns the fragment length in bytes for the eager pipeline; see [`Capabilities::eager_fragment`](crate::btl::Capabilities::eager_fragment).
    pub(super) fn eager_fragment(&self, bytes: u64, packed: bool) -> Option<usize> {
        let able = self.btl.capabilities();
        able.eager_fragment(self.limits(), self.endpoint, bytes, packed)
    }

    /// Returns false if an accepted message still waits for the connection to the peer.
    #[inline]
    pub(super) fn is_connected(&self) -> bool {
        !self.info.connects || self.btl.capabilities().is_connected(self.endpoint)
    }

    /// Returns true if a message of `bytes` bytes, within the eager limit, may be sent now: no message is queued and no poll is due.
    /// Counts the bytes as sent.
    #[inline]
    pub(super) fn lets_through(&self, bytes: usize) -> bool {
        self.queue.is_empty() && self.credit.spend(bytes) >= 0
    }

    /// Returns the sender's side of flow control.
    #[inline]
    pub(super) fn credit(&self) -> &Credit {
        &self.credit
    }

    /// Returns the receiver's side of flow control.
    pub(super) fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// Returns the state of the copy methods.
    #[inline]
    pub(super) fn copying(&self) -> &Copying {
        &self.copying
    }

    /// Returns the measurements that choose between single copy and fragments.
    pub(super) fn chooser(&self) -> &Rc<ProtocolChooser> {
        &self.chooser
    }

    /// Returns the state of the eager pipeline.
    #[inline]
    pub(super) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Returns the queue of messages that the transport has not accepted.
    #[inline]
    pub(super) fn queue(&self) -> &SendQueue {
        &self.queue
    }

    /// Returns the queue of sends to the peer in fragments.
    pub(super) fn line(&self) -> &Line {
        &self.line
    }

    /// Returns the receive into whose buffer a long eager message of the peer is being read.
    pub(super) fn direct_receive(&self) -> Option<ReqId> {
        self.direct_receive.get()
    }

    /// Sets or clears the receive of [`Peer::direct_receive`].
    pub(super) fn set_direct_receive(&self, receive: Option<ReqId>) {
        self.direct_receive.set(receive);
    }
}
