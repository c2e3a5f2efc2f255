//! Direct receive: a transport writes long payloads directly into the receive buffer, without a buffer of its own.
//!
//! The header of a fragment contains the destination: the receive and the offset.
//! A long eager message is matched when its first bytes arrive. This preserves the order, because later messages of its sender arrive later.
//! Then the receive waits for one fragment, which is the message itself. The sender's
//! [`Peer`](super::super::peer::Peer) stores the ID of this receive.
//! A message is delivered as a whole on the general path if no posted receive matches,
//! or if the receive buffer is not contiguous or too small.

use super::super::core::Core;
use super::super::fast_path::Slot;
use super::super::incoming::Incoming;
use super::super::matcher::Matcher;
use super::super::matching::Key;
use super::super::peer_failure::withdraw;
use super::super::wire;
use super::fragments::{awaited, count};
use crate::btl::{Am, Header, ProcId};
use crate::pml::envelope::Context;
use crate::request::{Body, Req, ReqId};
use std::ops::Range;

/// The matching state and the fast-path slot that are searched for the receive of an arriving message.
pub struct Receives<'a> {
    pub slot: &'a Slot,
    pub matcher: &'a Matcher,
}

/// Begins a payload of `len` bytes whose first bytes, `begun`, have arrived.
/// If the transport can write the rest to the destination, too,
/// copies `begun` there and returns true.
pub fn begin(
    core: &Core,
    receives: Receives<'_>,
    from: ProcId,
    am: Am,
    header: Header,
    len: usize,
    begun: &[u8],
) -> bool {
    let header = match am {
        wire::FRAG => Some(header),
        wire::EAGER => meet_early(core, receives, from, header, len),
        _ => None,
    };
    let Some(header) = header.filter(|header| awaited(core, from, *header, len).is_some()) else {
        return false;
    };
    let mut fill = |place: &mut [u8]| place.copy_from_slice(begun);
    put(core, from, header, 0..begun.len(), &mut fill)
}

/// Calls `fill` with the destination of the payload's bytes `range`. Returns false if the receive no longer waits for them.
pub fn go_on(
    core: &Core,
    from: ProcId,
    am: Am,
    header: Header,
    range: Range<usize>,
    fill: &mut dyn FnMut(&mut [u8]),
) -> bool {
    match as_fragment(core, from, am, header) {
        Some(header) => put(core, from, header, range, fill),
        None => false,
    }
}

/// Ends a payload of which all bytes are in the receive buffer.
pub fn end(core: &Core, from: ProcId, am: Am, header: Header, len: usize) {
    let header = as_fragment(core, from, am, header);
    if am == wire::EAGER
        && let Ok(peer) = core.links().peer(from)
    {
        peer.set_direct_receive(None);
    }
    let req = header.and_then(|header| Some((awaited(core, from, header, len)?, header[1])));
    match req {
        Some((req, at)) => count(core, &req, at, len),
        None => core.protocol_error(),
    }
}

/// Returns the header that a fragment with this payload would have: the receive and the offset.
fn as_fragment(core: &Core, from: ProcId, am: Am, header: Header) -> Option<Header> {
    match am {
        wire::FRAG => Some(header),
        wire::EAGER => {
            let ReqId(receive) = core.links().peer(from).ok()?.direct_receive()?;
            Some([receive, 0])
        }
        _ => None,
    }
}

fn put(
    core: &Core,
    from: ProcId,
    header: Header,
    range: Range<usize>,
    fill: &mut dyn FnMut(&mut [u8]),
) -> bool {
    let Some(req) = awaited(core, from, header, range.end) else {
        return false;
    };
    let mut body = req.body.borrow_mut();
    let Body::Recv(recv) = &mut *body else {
        return false;
    };
    let at = header[1] as usize;
    let place = recv
        .contiguous()
        .and_then(|all| all.get_mut(at + range.start..at + range.end));
    match place {
        Some(place) => {
            fill(place);
            true
        }
        None => false,
    }
}

/// Matches an eager message after only its first bytes have arrived.
/// Returns `None`, without changing any state, if the message must arrive completely first.
fn meet_early(
    core: &Core,
    receives: Receives<'_>,
    from: ProcId,
    header: Header,
    len: usize,
) -> Option<Header> {
    if core.types().is_some() {
        // The check of type signatures needs the whole message.
        return None;
    }
    let (context, key) = wire::read_match(header);
    let peer = core.links().peer(from).ok()?;
    let req = early_receive(core, receives, context, key, len)?;
    if let Body::Recv(recv) = &mut *req.body.borrow_mut() {
        recv.expect(Incoming::new(from, len as u64, None));
        if let Some(observer) = core.observer() {
            observer.meets(req.id(), context, key, len as u64);
        }
    }
    req.set_status(key.status(len as u64));
    peer.set_direct_receive(Some(req.id()));
    Some([req.id().0, 0])
}

/// Removes and returns the receive that an eager message of `len` bytes matches,
/// if its buffer is contiguous and has at least `len` bytes.
fn early_receive(
    core: &Core,
    Receives { slot, matcher }: Receives<'_>,
    context: Context,
    key: Key,
    len: usize,
) -> Option<Req> {
    let matching = matcher.matching(context);
    if slot.takes(context, key) {
        let fits = slot.capacity() >= len as u64;
        return fits.then(|| slot.move_on(core.requests(), &matching));
    }
    let req = core.requests().get(matching.peek_posted(key)?)?;
    let has_room = match &mut *req.body.borrow_mut() {
        Body::Recv(recv) => recv.contiguous().is_some_and(|all| all.len() >= len),
        _ => false,
    };
    (has_room && withdraw(&req)).then_some(req)
}
