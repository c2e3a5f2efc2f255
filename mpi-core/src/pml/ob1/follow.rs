//! Messages of middling length whose data travel unasked.
//!
//! Where fragments are the faster way, asking for them costs a short message of this kind as much again as its data:
//! the announcement has to come, the answer to go back, and only then the first fragment is made.
//! So a receiver that has measured ([`super::pace`]) that fragments are faster for messages of an order of size tells their sender so ([`wire::FOLLOW`]).
//! From then on that sender announces them with [`wire::FOLLOWED`] and sends their data at once, in pieces ([`wire::PIECE`]) that name the announcement;
//! both sides work on neighbouring pieces, and the send is complete when the transport has taken the last one.
//!
//! The announcement is matched like any other, so order is kept.
//! If its receive is there the pieces go to its memory; else they are kept, and charged like short messages that nobody has asked for ([`super::bound`]).
//! A receive that comes meanwhile takes over what is there and gets the rest.
//!
//! What fits in one fragment is sent like a short message, with its announcement ([`wire::UNASKED`]).
//!
//! Once in a while a few messages ask again, so that the receiver goes on measuring; what it finds may end this.
//! Where there is no choice but fragments, none asks: nor do data in more runs than one copy could name.

use super::matching::Key;
use super::recv::Incoming;
use super::stream::Stream;
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
const ROUND: u16 = 8192;
const ASKING: u16 = 128;

/// The longest message that may follow, whatever a process is told; its whole memory is provided for when it is announced.
const LONGEST: u64 = 1 << 20;

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
    pub(super) fn goes_unasked(&self, peer: &Peer, buf: &SendBuf) -> Option<usize> {
        let bytes = buf.bytes() as u64;
        if bytes > LONGEST || peer.eager_below.get() == 0 {
            return None;
        }
        let packed = !buf.is_in_runs();
        let piece = peer.btl.follow(peer.endpoint, bytes, packed)?;
        // Where there is no choice there is nothing to measure: nobody could read it in one copy.
        let no_choice = !peer.single_copy.get() || bytes < self.config.single_copy_min || packed;
        (no_choice || peer.follow.is_wanted(bytes)).then_some(piece)
    }

    /// Announces a message and sends what there is room for of its data, if they are to follow.
    pub(super) fn offer_followed(
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
        let piece = self.goes_unasked(peer, send.buf())?;
        let bytes = send.bytes();
        // It may come from the queue, which it does not overtake.
        peer.counts_unasked(bytes as usize);
        let announcement = Rendezvous {
            bytes,
            sender: req.id(),
            place: wire::Place::Scattered,
        };
        let announced = announcement
            .encoded(|payload| peer.send(wire::FOLLOWED, send.header(), Payload::Bytes(payload)));
        if announced.is_err() {
            return Some(announced);
        }
        peer.follow.count();
        send.begin(Stream::new(wire::PIECE, req.id(), bytes, piece));
        drop(body);
        self.flow(peer, req);
        Some(Ok(()))
    }

    /// A long message has come whole.
    pub(super) fn on_unasked(&self, from: ProcId, header: Header, payload: &[u8]) {
        if let Ok(peer) = self.peer(from) {
            peer.pace.disturb();
        }
        self.on_eager(from, header, payload);
    }

    /// A message has been announced whose data are on their way.
    pub(super) fn on_followed(&self, from: ProcId, header: Header, payload: &[u8]) {
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
    pub(super) fn accept_followed(&self, req: &Req, key: Key, from: ProcId, kept: &Kept) {
        let Some((wanted, too_long)) = self.meets(req, key, kept.bytes) else {
            return self.garble();
        };
        let come = kept.data.take();
        let here = match &mut *req.body.borrow_mut() {
            Body::Recv(recv) => {
                recv.expect(Incoming::of(from, wanted, too_long));
                recv.put(0, &come)
            }
            _ => 0,
        };
        self.stash.give(come);
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
    pub(super) fn on_piece(&self, from: ProcId, header: Header, payload: &[u8]) {
        match self.place_of_piece(from, header, payload.len() as u64) {
            Some(To::Receive(receive)) => self.put_piece(receive, header[1], payload),
            Some(To::Kept(kept)) => {
                let mut data = kept.data.borrow_mut();
                if data.is_empty() {
                    *data = self.stash.take(kept.bytes as usize);
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
            self.control(peer, wire::FOLLOW, header, [0; 8]);
        }
    }

    /// A peer tells how it wants messages of ours.
    pub(super) fn on_follow(&self, from: ProcId, header: Header) {
        let (Ok(peer), [order @ 0..16, follow @ 0..=1]) = (self.peer(from), header) else {
            return self.nonsense(from, "an impossible wish for data");
        };
        let others = peer.follow.wanted.get() & !(1 << order);
        peer.follow.wanted.set(others | (follow as u16) << order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btl::Sink;
    use crate::comm::Comm;
    use crate::datatype::{Datatype, Named, Scratch};
    use crate::engine::Engine;
    use crate::engine::testing::Job;
    use crate::request::Outcome;

    const SENDER: u64 = 77;

    /// What a peer says of messages that nobody sent, on rank 0 of two.
    fn hears(test: impl Fn(&Engine, &Told) + Sync) {
        Job::of(2).run(|engine| {
            if engine.me() == 0 {
                let world = engine.world().expect("a world");
                test(engine, &Told { world });
            }
        });
    }

    struct Told {
        world: Comm,
    }

    impl Told {
        fn announces(&self, engine: &Engine, bytes: u64) {
            let context = self.world.context().plane(crate::pml::Plane::User);
            let announcement = Rendezvous {
                bytes,
                sender: ReqId(SENDER),
                place: wire::Place::Scattered,
            };
            let header = wire::match_header(context, 1, 5);
            announcement.encoded(|payload| {
                engine.pml().deliver(1, wire::FOLLOWED, header, payload);
            });
        }

        fn sends(&self, engine: &Engine, at: u64, data: &[u8]) {
            (engine.pml()).deliver(1, wire::PIECE, [SENDER, at], data);
        }
    }

    fn receive(peer: &Told, room: &Scratch) -> Req {
        peer.world.irecv(room.all(), 1, 5).expect("posted")
    }

    fn ends(engine: &Engine, req: &Req) -> Outcome {
        assert!(req.is_complete());
        engine.pml().requests().finish(req)
    }

    fn data() -> Vec<u8> {
        (0..250).collect()
    }

    #[test]
    fn a_receive_that_comes_before_between_or_after_the_pieces_gets_them_all() {
        // Before the announcement, behind it, behind each of the pieces.
        for comes in 0..=4 {
            hears(|engine, peer| {
                let room = Scratch::bytes(300).expect("memory");
                let mut posted = None;
                let mut step = |now| {
                    if now == comes {
                        posted = Some(receive(peer, &room));
                    }
                };
                step(0);
                peer.announces(engine, 250);
                for (at, piece) in (1..).zip(data().chunks(100)) {
                    step(at);
                    peer.sends(engine, (at as u64 - 1) * 100, piece);
                }
                step(4);
                let status = ends(engine, &posted.expect("posted")).expect("received");
                assert_eq!((status.bytes, status.source, status.tag), (250, 1, 5));
                assert_eq!(room.all().as_send().to_vec()[..250], data()[..]);
                assert_eq!(engine.pml().unexpected_bytes().0, 0);
                assert_eq!(engine.pml().garbled(), 0);
            });
        }
    }

    #[test]
    fn what_there_is_no_room_for_is_cut_off_and_reported() {
        for early in [false, true] {
            hears(|engine, peer| {
                let room = Scratch::bytes(150).expect("memory");
                let posted = early.then(|| receive(peer, &room));
                peer.announces(engine, 250);
                peer.sends(engine, 0, &data()[..200]);
                let req = posted.unwrap_or_else(|| receive(peer, &room));
                peer.sends(engine, 200, &data()[200..]);
                let error = ends(engine, &req).expect_err("too long").to_string();
                assert!(error.contains("250") && error.contains("150"), "{error}");
                assert_eq!(room.all().as_send().to_vec(), data()[..150]);
                assert_eq!(engine.pml().garbled(), 0);
            });
        }
    }

    #[test]
    fn pieces_for_a_receive_that_was_given_up_touch_nothing() {
        hears(|engine, peer| {
            let room = Scratch::bytes(250).expect("memory");
            let req = receive(peer, &room);
            peer.announces(engine, 250);
            peer.sends(engine, 0, &data()[..100]);
            engine.pml().abandon(&req);
            peer.sends(engine, 100, &data()[100..]);
            assert_eq!(room.all().as_send().to_vec()[100..], [0; 150]);
            assert_eq!(engine.pml().garbled(), 0);
        });
    }

    #[test]
    fn a_sender_that_is_lost_in_the_middle_ends_receives_that_came_and_that_come() {
        for early in [false, true] {
            hears(|engine, peer| {
                let room = Scratch::bytes(250).expect("memory");
                let posted = early.then(|| receive(peer, &room));
                peer.announces(engine, 250);
                peer.sends(engine, 0, &data()[..100]);
                engine.pml().lost(1, "it fell over");
                let req = posted.unwrap_or_else(|| receive(peer, &room));
                let error = ends(engine, &req).expect_err("lost").to_string();
                assert!(error.contains("it fell over"), "{error}");
            });
        }
    }

    #[test]
    fn a_peer_that_sends_pieces_out_of_turn_or_senseless_orders_is_lost() {
        type Nonsense = fn(&Engine, &Told);
        let all: [Nonsense; 9] = [
            |engine, peer| peer.sends(engine, 1, &[9; 10]),
            |engine, peer| peer.sends(engine, 0, &[9; 251]),
            |engine, peer| peer.sends(engine, u64::MAX, &[9; 2]),
            |engine, _| (engine.pml()).deliver(1, wire::PIECE, [SENDER + 1, 0], &[9; 10]),
            |engine, peer| peer.announces(engine, 0),
            |engine, peer| peer.announces(engine, LONGEST + 1),
            |engine, _| engine.pml().deliver(1, wire::FOLLOW, [16, 1], &[]),
            |engine, _| engine.pml().deliver(1, wire::FOLLOW, [0, 2], &[]),
            |engine, _| engine.pml().deliver(1, wire::FOLLOW, [u64::MAX, 0], &[]),
        ];
        for nonsense in all {
            hears(|engine, peer| {
                let room = Scratch::bytes(250).expect("memory");
                let req = receive(peer, &room);
                peer.announces(engine, 250);
                nonsense(engine, peer);
                assert_eq!(engine.pml().garbled(), 1);
                let lost = ends(engine, &req).expect_err("the peer is lost");
                assert!(lost.to_string().contains("rank 1 sent"), "{lost}");
            });
        }
    }

    /// Whether messages of 40,000 bytes go unasked, of so many.
    fn unasked(engine: &Engine, messages: u32) -> u32 {
        unasked_of(engine, messages, &Named::BYTE.into(), 40_000)
    }

    /// Of so many messages of that many elements.
    fn unasked_of(engine: &Engine, messages: u32, datatype: &Datatype, count: i64) -> u32 {
        datatype.commit().expect("a type");
        let data = Scratch::new(count, datatype).expect("memory");
        let buf = data.all().as_send();
        let (pml, peer) = (engine.pml(), engine.pml().peer(1).expect("a peer"));
        let unasked = |_| {
            peer.follow.count();
            u32::from(pml.goes_unasked(peer, &buf).is_some())
        };
        (0..messages).map(unasked).sum()
    }

    #[test]
    fn messages_go_unasked_to_whom_that_is_faster_and_a_few_ask_all_the_same() {
        hears(|engine, _| {
            let order = order_of(40_000) as u64;
            assert_eq!(unasked(engine, 100), 0);
            engine.pml().deliver(1, wire::FOLLOW, [order, 1], &[]);
            let round = u32::from(ROUND);
            assert_eq!(unasked(engine, 3 * round), 3 * (round - u32::from(ASKING)));
            engine.pml().deliver(1, wire::FOLLOW, [order, 0], &[]);
            assert_eq!(unasked(engine, 100), 0);
            // Whoever holds too much is asked whatever it has said before.
            engine.pml().deliver(1, wire::FOLLOW, [order, 1], &[]);
            engine.pml().deliver(1, wire::ASK_FIRST, [1, 0], &[]);
            assert_eq!(unasked(engine, 100), 0);
        });
    }

    #[test]
    fn what_cannot_be_copied_from_where_it_lies_goes_unasked_to_anybody() {
        hears(|engine, _| {
            let halves = Datatype::vector(2, 20_000, 30_000, &Named::BYTE.into()).expect("a type");
            assert_eq!(unasked_of(engine, 100, &halves, 1), 0);
            let column = Datatype::vector(5_000, 8, 16, &Named::BYTE.into()).expect("a type");
            assert_eq!(unasked_of(engine, 100, &column, 1), 100);
            engine.pml().deliver(1, wire::ASK_FIRST, [1, 0], &[]);
            assert_eq!(unasked_of(engine, 100, &column, 1), 0);
        });
    }
}
