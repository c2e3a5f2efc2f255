//! One peer as ob1 sees it: the transport that reaches it and what could not be handed to it yet.

use super::{eager_pipeline::Follow, flow_control, protocol_choice::ProtocolChooser};
use crate::btl::{Am, Btl, Endpoint, Header, Limits, Payload, SendError};
use crate::request::{Req, ReqId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;

/// Something for the peer that the transport had no room for.
/// The queue keeps the order in which messages were sent, which matching relies on.
pub enum Queued {
    /// A send request whose eager data or rendezvous have not been taken.
    Send(Req),
    /// A short control message.
    Control {
        am: Am,
        header: Header,
        payload: [u8; 8],
    },
}

pub struct Peer {
    pub btl: Rc<dyn Btl>,
    pub endpoint: Endpoint,
    pub limits: Limits,
    /// Messages shorter than this travel unasked: the eager limit and one, or nothing while the peer holds too much.
    pub eager_below: Cell<usize>,
    /// Whether it has to be connected first, and nothing has been sent to it yet.
    pub unconnected: Cell<bool>,
    /// So much may be sent unasked before we hear whether it holds too much.
    pub unpolled_bytes: Cell<isize>,
    /// Whether it is to ask first, because we hold too much.
    pub throttled: Cell<bool>,
    /// What it has been told of that.
    pub throttle_sent: Cell<bool>,
    /// Cleared for good when the system refuses the first single copy.
    pub single_copy: Cell<bool>,
    /// Cleared for good when one side could not do its part of a copy.
    pub together: Cell<bool>,
    /// Which way its long messages come sooner.
    pub pace: ProtocolChooser,
    /// Messages whose data follow their announcement.
    pub(super) follow: Follow,
    /// Messages that it has been told of and has not begun to take.
    pub announced: Cell<u32>,
    /// Fragments may be asked for again, so a send has ended only when the receiver says that it has all of them.
    pub fin_required: bool,
    pub queue: RefCell<VecDeque<Queued>>,
    /// Whether it is on the list of those that something waits for.
    pub congested: Cell<bool>,
    /// Sends whose data go in fragments or pieces, in the order of their turns.
    pub streams: RefCell<VecDeque<Req>>,
    /// Whether it is on the list of those that have any.
    pub streaming: Cell<bool>,
    /// The receive into whose memory a long eager message of the peer is being read.
    pub landing: Cell<Option<ReqId>>,
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
    pub fn new(btl: Rc<dyn Btl>, endpoint: Endpoint, sharing: u32) -> Peer {
        let limits = btl.limits();
        Peer {
            limits,
            // The first message takes the general path, which sees to its being on its way.
            eager_below: Cell::new(match btl.poll_is_syscall() {
                true => 0,
                false => limits.eager + 1,
            }),
            unconnected: Cell::new(btl.poll_is_syscall()),
            unpolled_bytes: Cell::new(flow_control::LOOK),
            throttled: Cell::new(false),
            throttle_sent: Cell::new(false),
            single_copy: Cell::new(btl.single_copy().is_some()),
            together: Cell::new(true),
            pace: ProtocolChooser::where_cores_have(sharing),
            follow: Follow::default(),
            announced: Cell::new(0),
            fin_required: btl.relies_on_senders(),
            btl,
            endpoint,
            queue: RefCell::default(),
            congested: Cell::new(false),
            streams: RefCell::default(),
            streaming: Cell::new(false),
            landing: Cell::new(None),
        }
    }

    #[inline]
    pub fn send(&self, am: Am, header: Header, payload: Payload<'_>) -> Result<(), SendError> {
        self.btl.send(self.endpoint, am, header, payload)
    }

    /// Whether a new message of so many bytes, short enough to travel unasked, can do so now; its sender then sends it.
    #[inline]
    pub fn lets_through(&self, bytes: usize) -> bool {
        self.is_clear() && self.charge_unpolled(bytes) >= 0
    }

    /// So many bytes are sent unasked; answers how many more may be before we hear of it.
    #[inline]
    pub(super) fn charge_unpolled(&self, bytes: usize) -> isize {
        let unpolled_bytes = self.unpolled_bytes.get() - (bytes + flow_control::COST) as isize;
        self.unpolled_bytes.set(unpolled_bytes);
        unpolled_bytes
    }

    /// We have announced one.
    pub fn was_polled(&self) {
        self.announced.set(self.announced.get() + 1);
    }

    /// Where in the line a send is whose data go in fragments or pieces.
    pub fn place_in_line(&self, req: &Req) -> Option<usize> {
        (self.streams.borrow().iter()).position(|other| Rc::ptr_eq(other, req))
    }

    /// Whether a new message may overtake nothing.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.queue.borrow().is_empty()
    }
}
