//! One peer as ob1 sees it: the transport that reaches it, and what each protocol remembers of it.
//!
//! What a protocol remembers has a part of its own here, whose fields only that part touches.

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
use crate::btl::{Am, Btl, Endpoint, Header, Limits, Payload, SendError};
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
    limits: Limits,
    /// Fragments may be asked for again, so a send has ended only when the receiver says that it has all of them.
    fin_required: bool,
    credit: Credit,
    throttle: Throttle,
    copying: Copying,
    chooser: Rc<ProtocolChooser>,
    pipeline: Pipeline,
    queue: SendQueue,
    line: Line,
    /// The receive into whose memory a long eager message of the peer is being read.
    direct_receive: Cell<Option<ReqId>>,
}

/// A peer that was looked up: those of the own job stay, those of other jobs go when no communicator names them any more.
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
    /// A peer reached this way, where so many ranks are `sharing` a core.
    pub(super) fn new(btl: Rc<dyn Btl>, endpoint: Endpoint, sharing: u32) -> Peer {
        let limits = btl.limits();
        Peer {
            limits,
            fin_required: btl.relies_on_senders(),
            credit: Credit::new(limits.eager, btl.poll_is_syscall()),
            throttle: Throttle::default(),
            copying: Copying::new(btl.single_copy().is_some()),
            chooser: Rc::new(ProtocolChooser::where_cores_have(sharing)),
            pipeline: Pipeline::default(),
            queue: SendQueue::default(),
            line: Line::default(),
            direct_receive: Cell::new(None),
            btl,
            endpoint,
        }
    }

    /// Hands a message to the transport.
    #[inline]
    pub(super) fn send(
        &self,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        self.btl.send(self.endpoint, am, header, payload)
    }

    /// The transport that reaches it.
    pub(super) fn btl(&self) -> &dyn Btl {
        &*self.btl
    }

    /// Its address there.
    pub(super) fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// The limits of that transport.
    #[inline]
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether a send in fragments ends only with the receiver's word.
    pub(super) fn is_fin_required(&self) -> bool {
        self.fin_required
    }

    /// Whether a new message of so many bytes, short enough to travel unasked, can do so now; its sender then sends it.
    #[inline]
    pub(super) fn lets_through(&self, bytes: usize) -> bool {
        self.queue.is_empty() && self.credit.spend(bytes) >= 0
    }

    /// What may be sent to it unasked.
    #[inline]
    pub(super) fn credit(&self) -> &Credit {
        &self.credit
    }

    /// Whether it is to ask first.
    pub(super) fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// How its messages and ours can be copied.
    #[inline]
    pub(super) fn copying(&self) -> &Copying {
        &self.copying
    }

    /// Which way its long messages come sooner.
    pub(super) fn chooser(&self) -> &Rc<ProtocolChooser> {
        &self.chooser
    }

    /// Messages whose data follow their announcement.
    #[inline]
    pub(super) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// What the transport had no room for.
    #[inline]
    pub(super) fn queue(&self) -> &SendQueue {
        &self.queue
    }

    /// Sends to it that go in fragments.
    pub(super) fn line(&self) -> &Line {
        &self.line
    }

    /// The receive into whose memory a long eager message of it is being read.
    pub(super) fn direct_receive(&self) -> Option<ReqId> {
        self.direct_receive.get()
    }

    /// One has begun to be read, or has been.
    pub(super) fn set_direct_receive(&self, receive: Option<ReqId>) {
        self.direct_receive.set(receive);
    }
}
