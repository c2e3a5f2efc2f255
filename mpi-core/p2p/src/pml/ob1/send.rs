//! The sending side.

use super::Ob1;
use super::fragment_stream::Stream;
use super::peer::{Peer, Queued};
use super::wire::{self, Place, Rendezvous};
use crate::Error;
use crate::btl::{Am, Header, Payload, ProcId, Region, SendError};
use crate::datatype::SendBuf;
use crate::pml::{Envelope, Mode};
use crate::request::{Body, Req, ReqId};
use mpi_base::state::{About, Waits};
use std::rc::Rc;

/// A send under way.
pub struct SendBody {
    pub(super) buf: SendBuf,
    pub(super) envelope: Envelope,
    pub(super) mode: Mode,
    pub(super) stream: Option<Box<Stream>>,
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

    pub(super) fn buf(&self) -> &SendBuf {
        &self.buf
    }

    pub(super) fn bytes(&self) -> u64 {
        self.buf.bytes() as u64
    }

    /// Whether its data go in fragments or pieces.
    pub(super) fn is_streaming(&self) -> bool {
        self.stream.is_some()
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
    pub fn about(&self) -> About {
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
/// Up to here a message that goes unasked goes in one piece; longer ones are worked on by both sides at once.
const WHOLE: usize = 32 << 10;
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
        if self.is_eager(&peer, mode, &buf) && peer.lets_through(bytes as usize) {
            match self.send_eager(&peer, &envelope, &buf) {
                Ok(()) => return Ok(Sent::Done),
                Err(SendError::WouldBlock) => {}
                Err(_) => return Err(self.gone(envelope.proc, envelope.tag, bytes).into()),
            }
        }
        self.isend_slow(&peer, envelope, buf, mode)
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
        if peer.unpolled_bytes.get() < 0 {
            self.poll_after_eager(peer);
        }
        if peer.unconnected.replace(false) {
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
            bytes <= WHOLE.min(peer.limits.max_send)
                && buf.is_in_runs()
                && self.eager_pipeline_fragment(peer, buf).is_some()
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
        send_range(peer, wire::EAGER_LONG, header, buf, 0, bytes)
    }

    /// Hands a message to the transport for the first time: its data if they are eager, else the rendezvous.
    pub(super) fn offer(&self, peer: &Rc<Peer>, req: &Req) -> Result<(), SendError> {
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
                // A thread that waits for it makes the connection, and it does not lie here while the program computes.
                false => self.enqueue_stream(peer, req.clone()),
            }
            return Ok(());
        }
        if let Some(copy) = self.copy_of_throttled(peer, send) {
            drop(body);
            return self.announce_copy(peer, req, copy);
        }
        drop(body);
        match self.send_eager_pipeline(peer, req) {
            Some(offered) => offered,
            None => self.announce(peer, req),
        }
    }

    /// Announces a message whose data wait until they are wanted.
    pub(super) fn announce(&self, peer: &Peer, req: &Req) -> Result<(), SendError> {
        let body = req.body.borrow();
        let Body::Send(send) = &*body else {
            return Ok(());
        };
        let rendezvous = Rendezvous {
            bytes: send.bytes(),
            sender: req.id(),
            place: send.place(peer),
        };
        rendezvous
            .encoded(|payload| peer.send(wire::RNDV, send.header(), Payload::Bytes(payload)))?;
        peer.was_polled();
        peer.follow.count();
        Ok(())
    }

    /// The receiver has the data, or wants no more of them.
    pub(super) fn on_fin(&self, from: ProcId, header: Header) {
        // The sender may have given the request up; the receiver cannot know.
        let req = self.requests.get(ReqId(header[0]));
        let streamed = match req.as_ref().map(|req| req.body.borrow()).as_deref() {
            Some(Body::Send(send)) => Some(send.stream.is_some()),
            _ => None,
        };
        if req.is_none() {
            self.late(from, header[0]);
        }
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

    /// A message that was announced to a peer is not waiting any more.
    pub(super) fn answered(&self, from: ProcId) {
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
pub(super) fn send_range(
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
