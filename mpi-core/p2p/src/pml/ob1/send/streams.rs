//! Sends in fragments or in place (streams): the sends to one peer are served round-robin.
//!
//! A transport accepts only a part of the fragments at a time.
//! The first stream in a peer's queue sends up to 256 KiB and then moves to the end of the queue.
//! So a message does not wait until an earlier, longer message is complete, and messages with
//! the same buffer find the buffer in the cache.
//! A stream in place is passed to the transport as a whole ([`in_place`]).
//! A stream whose fragment the transport has refused keeps its position, because the transport may have accepted the beginning of the fragment ([`crate::btl::Lending`]).

use super::super::core::{Core, HandlerResult, ProtocolError};
use super::super::peer::Peer;
use super::super::send_body::SendBody;
use super::super::stream::Stream;
use super::super::transfers::Transfer;
use super::super::wire;
use super::announce::{answered, released, withdraw};
use super::range::send_range;
use super::unreachable::fail_send;
use super::{device_twin, in_place};
use crate::btl::{Header, ProcId, SendError};
use crate::request::{Body, Req, ReqId};
use std::cell::RefCell;
use std::rc::Rc;

/// The peers with active streams.
#[derive(Default)]
pub struct Streams {
    peers: RefCell<Vec<Rc<Peer>>>,
}

/// The reason why `push` stopped without an error.
enum Pushed {
    All,
    /// The stream has sent its share of 256 KiB; the next stream continues.
    Turn,
    /// The transport delivers the data in place.
    InPlace,
}

impl Streams {
    /// Returns true if any stream is active.
    #[inline]
    pub fn are_under_way(&self) -> bool {
        !self.peers.borrow().is_empty()
    }

    /// Handles CTS: the receiver requests the data of an announced message in fragments.
    pub fn on_cts(
        &self,
        core: &Core,
        from: ProcId,
        header: Header,
        payload: &[u8],
    ) -> HandlerResult {
        answered(core, from);
        let Some(word) = wire::word(payload, 0) else {
            return Err(ProtocolError("a malformed request for data"));
        };
        let (wanted, may_place) = (word & !wire::IN_PLACE, word & wire::IN_PLACE != 0);
        let (Some(req), Ok(peer)) = (
            core.requests().get(ReqId(header[0])),
            core.links().peer(from),
        ) else {
            // The send may have been abandoned without notice to the receiver.
            return core.late(header[0]);
        };
        let may_have =
            |send: &SendBody| send.proc() == from && !send.is_streaming() && wanted <= send.bytes();
        if !matches!(&*req.body.borrow(), Body::Send(send) if may_have(send)) {
            return Err(ProtocolError(
                "a request for data that are not for it, or that it has asked for before",
            ));
        }
        {
            let mut body = req.body.borrow_mut();
            let Body::Send(send) = &mut *body else {
                return Ok(());
            };
            let packed = !send.buf().is_in_runs();
            let alone = peer.line().is_empty();
            let fragment = peer.fragment(wanted, packed, alone);
            send.expose(None);
            let stream = Stream::new(wire::FRAG, ReqId(header[1]), wanted, fragment);
            send.begin(
                match may_place && in_place::is_possible(&peer, send, wanted) {
                    true => stream.in_place(),
                    false => stream,
                },
            );
        }
        self.enqueue(&peer, req);
        Ok(())
    }

    /// Appends a send to its peer's queue of streams.
    pub fn enqueue(&self, peer: &Rc<Peer>, req: Req) {
        peer.line().push(req);
        if !peer.line().set_listed(true) {
            self.peers.borrow_mut().push(peer.clone());
        }
    }

    /// Appends a stream to its peer's queue and sends fragments while the transport accepts them.
    pub fn flow(&self, core: &Core, peer: &Rc<Peer>, req: &Req) {
        self.enqueue(peer, req.clone());
        self.push_all(core);
    }

    /// Sends fragments of all streams until the streams are complete or their transports are full. Returns true if any fragment was sent.
    pub fn push_all(&self, core: &Core) -> bool {
        let peers = std::mem::take(&mut *self.peers.borrow_mut());
        let mut moved = false;
        for peer in peers {
            moved |= self.push_line(core, &peer);
            let over = peer.line().is_empty();
            peer.line().set_listed(!over);
            if !over {
                self.peers.borrow_mut().push(peer);
            }
        }
        moved
    }

    /// Handles the end of the delivery in place of a send.
    ///
    /// After a failed transfer to a peer that is not lost, the data are sent in fragments.
    pub(in crate::pml::ob1) fn ended_in_place(
        &self,
        core: &Core,
        open: &Transfer,
        req: &Req,
        succeeded: bool,
    ) {
        if succeeded {
            released(core, req);
            core.requests().complete_ok(req);
        } else if core.losses().has(open.proc) {
            fail_send(core, req);
        } else {
            if let Body::Send(send) = &mut *req.body.borrow_mut()
                && let Some((stream, _)) = send.stream_mut()
            {
                stream.go_on_in_fragments();
            }
            self.enqueue(&open.peer, req.clone());
        }
    }

    /// Sends fragments of one peer's streams, round-robin, while the transport accepts them.
    fn push_line(&self, core: &Core, peer: &Rc<Peer>) -> bool {
        let mut moved = false;
        loop {
            let Some(req) = peer.line().pop() else {
                return moved;
            };
            match self.push(core, peer, &req, &mut moved) {
                Ok(Pushed::All) if waits_for_answer(peer, &req) => {}
                Ok(Pushed::All) => {
                    if matches!(&*req.body.borrow(), Body::Send(send) if send.is_streaming()) {
                        released(core, &req);
                    }
                    core.requests().complete_ok(&req);
                }
                Ok(Pushed::InPlace) => moved = true,
                Ok(Pushed::Turn) => peer.line().push(req),
                Err(SendError::WouldBlock) => {
                    peer.line().put_back(req);
                    return moved;
                }
                Err(_) => fail_send(core, &req),
            }
        }
    }

    /// Sends data of one stream: passes them to the transport for their place, or sends fragments as [`push`] does.
    fn push(
        &self,
        core: &Core,
        peer: &Rc<Peer>,
        req: &Req,
        moved: &mut bool,
    ) -> Result<Pushed, SendError> {
        let waits = match &*req.body.borrow() {
            Body::Send(send) => send.stream().is_some_and(Stream::waits_for_transfer),
            _ => false,
        };
        match waits {
            true => in_place::start(core, peer, req).map(|()| Pushed::InPlace),
            false => push(core, peer, req, moved),
        }
    }
}

/// Sends fragments of one stream until the transport refuses one, the stream has sent its share, or its data are sent.
fn push(core: &Core, peer: &Peer, req: &Req, moved: &mut bool) -> Result<Pushed, SendError> {
    let mut body = req.body.borrow_mut();
    // An abandoned send has no data to send.
    let Body::Send(send) = &mut *body else {
        return Ok(Pushed::All);
    };
    let to = send.proc();
    let Some((stream, buf)) = send.stream_mut() else {
        return is_gone(core, peer, to);
    };
    let lending = peer.btl().capabilities().lending;
    let twin = device_twin(buf);
    while !stream.is_over() {
        let (header, range) = stream.next();
        let (at, len) = (range.start, range.len());
        if let Some(twin) = &twin {
            twin.fill_to(range.end);
        }
        match (lending, buf.contiguous()) {
            (Some(lending), Some(data)) if stream.am() == wire::FRAG => {
                lending.lend(peer.endpoint(), wire::FRAG, header, &data[range])?;
            }
            _ => send_range(peer, stream.am(), header, buf, at, len)?,
        }
        *moved = true;
        if stream.advance(len) && !stream.is_over() {
            return Ok(Pushed::Turn);
        }
    }
    Ok(Pushed::All)
}

/// For a short message that waits for its connection: returns [`Pushed::All`] if the peer is connected, because the message has then been sent.
fn is_gone(core: &Core, peer: &Peer, to: ProcId) -> Result<Pushed, SendError> {
    match peer.is_connected() {
        _ if core.losses().has(to) => Err(SendError::PeerGone),
        true => Ok(Pushed::All),
        false => Err(SendError::WouldBlock),
    }
}

/// Returns true if the send must stay active after its last fragment until FIN arrives, because a fragment may have to be sent again.
fn waits_for_answer(peer: &Peer, req: &Req) -> bool {
    match &*req.body.borrow() {
        Body::Send(send) => send.is_streaming() && peer.is_fin_required(),
        _ => false,
    }
}

/// Stops a send: no more of its data is sent, except the rest of a fragment that was partly sent.
pub fn stop(core: &Core, req: &Req) {
    withdraw(req);
    in_place::abandon(core, req);
    let body = req.body.borrow();
    let Body::Send(send) = &*body else {
        return;
    };
    let Ok(peer) = core.links().peer(send.proc()) else {
        return;
    };
    if !peer.line().remove(req) {
        return;
    }
    let lending = peer.btl().capabilities().lending;
    if let (Some(stream), Some(lending), Some(data)) =
        (send.stream(), lending, send.buf().contiguous())
        && !stream.waits_for_transfer()
    {
        let (header, range) = stream.next();
        lending.leave_rest(peer.endpoint(), wire::FRAG, header, &data[range]);
    }
}

/// Sends a fragment again that was lost with a link, if its send is still active.
pub fn again(core: &Core, to: ProcId, header: Header, len: usize, send: &mut dyn FnMut(&[u8])) {
    let [receiver, at] = header;
    let Some(end) = at.checked_add(len as u64) else {
        return;
    };
    for req in core.requests().under_way() {
        if let Body::Send(body) = &*req.body.borrow()
            && body.proc() == to
            && let Some(stream) = body.stream()
            && stream.has_sent(wire::FRAG, receiver, end)
        {
            let mut packed = vec![0; len];
            body.buf().pack_at(at as i64, &mut packed);
            return send(&packed);
        }
    }
}
