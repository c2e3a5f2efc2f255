//! The sending side.

use super::Ob1;
use super::peer::{Peer, Queued};
use super::wire::{self, Place, Rendezvous};
use crate::Error;
use crate::btl::{Am, Header, Payload, ProcId, Region, SendError};
use crate::datatype::SendBuf;
use crate::pml::{Envelope, Mode};
use crate::request::{Body, Req, ReqId};
use mpi_base::state::{About, Waits};
use std::ops::Range;
use std::rc::Rc;

/// A send under way.
pub struct SendBody {
    buf: SendBuf,
    envelope: Envelope,
    mode: Mode,
    stream: Option<Box<Stream>>,
}

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
}

impl SendBody {
    /// Shows the first `len` bytes of the data where they lie, if they are in few and long runs and no fragments of them are sent.
    pub(super) fn in_runs<R>(&self, len: u64, f: impl FnOnce(&[&[u8]]) -> R) -> Option<R> {
        match &self.stream {
            None => self.buf.in_runs(len, f),
            Some(_) => None,
        }
    }

    /// Where its data lie, for a peer that can read them there.
    fn place(&self, peer: &Peer) -> Place {
        if !peer.single_copy.get() {
            return Place::Scattered;
        }
        let place = self.buf.in_runs(self.buf.bytes() as u64, |runs| {
            Place::new(runs.iter().map(|run| Region {
                address: run.as_ptr().expose_provenance() as u64,
                len: run.len() as u64,
            }))
        });
        let short = |place: &Place| Rendezvous::bytes_with(place) <= peer.limits.max_send;
        place.filter(short).unwrap_or(Place::Scattered)
    }

    /// From here on its data go in fragments.
    pub(super) fn begin(&mut self, stream: Stream) {
        self.stream = Some(Box::new(stream));
    }

    pub(super) fn buf(&self) -> &SendBuf {
        &self.buf
    }

    pub(super) fn bytes(&self) -> u64 {
        self.buf.bytes() as u64
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) fn header(&self) -> Header {
        wire::match_header(
            self.envelope.context,
            self.envelope.source,
            self.envelope.tag,
        )
    }

    /// The receiver's rank in the job.
    pub(super) fn proc(&self) -> ProcId {
        self.envelope.proc
    }

    /// Where to, with which tag, how many bytes: what the state page tells.
    pub(crate) fn about(&self) -> About {
        About {
            waits: Waits::Send,
            comm: self.envelope.context.number(),
            peer: self.envelope.dest,
            proc: self.envelope.proc as i32,
            tag: self.envelope.tag,
            bytes: self.buf.bytes() as u64,
            requests: 1,
        }
    }
}

/// Up to here a message is never asked for, because programs count on a short one's being sent without its receive.
const BRIEF: usize = 4 << 10;
/// Packing so many runs takes longer than announcing them, so that the receiver can begin with the first fragment.
const LABORIOUS_RUNS: i64 = 256;

/// How far a send got at once.
pub enum Sent {
    /// The transport has the data; there is nothing to wait for.
    Done,
    Pending(Req),
}

impl Ob1 {
    /// Starts a send.
    #[inline]
    pub fn isend(&self, envelope: Envelope, buf: SendBuf, mode: Mode) -> Result<Sent, Error> {
        let peer = self.peer(envelope.proc)?;
        let bytes = buf.bytes() as u64;
        if let Some(witness) = self.witness.get() {
            witness.sends(&envelope, bytes);
        }
        if self.is_eager(peer, mode, &buf) && peer.lets_through(bytes as usize) {
            match self.send_eager(peer, &envelope, &buf) {
                Ok(()) => return Ok(Sent::Done),
                Err(SendError::WouldBlock) => {}
                Err(_) => return Err(self.gone(envelope.proc, envelope.tag, bytes).into()),
            }
        }
        self.isend_slow(peer, envelope, buf, mode)
    }

    #[cold]
    fn isend_slow(
        &self,
        peer: &Rc<Peer>,
        envelope: Envelope,
        buf: SendBuf,
        mode: Mode,
    ) -> Result<Sent, Error> {
        let bytes = buf.bytes() as u64;
        if peer.unheard.get() < 0 {
            self.look_up(peer);
        }
        if peer.fresh.replace(false) {
            peer.eager_below.set(peer.limits.eager + 1);
        }
        let req = self.requests.begin(Body::Send(SendBody {
            buf,
            envelope,
            mode,
            stream: None,
        }));
        if peer.is_clear() {
            match self.offer(peer, &req) {
                Ok(()) => return Ok(Sent::Pending(req)),
                Err(SendError::WouldBlock) => {}
                Err(_) => {
                    self.requests.release(&req);
                    return Err(self.gone(envelope.proc, envelope.tag, bytes).into());
                }
            }
        }
        self.enqueue(peer, Queued::Send(req.clone()));
        Ok(Sent::Pending(req))
    }

    /// Whether the data go with the announcement.
    #[inline]
    fn is_eager(&self, peer: &Peer, mode: Mode, buf: &SendBuf) -> bool {
        let bytes = buf.bytes() as usize;
        if mode != Mode::Standard {
            false
        } else if bytes < peer.eager_below.get() {
            // Where packing takes long, it pays to have the receiver unpack the first fragment meanwhile.
            bytes <= BRIEF || !peer.single_copy.get() || buf.run_count() < LABORIOUS_RUNS
        } else {
            // One fragment holds it, and making that of a few long runs takes no longer than announcing it would.
            bytes <= peer.limits.max_send
                && buf.is_in_runs()
                && self.goes_unasked(peer, buf).is_some()
        }
    }

    #[inline]
    fn send_eager(&self, peer: &Peer, envelope: &Envelope, buf: &SendBuf) -> Result<(), SendError> {
        let header = wire::match_header(envelope.context, envelope.source, envelope.tag);
        let bytes = buf.bytes() as usize;
        if bytes <= peer.limits.eager {
            return send_range(peer, wire::EAGER, header, buf, 0, bytes);
        }
        peer.follow.count();
        send_range(peer, wire::UNASKED, header, buf, 0, bytes)
    }

    /// Hands a message to the transport for the first time: its data if they are eager, else the rendezvous.
    pub(super) fn offer(&self, peer: &Peer, req: &Req) -> Result<(), SendError> {
        let body = req.body.borrow();
        let Body::Send(send) = &*body else {
            // Cancelled or abandoned while it was queued.
            return Ok(());
        };
        if self.is_eager(peer, send.mode, &send.buf) {
            self.send_eager(peer, &send.envelope, &send.buf)?;
            drop(body);
            match peer.btl.is_through(peer.endpoint) {
                true => self.requests.complete_ok(req),
                // Whoever waits for it makes the connection, and it does not lie here while the program computes.
                false => self.streams.borrow_mut().push_back(req.clone()),
            }
            return Ok(());
        }
        drop(body);
        match self.offer_followed(peer, req) {
            Some(offered) => offered,
            None => self.announce(peer, req),
        }
    }

    /// Announces a message whose data wait until they are wanted.
    fn announce(&self, peer: &Peer, req: &Req) -> Result<(), SendError> {
        let body = req.body.borrow();
        let Body::Send(send) = &*body else {
            return Ok(());
        };
        let rendezvous = Rendezvous {
            bytes: send.bytes(),
            sender: req.id(),
            place: send.place(peer),
        };
        rendezvous.encoded(|payload| {
            peer.send(wire::RENDEZVOUS, send.header(), Payload::Bytes(payload))
        })?;
        peer.is_told();
        peer.follow.count();
        Ok(())
    }

    /// The receiver wants the data in fragments.
    pub(super) fn on_clear(&self, from: ProcId, header: Header, payload: &[u8]) {
        self.answered(from);
        let (Some(req), Some(wanted)) =
            (self.requests.get(ReqId(header[0])), wire::word(payload, 0))
        else {
            return self.garble();
        };
        let Ok(peer) = self.peer(from) else {
            return self.garble();
        };
        {
            let mut body = req.body.borrow_mut();
            let Body::Send(send) = &mut *body else {
                return self.garble();
            };
            let packed = !send.buf.is_in_runs();
            if send.envelope.proc != from
                || send.stream.is_some()
                || wanted > send.buf.bytes() as u64
            {
                return self.garble();
            }
            let fragment = peer.btl.fragment(wanted, packed);
            send.begin(Stream::new(
                wire::FRAGMENT,
                ReqId(header[1]),
                wanted,
                fragment,
            ));
        }
        self.streams.borrow_mut().push_back(req);
    }

    /// Sends what there is room for of a stream that has just begun.
    pub(super) fn flow(&self, req: &Req) {
        self.streams.borrow_mut().push_back(req.clone());
        self.push_streams();
    }

    /// Sends fragments until every stream is done or its transport is full; to each peer in the order in which it asked for them.
    pub(super) fn push_streams(&self) -> bool {
        let mut moved = false;
        let mut full = None;
        let streams = self.streams.borrow().len();
        // Whoever is not through goes to the end, so after a round their order is what it was.
        for _ in 0..streams {
            let Some(req) = self.streams.borrow_mut().pop_front() else {
                break;
            };
            let to = match &*req.body.borrow() {
                Body::Send(send) => Some(send.proc()),
                _ => None,
            };
            if to.is_some() && to == full {
                self.streams.borrow_mut().push_back(req);
                continue;
            }
            match self.push(&req, &mut moved) {
                Ok(true) if self.waits_for_word(&req) => {}
                Ok(true) => self.requests.complete_ok(&req),
                Ok(false) | Err(SendError::WouldBlock) => {
                    full = to;
                    self.streams.borrow_mut().push_back(req);
                }
                Err(_) => self.fail_send(&req),
            }
        }
        moved
    }

    /// Sends fragments of one stream while there is room; true when it is done.
    fn push(&self, req: &Req, moved: &mut bool) -> Result<bool, SendError> {
        let mut body = req.body.borrow_mut();
        // A send whose request was abandoned has nothing left to send.
        let Body::Send(SendBody {
            buf,
            envelope,
            stream,
            ..
        }) = &mut *body
        else {
            return Ok(true);
        };
        let Ok(peer) = self.peer(envelope.proc) else {
            return Err(SendError::PeerGone);
        };
        let Some(stream) = stream else {
            return self.is_gone(peer, envelope.proc);
        };
        while stream.sent < stream.wanted {
            let (header, range) = stream.next();
            let (at, len) = (range.start, range.len());
            match (peer.btl.lending(), buf.contiguous()) {
                (Some(lending), Some(data)) if stream.am == wire::FRAGMENT => {
                    lending.lend(peer.endpoint, wire::FRAGMENT, header, &data[range])?;
                }
                _ => send_range(peer, stream.am, header, buf, at, len)?,
            }
            stream.sent += len as u64;
            *moved = true;
        }
        Ok(true)
    }

    /// Whether a short message is on its way, which had to wait for its connection.
    fn is_gone(&self, peer: &Peer, to: ProcId) -> Result<bool, SendError> {
        match peer.btl.is_through(peer.endpoint) {
            _ if self.is_lost(to) => Err(SendError::PeerGone),
            true => Ok(true),
            false => Err(SendError::WouldBlock),
        }
    }

    /// Whether a send whose fragments are all on their way has to have them until the receiver does.
    fn waits_for_word(&self, req: &Req) -> bool {
        match &*req.body.borrow() {
            Body::Send(send) if send.stream.is_some() => {
                self.peer(send.proc()).is_ok_and(|peer| peer.patient)
            }
            _ => false,
        }
    }

    /// The receiver has the data, or wants no more of them.
    pub(super) fn on_finished(&self, from: ProcId, header: Header) {
        // The sender may have given the request up; the receiver cannot know.
        let req = self.requests.get(ReqId(header[0]));
        let streamed = match req.as_ref().map(|req| req.body.borrow()).as_deref() {
            Some(Body::Send(send)) => Some(send.stream.is_some()),
            _ => None,
        };
        if streamed != Some(true) {
            self.answered(from);
        }
        if let (Some(req), Some(_)) = (req, streamed)
            && !req.is_complete()
        {
            self.stop_streaming(&req);
            self.requests.complete_ok(&req);
        }
    }

    /// Nothing more of a send's data goes out but the fragment that was begun.
    pub(super) fn stop_streaming(&self, req: &Req) {
        let is_it = |other: &Req| Rc::ptr_eq(other, req);
        let place = self.streams.borrow().iter().position(is_it);
        let Some(place) = place else {
            return;
        };
        self.streams.borrow_mut().remove(place);
        if let Body::Send(SendBody {
            buf,
            envelope,
            stream: Some(stream),
            ..
        }) = &*req.body.borrow()
            && let Ok(peer) = self.peer(envelope.proc)
            && let (Some(lending), Some(data)) = (peer.btl.lending(), buf.contiguous())
        {
            let (header, range) = stream.next();
            lending.leave_rest(peer.endpoint, wire::FRAGMENT, header, &data[range]);
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
                && stream.am == wire::FRAGMENT
                && stream.whose.0 == receiver
                && end <= stream.wanted
            {
                let mut packed = vec![0; len];
                buf.pack_at(at as i64, &mut packed);
                return send(&packed);
            }
        }
    }

    /// A message that was announced to a peer is not waiting any more.
    fn answered(&self, from: ProcId) {
        if let Ok(peer) = self.peer(from) {
            peer.announced.set(peer.announced.get().saturating_sub(1));
        }
    }

    /// Ends a send whose peer cannot be reached.
    pub(super) fn fail_send(&self, req: &Req) {
        let error = match &*req.body.borrow() {
            Body::Send(send) => {
                let bytes = send.buf.bytes() as u64;
                self.gone(send.proc(), send.envelope.tag, bytes)
            }
            // Cancelled or abandoned while it was queued.
            _ => return,
        };
        self.requests.complete(req, Err(error.into()));
    }
}

/// Sends packed bytes `at..at + len` of a buffer; data that do not lie together are packed straight into the transport's memory.
#[inline]
fn send_range(
    peer: &Peer,
    am: Am,
    header: Header,
    buf: &SendBuf,
    at: usize,
    len: usize,
) -> Result<(), SendError> {
    match buf.contiguous() {
        Some(data) => peer.send(am, header, Payload::Bytes(&data[at..at + len])),
        None => {
            let mut fill = |out: &mut [u8]| {
                buf.pack_at(at as i64, out);
            };
            peer.send(
                am,
                header,
                Payload::Fill {
                    len,
                    fill: &mut fill,
                },
            )
        }
    }
}
