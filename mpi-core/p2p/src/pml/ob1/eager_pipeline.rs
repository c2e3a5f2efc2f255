//! Messages of middling length whose data travel unasked.
//!
//! Where fragments are the faster way, asking for them costs a short message of this kind as much again as its data:
//! the announcement has to come, the answer to go back, and only then the first fragment is made.
//! So a receiver that has measured ([`super::protocol_choice`]) that fragments are faster for messages of an order of size tells their sender so ([`wire::EAGER_MODE`]).
//! From then on that sender announces them with [`wire::EAGER_START`] and sends their data at once, in pieces ([`wire::EAGER_FRAG`]) that name the announcement;
//! both sides work on neighbouring pieces, and the send is complete when the transport has taken the last one.
//!
//! The announcement is matched like any other, so order is kept.
//! If its receive is there the pieces go to its memory; else they are kept, and charged like short messages that no receive has asked for ([`super::flow_control`]).
//! A receive that comes meanwhile takes over what is there and gets the rest.
//!
//! What fits in one fragment is sent like a short message, with its announcement ([`wire::EAGER_LONG`]).
//!
//! Once in a while a few messages ask again, so that the receiver goes on measuring; what it finds may end this.
//! Where there is no choice but fragments, none asks: nor do data in more runs than one copy could name.

use super::fragment_stream::Stream;
use super::matching::Key;
use super::recv::Incoming;
use super::wire::{self, Rendezvous};
use super::{Arrived, Content, Ob1, Peer};
use crate::btl::{Header, Payload, ProcId, SendError};
use crate::datatype::SendBuf;
use crate::pml::Mode;
use crate::request::{Body, Req, ReqId};
use crate::trial::{Way, order_of};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Of so many messages that are not short the last few ask, enough to fill a window or two with nothing else, so that their receiver goes on measuring.
pub const ROUND: u16 = 8192;
pub const ASKING: u16 = 128;

/// The longest message that may follow, whatever a process is told; its whole memory is provided for when it is announced.
pub const LONGEST: u64 = 1 << 20;

/// What is known of following between this process and a peer.
#[derive(Default)]
pub(super) struct Follow {
    /// By order of size: whether the peer wants data of our messages to follow.
    wanted: Cell<u16>,
    /// Counts messages that are not short.
    turn: Cell<u16>,
    /// By order of size: whether the peer has been told that data of its messages are to follow.
    told: Cell<u16>,
    /// Messages of the peer of which pieces are still to come, in the order in which they were announced.
    coming: RefCell<Vec<Coming>>,
}

/// A message of which pieces are still to come.
struct Coming {
    sender: ReqId,
    bytes: u64,
    come: u64,
    to: To,
}

/// Where the pieces of a message belong.
#[derive(Clone)]
enum To {
    Receive(ReqId),
    Kept(Rc<Kept>),
}

/// A message that was announced before its receive, and what has come of it.
pub(crate) struct Kept {
    pub(super) bytes: u64,
    sender: ReqId,
    data: RefCell<Vec<u8>>,
}

impl Follow {
    /// Whether the peer wants the data of a message of so many bytes unasked; every once in a while a few ask all the same.
    fn is_wanted(&self, bytes: u64) -> bool {
        self.wanted.get() & bit(bytes) != 0 && self.turn.get() < ROUND - ASKING
    }

    /// A message that is not short has been sent, or has asked.
    pub(super) fn count(&self) {
        self.turn.set((self.turn.get() + 1) % ROUND);
    }
}

fn bit(bytes: u64) -> u16 {
    1 << order_of(bytes)
}

impl Ob1 {
    /// In which pieces, at most, a message that is not short is to be sent without being asked for, if it is.
    #[cold]
    pub(super) fn eager_pipeline_fragment(&self, peer: &Peer, buf: &SendBuf) -> Option<usize> {
        let bytes = buf.bytes() as u64;
        if bytes > LONGEST || peer.eager_below.get() == 0 {
            return None;
        }
        let packed = !buf.is_in_runs();
        let piece = peer.btl.follow(peer.endpoint, bytes, packed)?;
        // Where there is no choice there is nothing to measure: the receiver could not read it in one copy.
        let no_choice = !peer.single_copy.get() || bytes < self.config.single_copy_min || packed;
        (no_choice || peer.follow.is_wanted(bytes)).then_some(piece)
    }

    /// Announces a message and sends what there is room for of its data, if they are to follow.
    pub(super) fn send_eager_pipeline(
        &self,
        peer: &Rc<Peer>,
        req: &Req,
    ) -> Option<Result<(), SendError>> {
        let mut body = req.body.borrow_mut();
        let Body::Send(send) = &mut *body else {
            return None;
        };
        if send.mode() != Mode::Standard {
            return None;
        }
        let piece = self.eager_pipeline_fragment(peer, send.buf())?;
        let bytes = send.bytes();
        // It may come from the queue, which it does not overtake.
        peer.charge_unpolled(bytes as usize);
        let announcement = Rendezvous {
            bytes,
            sender: req.id(),
            place: wire::Place::Scattered,
        };
        let announced = announcement.encoded(|payload| {
            peer.send(wire::EAGER_START, send.header(), Payload::Bytes(payload))
        });
        if announced.is_err() {
            return Some(announced);
        }
        peer.follow.count();
        send.begin(Stream::new(wire::EAGER_FRAG, req.id(), bytes, piece));
        drop(body);
        self.flow(peer, req);
        Some(Ok(()))
    }

    /// A long message has come whole.
    pub(super) fn on_eager_long(&self, from: ProcId, header: Header, payload: &[u8]) {
        if let Ok(peer) = self.peer(from) {
            peer.pace.disturb();
        }
        self.on_eager(from, header, payload);
    }

    /// A message has been announced whose data are on their way.
    pub(super) fn on_eager_start(&self, from: ProcId, header: Header, payload: &[u8]) {
        let (Some(announced), Ok(peer)) = (Rendezvous::decode(payload), self.peer(from)) else {
            return self.nonsense(from, "a malformed announcement");
        };
        if announced.bytes == 0 || announced.bytes > LONGEST {
            return self.nonsense(from, "an announcement of an impossible length");
        }
        let kept = Rc::new(Kept {
            bytes: announced.bytes,
            sender: announced.sender,
            data: RefCell::default(),
        });
        peer.follow.coming.borrow_mut().push(Coming {
            sender: kept.sender,
            bytes: kept.bytes,
            come: 0,
            to: To::Kept(kept.clone()),
        });
        let content = Content::Followed(kept);
        self.announced(header, Arrived { from, content });
    }

    /// Gives a message whose data follow to its receive.
    pub(super) fn accept_eager_pipeline(&self, req: &Req, key: Key, from: ProcId, kept: &Kept) {
        let Some((wanted, too_long)) = self.meets(req, key, kept.bytes) else {
            return self.protocol_error();
        };
        let come = kept.data.take();
        let here = match &mut *req.body.borrow_mut() {
            Body::Recv(recv) => {
                recv.expect(Incoming::of(from, wanted, too_long));
                recv.put(0, &come)
            }
            _ => 0,
        };
        self.buffer_pool.give(come);
        if let Ok(peer) = self.peer(from) {
            let mut coming = peer.follow.coming.borrow_mut();
            if let Some(rest) = coming.iter_mut().find(|c| c.sender == kept.sender) {
                rest.to = To::Receive(req.id());
            }
        }
        self.count_fragment(req, here);
        self.fail_if_lost(req, from);
    }

    /// A piece of a message has come.
    pub(super) fn on_eager_frag(&self, from: ProcId, header: Header, payload: &[u8]) {
        match self.place_of_piece(from, header, payload.len() as u64) {
            Some(To::Receive(receive)) => self.put_piece(receive, header[1], payload),
            Some(To::Kept(kept)) => {
                let mut data = kept.data.borrow_mut();
                if data.is_empty() {
                    *data = self.buffer_pool.take(kept.bytes as usize);
                }
                data.extend_from_slice(payload);
            }
            None => self.nonsense(from, "data that belong to no message of its own"),
        }
    }

    /// Where a piece belongs, if it is the next one of a message that was announced.
    fn place_of_piece(&self, from: ProcId, header: Header, len: u64) -> Option<To> {
        let peer = self.peer(from).ok()?;
        peer.pace.disturb();
        let mut all = peer.follow.coming.borrow_mut();
        let [sender, offset] = header;
        let at = all.iter().position(|coming| coming.sender.0 == sender)?;
        let coming = &mut all[at];
        let end = offset.checked_add(len)?;
        if offset != coming.come || end > coming.bytes {
            return None;
        }
        coming.come = end;
        match end == coming.bytes {
            true => Some(all.remove(at).to),
            false => Some(coming.to.clone()),
        }
    }

    /// A receive that was given up, or has all that it has room for, takes nothing more.
    fn put_piece(&self, receive: ReqId, offset: u64, payload: &[u8]) {
        let Some(req) = self.requests.get(receive).filter(|req| !req.is_complete()) else {
            return;
        };
        let put = match &mut *req.body.borrow_mut() {
            Body::Recv(recv) => recv.put(offset, payload),
            _ => 0,
        };
        self.count_fragment(&req, put);
    }

    /// Tells a peer whether data of messages of this order of size are to follow, when what was measured has changed.
    pub(super) fn advise(&self, peer: &Rc<Peer>, bytes: u64) {
        let Some(way) = peer.pace.better(bytes).filter(|_| bytes <= LONGEST) else {
            return;
        };
        let (told, bit) = (peer.follow.told.get(), bit(bytes));
        let follow = way == Way::Fragments;
        if (told & bit != 0) != follow {
            peer.follow.told.set(told ^ bit);
            let header = [order_of(bytes) as u64, u64::from(follow)];
            self.control(peer, wire::EAGER_MODE, header, [0; 8]);
        }
    }

    /// A peer tells how it wants messages of ours.
    pub(super) fn on_eager_mode(&self, from: ProcId, header: Header) {
        let (Ok(peer), [order @ 0..16, follow @ 0..=1]) = (self.peer(from), header) else {
            return self.nonsense(from, "an impossible wish for data");
        };
        let others = peer.follow.wanted.get() & !(1 << order);
        peer.follow.wanted.set(others | (follow as u16) << order);
    }
}
