//! One peer in ob1: its transport, and the state of each protocol for it.
//!
//! Each protocol has a struct for its state, whose fields only the protocol's module accesses.

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

/// The result of a peer lookup. Peers of this job stay; those of other jobs are removed when no
/// communicator names them any more.
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
    /// Creates a peer with this transport, for `sharing` ranks per core.
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

    /// Returns the peer's address in its transport.
    pub(super) fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// Returns the transport's limits.
    #[inline]
    pub(super) fn limits(&self) -> &Limits {
        &self.info.limits
    }

    /// Returns true if fragments may be requested again, so that a send in fragments completes only with the receiver's FIN.
    pub(super) fn is_fin_required(&self) -> bool {
        self.info.relies_on_senders
    }

    /// Returns the fragment length for `bytes` bytes of a message; see [`Capabilities::fragment`](crate::btl::Capabilities::fragment).
    pub(super) fn fragment(&self, bytes: u64, packed: bool, alone: bool) -> usize {
        let able = self.btl.capabilities();
        able.fragment(self.limits(), bytes, packed, alone)
    }

    /// Returns the fragment length of the eager pipeline; see [`Capabilities::eager_fragment`](crate::btl::Capabilities::eager_fragment).
    pub(super) fn eager_fragment(&self, bytes: u64, packed: bool) -> Option<usize> {
        let able = self.btl.capabilities();
        able.eager_fragment(self.limits(), self.endpoint, bytes, packed)
    }

    /// Returns true unless an accepted message waits for the connection to the peer.
    #[inline]
    pub(super) fn is_connected(&self) -> bool {
        !self.info.connects || self.btl.capabilities().is_connected(self.endpoint)
    }

    /// Returns true if a new message of this size, below the eager limit, may be sent now; the caller then sends it.
    #[inline]
    pub(super) fn lets_through(&self, bytes: usize) -> bool {
        self.queue.is_empty() && self.credit.spend(bytes) >= 0
    }

    /// Returns the eager credit.
    #[inline]
    pub(super) fn credit(&self) -> &Credit {
        &self.credit
    }

    /// Returns the throttle state that this process has set.
    pub(super) fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// Returns the single-copy methods that work with this peer.
    #[inline]
    pub(super) fn copying(&self) -> &Copying {
        &self.copying
    }

    /// Returns the chooser between single copy and fragments.
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

    /// Returns the queue of sends in fragments.
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
