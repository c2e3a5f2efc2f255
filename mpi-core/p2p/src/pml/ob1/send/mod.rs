//! The sender's side: a send from start to completion, by any protocol.
//!
//! Messages are sent eagerly ([`eager`]), by rendezvous ([`announce`]), or by the eager pipeline ([`pipeline`]).
//! Sends in fragments to one peer are served round-robin ([`streams`]), and the sender copies a part of a cooperative copy ([`assist`]).
//! Short messages to a throttling receiver are copied ([`copies`]); a send may be cancelled ([`cancel`]).
//!
//! [`Sender`] combines these modules: it chooses the protocol of each message, and retries the queued messages.

mod announce;
pub mod assist;
pub mod cancel;
mod copies;
mod eager;
mod in_place;
pub mod pipeline;
mod range;
pub mod streams;
mod unreachable;

use super::core::{Core, HandlerResult, ProtocolError};
use super::flow_control::send_throttle;
use super::peer::{Peer, Queued};
use super::send_body::SendBody;
use super::wire;
use crate::Error;
use crate::btl::{Header, Payload, ProcId, SendError};
use crate::datatype::SendBuf;
use crate::pml::envelope::{Envelope, Mode};
use crate::pml::error::PmlError;
use crate::request::{Body, Req, ReqId};
use announce::{announce, answered, released};
use copies::SenderCopies;
use eager::{is_eager, send_eager};
use mpi_base::accelerator::twins::{self, Part};
use std::rc::Rc;
use streams::Streams;
use unreachable::fail_send;

/// The state of a send after its start.
pub enum Sent {
    /// The transport has accepted the data, so the send is complete.
    Done,
    Pending(Req),
}

/// The maximum length in bytes of a host buffer that is never a staging copy of device memory.
const NO_TWIN: u64 = 4 << 10;

/// Returns the device memory of which the send buffer is the host staging copy; `None` for another buffer.
#[inline]
pub(super) fn device_twin(buf: &SendBuf) -> Option<Part> {
    let data = buf.contiguous()?;
    twins::of(data.as_ptr(), data.len())
}

/// If the send buffer of an eager message is the host staging copy of device memory, copies the data from the device to it.
#[inline]
fn fill_device_twin(buf: &SendBuf) {
    if buf.bytes() as u64 > NO_TWIN
        && let Some(twin) = device_twin(buf)
    {
        twin.fill();
    }
}

#[derive(Default)]
pub struct Sender {
    /// Copies of messages whose receivers throttle.
    copies: SenderCopies,
    /// The sends in fragments to all peers.
    streams: Streams,
}

impl Sender {
    #[inline]
    pub(super) fn streams(&self) -> &Streams {
        &self.streams
    }

    pub(super) fn copies(&self) -> &SenderCopies {
        &self.copies
    }

    /// Passes a message to the transport if it is eager and can be sent immediately. Otherwise returns false; the caller must [begin](Sender::begin) a send.
    #[inline(always)]
    pub(super) fn try_eager(
        &self,
        core: &Core,
        peer: &Peer,
        envelope: &Envelope,
        buf: &SendBuf,
        mode: Mode,
    ) -> Result<bool, PmlError> {
        let bytes = buf.bytes() as u64;
        if is_eager(core, peer, mode, buf) && peer.lets_through(bytes as usize) {
            fill_device_twin(buf);
            match send_eager(peer, envelope, buf) {
                Ok(()) => return Ok(true),
                Err(SendError::WouldBlock) => {}
                Err(_) => return Err(core.losses().gone(envelope.proc, envelope.tag, bytes)),
            }
        }
        Ok(false)
    }

    /// Starts a send with a request, which completes when the data have been sent.
    pub(super) fn begin(
        &self,
        core: &Core,
        peer: &Rc<Peer>,
        envelope: Envelope,
        buf: SendBuf,
        mode: Mode,
    ) -> Result<Sent, Error> {
        let bytes = buf.bytes() as u64;
        if core.losses().has(envelope.proc) {
            // The transport might not report the loss: if its buffers are full of data that the peer has not read, it reports only that it has no space.
            let gone = core.losses().gone(envelope.proc, envelope.tag, bytes);
            return Err(gone.into());
        }
        peer.credit().connects();
        let req = core
            .requests()
            .begin(Body::Send(SendBody::new(buf, envelope, mode)));
        if peer.queue().is_empty() {
            match self.offer(core, peer, &req) {
                Ok(()) => return Ok(Sent::Pending(req)),
                Err(SendError::WouldBlock) => {}
                Err(_) => {
                    core.requests().release(&req);
                    let gone = core.losses().gone(envelope.proc, envelope.tag, bytes);
                    return Err(gone.into());
                }
            }
        }
        core.counts().queues();
        core.links().enqueue(peer, Queued::Send(req.clone()));
        Ok(Sent::Pending(req))
    }

    /// Passes a message to the transport for the first time: the data if the message is eager, otherwise the announcement.
    fn offer(&self, core: &Core, peer: &Rc<Peer>, req: &Req) -> Result<(), SendError> {
        let body = req.body.borrow();
        let Body::Send(send) = &*body else {
            // The send was cancelled or abandoned while it was queued.
            return Ok(());
        };
        if is_eager(core, peer, send.mode(), send.buf()) {
            fill_device_twin(send.buf());
            send_eager(peer, send.envelope(), send.buf())?;
            drop(body);
            match peer.is_connected() {
                true => core.requests().complete_ok(req),
                // The message waits for the connection. Its request stays active, so a thread that waits for the request also establishes the connection.
                false => self.streams.enqueue(peer, req.clone()),
            }
            return Ok(());
        }
        if device_twin(send.buf()).is_some() {
            drop(body);
            return announce(core, peer, req);
        }
        if let Some(copy) = self.copies.copy_of_throttled(core, peer, send) {
            drop(body);
            return self.copies.announce(core, peer, req, copy);
        }
        drop(body);
        match pipeline::send(core, &self.streams, peer, req) {
            Some(offered) => offered,
            None => announce(core, peer, req),
        }
    }

    /// Passes the queued messages to the transports again. Returns true if any message was sent or has failed.
    ///
    /// THROTTLE is sent before all queued messages.
    #[cold]
    pub(super) fn drain_queues(&self, core: &Core) -> bool {
        let links = core.links();
        let mut moved = false;
        for peer in links.take_congested() {
            send_throttle(links, &peer);
            while let Some(item) = peer.queue().pop() {
                let result = match &item {
                    Queued::Control {
                        am,
                        header,
                        payload,
                    } => peer.send(*am, *header, Payload::Bytes(payload)),
                    Queued::Description { header, payload } => {
                        peer.send(wire::TYPES, *header, Payload::Bytes(payload))
                    }
                    Queued::Send(req) => self.offer(core, &peer, req),
                };
                match result {
                    Ok(()) => moved = true,
                    Err(SendError::WouldBlock) => {
                        peer.queue().put_back(item);
                        break;
                    }
                    Err(SendError::PeerGone | SendError::TooLong { .. }) => {
                        moved = true;
                        if let Queued::Send(req) = item {
                            fail_send(core, &req);
                        }
                    }
                }
            }
            if !peer.queue().is_empty() {
                links.congest(&peer);
            }
        }
        moved
    }

    /// Handles FIN: the receiver has all the data that it needs.
    pub(super) fn on_fin(&self, core: &Core, from: ProcId, header: Header) -> HandlerResult {
        // The request may have been abandoned without notice to the receiver.
        let req = core.requests().get(ReqId(header[0]));
        let streamed = match req.as_ref().map(|req| req.body.borrow()).as_deref() {
            Some(Body::Send(send)) => Some(send.is_streaming()),
            _ => None,
        };
        let known = match req {
            None => core.late(header[0]),
            Some(_) => Ok(()),
        };
        if let Some(req) = &req
            && in_place::is_active(req)
        {
            return Err(ProtocolError(
                "the end of a message that is being delivered in place",
            ));
        }
        if streamed != Some(true) {
            answered(core, from);
        }
        if let (Some(req), Some(_)) = (req, streamed)
            && !req.is_complete()
        {
            streams::stop(core, &req);
            released(core, &req);
            core.requests().complete_ok(&req);
        }
        known
    }
}
