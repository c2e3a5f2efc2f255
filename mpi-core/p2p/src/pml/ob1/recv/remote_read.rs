//! Remote reads: the network reads a large message from the sender's registered memory into the receive buffer.
//!
//! The sender registers its memory and sends the key with the announcement ([`Rendezvous`]).
//! The receiver starts the read, handles other messages, and sends FIN when all data have arrived.
//! If the read fails, the message is sent in fragments.
//!
//! A message for device memory is read in pieces, one after the other ([`Pieces`]):
//! each piece is copied to the device while the network reads the next one.

#![allow(unsafe_code)]

use super::super::core::Core;
use super::super::incoming::Incoming;
use super::super::peer::Peer;
use super::super::peer_failure::fail_if_lost;
use super::super::recv_body::RecvBody;
use super::super::wire::Rendezvous;
use super::answers::ask_for_fragments;
use super::fragments::count;
use crate::btl::{ProcId, Region, RemoteMemory, Span};
use crate::request::{Body, Req, ReqId};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The time between the detected loss of a sender and the abandonment of an active read from this sender.
const GIVEN_UP: Duration = Duration::from_secs(2);

/// The active remote reads.
#[derive(Default)]
pub struct RemoteReads {
    open: RefCell<Vec<Open>>,
}

/// The length in bytes of a read for device memory. The network is idle between two reads,
/// so a piece is long compared to the latency of a read.
const PIECE: u64 = 4 << 20;

/// A receive with an active remote read.
struct Open {
    receive: ReqId,
    from: ProcId,
    peer: Rc<Peer>,
    read: Cell<u64>,
    /// The progress of a message that is read in pieces.
    pieces: Option<Pieces>,
    sender: ReqId,
    /// The time at which the loss of the sender was detected.
    lost_since: Cell<Option<Instant>>,
}

/// The progress of a message for device memory: the active read is that of the bytes `start..end`.
pub struct Pieces {
    key: Box<[u8]>,
    start: Cell<u64>,
    end: Cell<u64>,
    wanted: u64,
}

fn reader(peer: &Peer) -> Option<&dyn RemoteMemory> {
    peer.btl().capabilities().remote_memory
}

/// Starts the remote read of an announced message. Returns the read's ID, and the progress if the message is read in pieces.
/// Returns `None` if the message must be sent in fragments.
pub fn start(
    peer: &Peer,
    req: &Req,
    rendezvous: &Rendezvous,
    wanted: u64,
) -> Option<(u64, Option<Pieces>)> {
    let key = rendezvous.key.as_deref().filter(|_| wanted > 0)?;
    let reader = reader(peer)?;
    let mut body = req.body.borrow_mut();
    let Body::Recv(recv) = &mut *body else {
        return None;
    };
    // A transport that reads device memory copies to the receiver's device itself.
    let in_pieces = wanted > PIECE && !reader.reads_devices() && recv.device().is_some();
    let end = if in_pieces { PIECE } else { wanted };
    let read = read(peer, reader, recv, key, 0..end)?;
    let pieces = in_pieces.then(|| Pieces {
        key: key.into(),
        start: Cell::new(0),
        end: Cell::new(end),
        wanted,
    });
    Some((read, pieces))
}

/// Starts a read of the bytes `part` of a message. Returns the read's ID; `None` if the transport refuses.
fn read(
    peer: &Peer,
    reader: &dyn RemoteMemory,
    recv: &mut RecvBody,
    key: &[u8],
    part: Range<u64>,
) -> Option<u64> {
    let buffer = recv.contiguous()?;
    let place = buffer.get_mut(part.start as usize..part.end as usize)?;
    let local = Region {
        address: place.as_mut_ptr().expose_provenance() as u64,
        len: part.end - part.start,
    };
    let span = Span {
        key,
        offset: part.start,
        local,
    };
    // SAFETY: the receive owns its buffer until it completes, which happens only after the end of the read; `abandon` ends the read first.
    let read = unsafe { reader.read(peer.endpoint(), span) };
    read.ok()
}

impl RemoteReads {
    /// Returns true if a read is active.
    #[inline]
    pub fn are_open(&self) -> bool {
        !self.open.borrow().is_empty()
    }

    /// Adds a started read, and the progress of a message in pieces, to the active reads.
    pub fn list(
        &self,
        (from, peer): (ProcId, &Rc<Peer>),
        req: &Req,
        (read, pieces): (u64, Option<Pieces>),
        sender: ReqId,
    ) {
        self.open.borrow_mut().push(Open {
            receive: req.id(),
            from,
            peer: peer.clone(),
            read: Cell::new(read),
            pieces,
            sender,
            lost_since: Cell::new(None),
        });
    }

    /// Completes the receives whose reads have ended. Returns true if any receive was completed.
    #[cold]
    pub fn poll(&self, core: &Core) -> bool {
        let (mut open, mut moved) = (self.open.take(), false);
        open.retain(|open| {
            let outcome = match reader(&open.peer) {
                Some(all) if is_awaited(core, open) => match outcome(core, all, open) {
                    Some(true) => next_piece(core, all, open),
                    other => other,
                },
                Some(all) => {
                    all.give_up(open.read.get());
                    return false;
                }
                None => Some(false),
            };
            if let Some(succeeded) = outcome {
                moved = true;
                ended(core, open, succeeded);
            }
            outcome.is_none()
        });
        self.open.borrow_mut().extend(open);
        moved
    }
}

/// Returns true if a read has succeeded, false if it has failed, and `None` while it is active.
/// Until the read ends, the network may write to the buffer, even after the loss of the sender.
/// The network library ends the reads from a lost process soon. If this takes longer than [`GIVEN_UP`], the read is abandoned and counts as failed.
fn outcome(core: &Core, all: &dyn RemoteMemory, open: &Open) -> Option<bool> {
    let outcome = all.outcome(open.read.get());
    if outcome.is_some() || !core.losses().has(open.from) {
        return outcome;
    }
    let now = Instant::now();
    let since = open.lost_since.get().unwrap_or(now);
    open.lost_since.set(Some(since));
    if now.duration_since(since) < GIVEN_UP {
        return None;
    }
    all.give_up(open.read.get());
    Some(false)
}

/// Processes the end of a successful read: starts the read of the message's next piece.
/// Returns true if the message is complete, false if no read could be started, and `None` while a read is active.
fn next_piece(core: &Core, reader: &dyn RemoteMemory, open: &Open) -> Option<bool> {
    let Some(pieces) = &open.pieces else {
        return Some(true);
    };
    let req = core.requests().get(open.receive)?;
    let mut body = req.body.borrow_mut();
    let Body::Recv(recv) = &mut *body else {
        return Some(true);
    };
    let (start, end) = (pieces.start.get(), pieces.end.get());
    if let Some(device) = recv.incoming().and_then(Incoming::device) {
        device.arrive(start as usize..end as usize);
    }
    if end >= pieces.wanted {
        return Some(true);
    }
    let next = end..pieces.wanted.min(end + PIECE);
    let Some(read) = read(&open.peer, reader, recv, &pieces.key, next.clone()) else {
        return Some(false);
    };
    pieces.start.set(next.start);
    pieces.end.set(next.end);
    open.read.set(read);
    if let Some(incoming) = recv.incoming_mut() {
        incoming.set_read(read);
    }
    None
}

/// Returns true if the receive still waits for this read.
fn is_awaited(core: &Core, open: &Open) -> bool {
    let req = core.requests().get(open.receive);
    req.is_some_and(|req| read_of(&req) == Some(open.read.get()))
}

/// Returns the ID of the remote read for which a receive waits.
fn read_of(req: &Req) -> Option<u64> {
    match &*req.body.borrow() {
        Body::Recv(recv) => recv.incoming().and_then(Incoming::read),
        _ => None,
    }
}

fn ended(core: &Core, open: &Open, succeeded: bool) {
    let req = core.requests().get(open.receive);
    let Some(req) = req.filter(|req| !req.is_complete() && read_of(req) == Some(open.read.get()))
    else {
        return;
    };
    let wanted = {
        let mut body = req.body.borrow_mut();
        let Body::Recv(recv) = &mut *body else { return };
        let Some(incoming) = recv.incoming_mut() else {
            return;
        };
        incoming.end_read();
        if !succeeded && !open.peer.is_fin_required() {
            incoming.take_sender();
        }
        incoming.wanted()
    };
    match succeeded {
        true => count(core, &req, 0, wanted as usize),
        false if fail_if_lost(core, &req, open.from) => {}
        false => ask_for_fragments(core, &open.peer, open.sender, &req, wanted),
    }
}

/// Abandons the remote read of an abandoned receive, so that the network no longer writes to its buffer.
pub fn abandon(core: &Core, req: &Req) {
    let (from, read) = match &mut *req.body.borrow_mut() {
        Body::Recv(recv) => match recv.incoming_mut() {
            Some(incoming) => match incoming.end_read() {
                Some(read) => (incoming.from(), read),
                None => return,
            },
            None => return,
        },
        _ => return,
    };
    if let Ok(peer) = core.links().peer(from)
        && let Some(reader) = reader(&peer)
    {
        reader.give_up(read);
    }
}
