//! Bonding: several links to each peer, used as one transport.
//!
//! **Sharing.** Messages that may overtake each other ([`OVERTAKES`](crate::btl::OVERTAKES)), the fragments of large messages, go to the link with the
//! least load relative to its bandwidth, or to the next one if that one is full. So each link carries a share in proportion to its actual throughput.
//! All other messages use the first live link, which keeps their order.
//!
//! **Loss of a link loses no message.** Every message has a sequence number and is remembered until the peer has acknowledged it.
//! When a link dies, the messages sent over it and not acknowledged are retransmitted over the remaining links.
//! For this, ordered messages are copied.
//! Overtaking ones go straight from their sender's memory and are not copied: the sender is asked for them again ([`Sink::again`]),
//! and a [`VOID`] replaces a message that its sender no longer has, so that the sequence has no gap.
//! The receiver drops duplicates and delivers ordered messages by number, whichever link they arrived on.
//! The peer is lost only when its last link has died; the error text then quotes the reason of every link.
//!
//! **Wire format.** A message over a link has header `[number, 0]` and a payload that begins with [`PREFIX`] bytes:
//! its own header, and the two cumulative acknowledgements of the other direction.
//! Ordered and overtaking messages have separate sequences, both from 1.
//! An [`ACK`] carries the acknowledgements only. It is sent when much has arrived and nothing was sent back, and before a process sleeps.
//!
//! Both ends must bond the same links; the transports check this when they are asked which peers they reach.

mod repair;
mod side;
mod through;

use crate::btl::{
    Am, Btl, Capabilities, Connections, Endpoint, Family, Header, Info, Limits, OVERTAKES, Payload,
    Pipeline, ProcId, Reach, SendError, Sink, Transport, Wakeup,
};
use side::{FREE, Kept, ORDERED, Side, What, sequence};
use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::BorrowedFd;
use std::time::Duration;
use through::Through;

/// The active message of acknowledgements.
pub const ACK: Am = Family::Multirail.am(15) | OVERTAKES;

/// The active message that fills the number of a message that is no longer wanted; its payload is a prefix.
pub const VOID: Am = Family::Multirail.am(14) | OVERTAKES;

/// Length of the prefix of each payload: the message's header and two acknowledgements.
const PREFIX: usize = 4 * size_of::<u64>();

/// Maximum number of links.
const MOST: usize = 16;
/// Maximum number of bytes remembered for one peer.
const WINDOW: usize = 8 << 20;
/// The receiver sends an acknowledgement at the latest after this number of bytes or messages.
const SOON_BYTES: usize = WINDOW / 8;
const SOON_MESSAGES: u32 = 64;
/// A message is cut into this many fragments per link, so that the shares can follow the bandwidths,
const PIECES: usize = 8;
/// but no fragment is shorter than this, since each costs a few system calls.
const SHORTEST: usize = 32 << 10;
/// Maximum number of buffers kept for reuse.
const SPARE: usize = 128;

/// The bonded links of one process.
pub struct Multirail {
    me: ProcId,
    info: Info,
    links: Vec<Transport>,
    sides: Vec<OnceCell<Box<Side>>>,
    spare: RefCell<Vec<Vec<u8>>>,
}

impl Multirail {
    pub fn new(me: ProcId, size: u32, links: Vec<Transport>) -> Multirail {
        Multirail {
            me,
            info: bonded(&links),
            links,
            sides: (0..size).map(|_| OnceCell::new()).collect(),
            spare: RefCell::default(),
        }
    }

    fn side(&self, peer: ProcId) -> Option<&Side> {
        let make = || Box::new(Side::new(peer, &self.links));
        Some(self.sides.get(peer as usize)?.get_or_init(make))
    }

    /// Offers a message to one link; `runs` are a prefix and the payload, or the whole message and an empty run. Returns the link's error if the link refused the message.
    fn offer(
        &self,
        side: &Side,
        way: usize,
        am: Am,
        number: u64,
        runs: [&[u8]; 2],
    ) -> Result<(), SendError> {
        let endpoint = side.ways[way].endpoint;
        let payload = match runs {
            [all, []] => Payload::Bytes(all),
            [prefix, rest] => Payload::Joined(prefix, rest),
        };
        let weighed = (payload.len() as u64) << 20;
        self.links[way].send(endpoint, am, [number, 0], payload)?;
        let bandwidth = u64::from(self.links[way].capabilities().bandwidth(endpoint)).max(1);
        let load = &side.ways[way].load;
        load.set(load.get() + weighed / bandwidth);
        Ok(())
    }

    /// Offers a new message to the links in turn; returns the index of the link that took it.
    fn offer_all(&self, side: &Side, am: Am, runs: [&[u8]; 2]) -> Result<usize, SendError> {
        let which = sequence(am);
        let number = {
            let sent = side.sent[which].borrow();
            sent.acked + sent.kept.len() as u64 + 1
        };
        let mut result = Err(SendError::PeerGone);
        for way in self.order(side, which) {
            match self.offer(side, way, am, number, runs) {
                Ok(()) => return Ok(way),
                Err(SendError::WouldBlock) => {
                    result = Err(SendError::WouldBlock);
                    // The next link would take it, too, but the receiver would have to buffer this message.
                    if which == ORDERED {
                        break;
                    }
                }
                // The link has died; its next poll reports it.
                Err(_) => {}
            }
        }
        result
    }

    /// Copies a message into one buffer, after its prefix.
    fn join(&self, side: &Side, header: Header, mut payload: Payload<'_>) -> Vec<u8> {
        let mut bytes = self.spare.borrow_mut().pop().unwrap_or_default();
        bytes.clear();
        bytes.resize(PREFIX, 0);
        match payload {
            Payload::Bytes(payload) => bytes.extend_from_slice(payload),
            _ => {
                bytes.resize(PREFIX + payload.len(), 0);
                payload.put(&mut bytes[PREFIX..]);
            }
        }
        // The prefix is written last: `fill` may have sent messages, which acknowledge more.
        bytes[..PREFIX].copy_from_slice(&side.prefix(header));
        bytes
    }

    /// Records a message that a link has taken.
    fn remember(&self, side: &Side, which: usize, kept: Kept) {
        side.told();
        side.kept_bytes.set(side.kept_bytes.get() + kept.len());
        side.sent[which].borrow_mut().kept.push_back(kept);
    }

    /// Returns the live links, in the order in which a message of a sequence tries them.
    fn order(&self, side: &Side, which: usize) -> impl Iterator<Item = usize> {
        let mut ways = [usize::MAX; MOST];
        let up = (0..side.ways.len().min(MOST)).filter(|&way| side.is_up(way));
        let count = ways.iter_mut().zip(up).map(|(at, way)| *at = way).count();
        if which == FREE {
            ways[..count].sort_unstable_by_key(|&way| side.ways[way].load.get());
        }
        ways.into_iter().take(count)
    }

    fn connections(&self) -> impl Iterator<Item = &dyn Connections> {
        let each = self.links.iter();
        each.filter_map(|link| link.capabilities().connections)
    }

    /// The peers with state.
    fn known(&self) -> impl Iterator<Item = &Side> {
        self.sides.iter().filter_map(|side| Some(&**side.get()?))
    }
}

/// Returns what is constant about a bond of these links.
fn bonded(links: &[Transport]) -> Info {
    let all = || links.iter().map(|link| link.info());
    let least = |of: fn(&Limits) -> usize| {
        let least = all().map(|info| of(&info.limits)).min();
        least.unwrap_or(0).saturating_sub(PREFIX)
    };
    Info {
        name: all().next().map_or("bond", |info| info.name),
        exclusivity: all().next().map_or(0, |info| info.exclusivity),
        limits: Limits {
            eager: least(|limits| limits.eager),
            max_send: least(|limits| limits.max_send),
        },
        listens: all().any(|info| info.listens),
        poll_is_syscall: all().any(|info| info.poll_is_syscall),
        connects: all().any(|info| info.connects),
        relies_on_senders: true,
    }
}

impl Btl for Multirail {
    fn info(&self) -> &Info {
        &self.info
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

    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let (len, max) = (payload.len(), self.info.limits.max_send);
        if len > max {
            return Err(SendError::TooLong { len, max });
        }
        let side = self.side(to.0).ok_or(SendError::PeerGone)?;
        // Retransmissions go first; otherwise the peer would have to buffer everything after them.
        if !side.again.borrow().is_empty() {
            return Err(SendError::WouldBlock);
        }
        if side.kept_bytes.get() >= WINDOW {
            return Err(SendError::WouldBlock);
        }
        let which = sequence(am);
        if let (FREE, Payload::Bytes(data)) = (which, &payload) {
            let prefix = side.prefix(header);
            let way = self.offer_all(side, am, [&prefix, data])?;
            let what = What::Left { header, len };
            self.remember(side, which, Kept { am, way, what });
            return Ok(());
        }
        let bytes = self.join(side, header, payload);
        let result = self.offer_all(side, am, [&bytes, &[]]);
        let what = match (which, result) {
            (ORDERED, Ok(_)) => What::Copy(bytes),
            _ => {
                self.spare.borrow_mut().push(bytes);
                What::Left { header, len }
            }
        };
        let way = result?;
        self.remember(side, which, Kept { am, way, what });
        Ok(())
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
                self.repair(side, sink);
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

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            pipeline: Some(self),
            connections: Some(self),
            wakeup: Some(self),
            ..Capabilities::default()
        }
    }
}

impl Pipeline for Multirail {
    fn fragment(&self, bytes: u64, _packed: bool, _alone: bool) -> usize {
        let most = self.info.limits.max_send;
        let piece = bytes / (PIECES * self.links.len().max(1)) as u64;
        usize::try_from(piece).map_or(most, |piece| piece.max(SHORTEST).min(most))
    }
}

impl Connections for Multirail {
    fn is_connected(&self, to: Endpoint) -> bool {
        let ways = self.side(to.0).map_or(&[][..], |side| &side.ways);
        // A link that was never used counts as connected, so all links must be checked: one that is connected does not imply that another is.
        let mut each = self.links.iter().zip(ways);
        each.all(|(link, way)| link.capabilities().is_connected(way.endpoint))
    }

    fn flush(&self) {
        self.connections().for_each(|all| all.flush());
    }

    fn shutdown(&self) {
        self.connections().for_each(|all| all.shutdown());
    }

    fn bandwidth(&self, to: Endpoint) -> u32 {
        let ways = self.side(to.0).map_or(&[][..], |side| &side.ways);
        let each = self.links.iter().zip(ways);
        each.map(|(link, way)| link.capabilities().bandwidth(way.endpoint))
            .sum()
    }
}

impl Wakeup for Multirail {
    fn descriptors<'a>(&'a self, all: &mut Vec<BorrowedFd<'a>>) {
        let each = self.links.iter();
        let each = each.filter_map(|link| link.capabilities().wakeup);
        each.for_each(|wakeup| wakeup.descriptors(all));
    }

    fn longest_sleep(&self) -> Option<Duration> {
        let each = self.links.iter();
        let each = each.filter_map(|link| link.capabilities().wakeup);
        each.filter_map(|wakeup| wakeup.longest_sleep()).min()
    }
}
