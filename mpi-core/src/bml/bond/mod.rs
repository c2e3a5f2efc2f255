//! Several links to each peer, used as one transport.
//!
//! **Sharing.** Messages that may overtake each other ([`OVERTAKES`]), which are the pieces of large messages, go to the link that has had the
//! least for its bandwidth, or to the next one if that has no room; so the links share a message in proportion to what they really carry.
//! All other messages go over the first link that lives, where they keep their order by themselves.
//!
//! **Losing a link loses nothing.** Every message has a number and is kept until the peer has acknowledged it.
//! When a link dies, what was sent over it and not acknowledged is sent again over those that are left.
//! The receiver drops what it has had already, and delivers ordered messages by their numbers, whichever way they came.
//! Only when the last link has died the peer is lost, and the sentence quotes what every link said.
//!
//! **On the wire** a message over a link has header `[number, 0]` and a payload that begins with [`PREFIX`] bytes:
//! its own header, and how far both sequences of the other direction have come without a gap.
//! Ordered and overtaking messages are numbered apart, from 1.
//! An [`ACK`] says only the latter; it is sent when much has come and nothing went back, and before a process sleeps.
//!
//! Both ends must bond the same links; transports see to that when they are asked whom they reach.

mod repair;
mod side;
mod through;

use crate::btl::{
    Am, Btl, Endpoint, Header, Limits, Payload, ProcId, Reach, SendError, Sink, Transport,
};
use side::{FREE, Kept, ORDERED, Side, sequence};
use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::BorrowedFd;
use through::Through;

/// The active message of acknowledgements; the layers above use smaller numbers.
pub const ACK: Am = u8::MAX;

/// What stands before a message's own payload: its header and two acknowledgements.
const PREFIX: usize = 4 * size_of::<u64>();

/// As many links are used at most.
const MOST: usize = 16;
/// As many bytes are kept for one peer at most.
const WINDOW: usize = 8 << 20;
/// The receiver acknowledges at the latest after so many bytes or messages.
const SOON_BYTES: usize = WINDOW / 8;
const SOON_MESSAGES: u32 = 64;
/// Buffers that wait to be used again.
const SPARE: usize = 128;

/// The links of one process.
pub struct Bond {
    me: ProcId,
    links: Vec<Transport>,
    sides: Vec<OnceCell<Box<Side>>>,
    spare: RefCell<Vec<Vec<u8>>>,
}

impl Bond {
    pub fn new(me: ProcId, size: u32, links: Vec<Transport>) -> Bond {
        Bond {
            me,
            links,
            sides: (0..size).map(|_| OnceCell::new()).collect(),
            spare: RefCell::default(),
        }
    }

    fn side(&self, peer: ProcId) -> Option<&Side> {
        let make = || Box::new(Side::new(peer, &self.links));
        Some(self.sides.get(peer as usize)?.get_or_init(make))
    }

    /// Hands bytes to a link; whether it took them, and if not, whether it is worth asking again.
    fn offer(
        &self,
        side: &Side,
        way: usize,
        am: Am,
        number: u64,
        bytes: &[u8],
    ) -> Result<(), SendError> {
        let endpoint = side.ways[way].endpoint;
        self.links[way].send(endpoint, am, [number, 0], Payload::Bytes(bytes))?;
        let weighed = (bytes.len() as u64) << 20;
        let bandwidth = u64::from(self.links[way].bandwidth(endpoint)).max(1);
        let load = &side.ways[way].load;
        load.set(load.get() + weighed / bandwidth);
        Ok(())
    }

    /// The links that live, in the order in which a message of a sequence tries them.
    fn order(&self, side: &Side, which: usize) -> impl Iterator<Item = usize> {
        let mut ways = [usize::MAX; MOST];
        let up = (0..side.ways.len().min(MOST)).filter(|&way| side.is_up(way));
        let count = ways.iter_mut().zip(up).map(|(at, way)| *at = way).count();
        if which == FREE {
            ways[..count].sort_unstable_by_key(|&way| side.ways[way].load.get());
        }
        ways.into_iter().take(count)
    }

    /// The peers we have had to do with.
    fn known(&self) -> impl Iterator<Item = &Side> {
        self.sides.iter().filter_map(|side| Some(&**side.get()?))
    }
}

impl Btl for Bond {
    fn name(&self) -> &'static str {
        self.links.first().map_or("bond", |link| link.name())
    }

    fn exclusivity(&self) -> u32 {
        self.links.first().map_or(0, |link| link.exclusivity())
    }

    fn limits(&self) -> Limits {
        let least = |of: fn(Limits) -> usize| {
            let all = self.links.iter().map(|link| of(link.limits()));
            all.min().unwrap_or(0).saturating_sub(PREFIX)
        };
        Limits {
            eager: least(|limits| limits.eager),
            max_send: least(|limits| limits.max_send),
        }
    }

    fn reach(&self, peer: ProcId) -> Reach {
        let mut reasons = Vec::new();
        for link in &self.links {
            match link.reach(peer) {
                Reach::Yes(_) => return Reach::Yes(Endpoint(peer)),
                Reach::No(why) => reasons.push(why),
            }
        }
        reasons.dedup();
        Reach::No(reasons.join("; "))
    }

    fn listens(&self) -> bool {
        self.links.iter().any(|link| link.listens())
    }

    fn is_costly(&self) -> bool {
        self.links.iter().any(|link| link.is_costly())
    }

    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let (len, max) = (payload.len(), self.limits().max_send);
        if len > max {
            return Err(SendError::TooLong { len, max });
        }
        let side = self.side(to.0).ok_or(SendError::PeerGone)?;
        // What was lost goes first, or the peer would have to hold everything after it.
        if !side.again.borrow().is_empty() {
            return Err(SendError::WouldBlock);
        }
        if side.kept_bytes.get() >= WINDOW {
            return Err(SendError::WouldBlock);
        }
        let mut bytes = self.spare.borrow_mut().pop().unwrap_or_default();
        bytes.clear();
        bytes.extend(header[0].to_le_bytes());
        bytes.extend(header[1].to_le_bytes());
        bytes.resize(PREFIX, 0);
        match payload {
            Payload::Bytes(payload) => bytes.extend_from_slice(payload),
            Payload::Fill { len, fill } => {
                bytes.resize(PREFIX + len, 0);
                fill(&mut bytes[PREFIX..]);
            }
        }
        side.tell(&mut bytes[16..]);
        let which = sequence(am);
        // A `fill` may have sent; its message has its number by now.
        let number = {
            let sent = side.sent[which].borrow();
            sent.acked + sent.kept.len() as u64 + 1
        };
        let mut result = Err(SendError::PeerGone);
        for way in self.order(side, which) {
            match self.offer(side, way, am, number, &bytes) {
                Ok(()) => {
                    side.told();
                    side.kept_bytes.set(side.kept_bytes.get() + bytes.len());
                    let kept = Kept { am, way, bytes };
                    side.sent[which].borrow_mut().kept.push_back(kept);
                    return Ok(());
                }
                Err(SendError::WouldBlock) => {
                    result = Err(SendError::WouldBlock);
                    // The next link would do too, but the receiver would have to put this message aside.
                    if which == ORDERED {
                        break;
                    }
                }
                // The link has died and will say so when it is polled.
                Err(_) => {}
            }
        }
        self.spare.borrow_mut().push(bytes);
        result
    }

    fn progress(&self, sink: &dyn Sink) -> usize {
        let mut delivered = 0;
        for (way, link) in self.links.iter().enumerate() {
            let through = Through {
                bond: self,
                way,
                sink,
                delivered: Cell::new(0),
            };
            link.progress(&through);
            delivered += through.delivered.get();
        }
        for side in self.known() {
            if !side.again.borrow().is_empty() {
                self.repair(side);
            }
            if side.news_bytes.get() >= SOON_BYTES || side.news_messages.get() >= SOON_MESSAGES {
                self.acknowledge(side);
            }
        }
        delivered
    }

    fn pending(&self) -> bool {
        let mut busy = false;
        for side in self.known() {
            if side.news_messages.get() > 0 {
                self.acknowledge(side);
            }
            busy |= !side.again.borrow().is_empty() && side.first_up().is_some();
        }
        self.links
            .iter()
            .fold(busy, |busy, link| busy | link.pending())
    }

    fn descriptors<'a>(&'a self, all: &mut Vec<BorrowedFd<'a>>) {
        self.links.iter().for_each(|link| link.descriptors(all));
    }

    fn settle(&self) {
        self.links.iter().for_each(|link| link.settle());
    }

    fn leave(&self) {
        self.links.iter().for_each(|link| link.leave());
    }

    fn bandwidth(&self, to: Endpoint) -> u32 {
        let ways = self.side(to.0).map_or(&[][..], |side| &side.ways);
        let each = self.links.iter().zip(ways);
        each.map(|(link, way)| link.bandwidth(way.endpoint)).sum()
    }
}
