//! Sends whose data go in fragments or pieces: to each peer they take turns.
//!
//! A transport has room for a part of them.
//! The first in a peer's line sends until it has had its turn, of 256 KiB, then it goes to the end of the line:
//! so a message is not held up by all of a longer one before it, and where messages come from and go to the same memory their parts find it in the cache.
//! A sender that was refused stays where it is, because the transport may have taken the beginning of a fragment ([`crate::btl::Lending`]).

use super::Ob1;
use super::peer::Peer;
use super::send::{SendBody, send_range};
use super::wire;
use crate::btl::{Am, Header, ProcId, SendError};
use crate::request::{Body, Req, ReqId};
use std::ops::Range;
use std::rc::Rc;

/// After so many bytes it is another one's turn.
///
/// Windows of messages with memory for each went as fast with 64 KiB, 128 KiB and without turns, within what can be measured;
/// of one piece of memory, where both cores share a cache, streams of 4 MiB went 50 -> 57 GB/s and both ways 50 -> 61, of 1 MiB 55 -> 58 and 55 -> 63.
const TURN: u64 = 256 << 10;

/// A send whose data go in fragments or pieces.
pub(super) struct Stream {
    am: Am,
    /// The receive that fragments belong to, or the send that pieces are of.
    whose: ReqId,
    sent: u64,
    wanted: u64,
    /// The length of a fragment.
    fragment: usize,
}

impl Stream {
    pub(super) fn new(am: Am, whose: ReqId, wanted: u64, fragment: usize) -> Stream {
        Stream {
            am,
            whose,
            sent: 0,
            wanted,
            fragment: fragment.max(1),
        }
    }

    /// The fragment that is to be sent next.
    fn next(&self) -> (Header, Range<usize>) {
        let len = (self.wanted - self.sent).min(self.fragment as u64);
        let range = self.sent as usize..(self.sent + len) as usize;
        ([self.whose.0, self.sent], range)
    }

    /// So many bytes more are on their way; answers whether others have their turn now.
    fn advance(&mut self, len: usize) -> bool {
        let turn = self.sent / TURN;
        self.sent += len as u64;
        self.sent / TURN != turn
    }
}

/// How far a stream got.
enum Pushed {
    All,
    /// It has had its turn.
    Turn,
}

impl SendBody {
    /// From here on its data go in fragments.
    pub(super) fn begin(&mut self, stream: Stream) {
        self.stream = Some(Box::new(stream));
    }
}

impl Ob1 {
    /// The receiver wants the data in fragments.
    pub(super) fn on_cts(&self, from: ProcId, header: Header, payload: &[u8]) {
        self.answered(from);
        let Some(wanted) = wire::word(payload, 0) else {
            return self.nonsense(from, "a malformed request for data");
        };
        let (Some(req), Ok(peer)) = (self.requests.get(ReqId(header[0])), self.peer(from)) else {
            // The send may have been given up; the receiver cannot know.
            return self.late(from, header[0]);
        };
        let may_have = |send: &SendBody| {
            send.envelope.proc == from && send.stream.is_none() && wanted <= send.buf.bytes() as u64
        };
        if !matches!(&*req.body.borrow(), Body::Send(send) if may_have(send)) {
            return self.nonsense(
                from,
                "a request for data that are not for it, or that it has asked for before",
            );
        }
        {
            let mut body = req.body.borrow_mut();
            let Body::Send(send) = &mut *body else { return };
            let packed = !send.buf.is_in_runs();
            let alone = peer.streams.borrow().is_empty();
            let fragment = peer.btl.fragment(wanted, packed, alone);
            send.begin(Stream::new(wire::FRAG, ReqId(header[1]), wanted, fragment));
        }
        self.enqueue_stream(&peer, req);
    }

    /// Puts a send at the end of its peer's line.
    pub(super) fn enqueue_stream(&self, peer: &Rc<Peer>, req: Req) {
        peer.streams.borrow_mut().push_back(req);
        if !peer.streaming.replace(true) {
            self.streaming.borrow_mut().push(peer.clone());
        }
    }

    /// Sends what there is room for of a stream that has just begun.
    pub(super) fn flow(&self, peer: &Rc<Peer>, req: &Req) {
        self.enqueue_stream(peer, req.clone());
        self.push_streams();
    }

    /// Sends fragments until every stream is done or its transport is full.
    pub(super) fn push_streams(&self) -> bool {
        let peers = std::mem::take(&mut *self.streaming.borrow_mut());
        let mut moved = false;
        for peer in peers {
            moved |= self.push_line(&peer);
            let over = peer.streams.borrow().is_empty();
            peer.streaming.set(!over);
            if !over {
                self.streaming.borrow_mut().push(peer);
            }
        }
        moved
    }

    /// Sends fragments of one peer's streams, in turns, while there is room.
    fn push_line(&self, peer: &Peer) -> bool {
        let mut moved = false;
        loop {
            let Some(req) = peer.streams.borrow_mut().pop_front() else {
                return moved;
            };
            match self.push(peer, &req, &mut moved) {
                Ok(Pushed::All) if self.waits_for_answer(&req) => {}
                Ok(Pushed::All) => self.requests.complete_ok(&req),
                Ok(Pushed::Turn) => peer.streams.borrow_mut().push_back(req),
                Err(SendError::WouldBlock) => {
                    peer.streams.borrow_mut().push_front(req);
                    return moved;
                }
                Err(_) => self.fail_send(&req),
            }
        }
    }

    /// Sends fragments of one stream while there is room and it has its turn.
    fn push(&self, peer: &Peer, req: &Req, moved: &mut bool) -> Result<Pushed, SendError> {
        let mut body = req.body.borrow_mut();
        // A send whose request was abandoned has nothing left to send.
        let Body::Send(SendBody {
            buf,
            envelope,
            stream,
            ..
        }) = &mut *body
        else {
            return Ok(Pushed::All);
        };
        let Some(stream) = stream else {
            return self.is_gone(peer, envelope.proc);
        };
        while stream.sent < stream.wanted {
            let (header, range) = stream.next();
            let (at, len) = (range.start, range.len());
            match (peer.btl.lending(), buf.contiguous()) {
                (Some(lending), Some(data)) if stream.am == wire::FRAG => {
                    lending.lend(peer.endpoint, wire::FRAG, header, &data[range])?;
                }
                _ => send_range(peer, stream.am, header, buf, at, len)?,
            }
            *moved = true;
            if stream.advance(len) && stream.sent < stream.wanted {
                return Ok(Pushed::Turn);
            }
        }
        Ok(Pushed::All)
    }

    /// Whether a short message is on its way, which had to wait for its connection.
    fn is_gone(&self, peer: &Peer, to: ProcId) -> Result<Pushed, SendError> {
        match peer.btl.is_through(peer.endpoint) {
            _ if self.is_lost(to) => Err(SendError::PeerGone),
            true => Ok(Pushed::All),
            false => Err(SendError::WouldBlock),
        }
    }

    /// Whether a send whose fragments are all on their way has to have them until the receiver does.
    fn waits_for_answer(&self, req: &Req) -> bool {
        match &*req.body.borrow() {
            Body::Send(send) if send.stream.is_some() => {
                self.peer(send.proc()).is_ok_and(|peer| peer.fin_required)
            }
            _ => false,
        }
    }

    /// Nothing more of a send's data goes out but the fragment that was begun.
    pub(super) fn stop_streaming(&self, req: &Req) {
        let body = req.body.borrow();
        let Body::Send(send) = &*body else {
            return;
        };
        let Ok(peer) = self.peer(send.proc()) else {
            return;
        };
        let place = peer.place_in_line(req);
        if place
            .and_then(|at| peer.streams.borrow_mut().remove(at))
            .is_none()
        {
            return;
        }
        if let (Some(stream), Some(lending), Some(data)) =
            (&send.stream, peer.btl.lending(), send.buf.contiguous())
        {
            let (header, range) = stream.next();
            lending.leave_rest(peer.endpoint, wire::FRAG, header, &data[range]);
        }
    }

    /// A link has died with a fragment: sends it once more, if its send has not ended.
    pub(super) fn fragment_again(
        &self,
        to: ProcId,
        header: Header,
        len: usize,
        send: &mut dyn FnMut(&[u8]),
    ) {
        let [receiver, at] = header;
        let Some(end) = at.checked_add(len as u64) else {
            return;
        };
        for req in self.requests.under_way() {
            if let Body::Send(SendBody {
                buf,
                envelope,
                stream: Some(stream),
                ..
            }) = &*req.body.borrow()
                && envelope.proc == to
                && stream.am == wire::FRAG
                && stream.whose.0 == receiver
                && end <= stream.wanted
            {
                let mut packed = vec![0; len];
                buf.pack_at(at as i64, &mut packed);
                return send(&packed);
            }
        }
    }
}
