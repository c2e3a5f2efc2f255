//! Bonding: several network links to a peer, used as one transport.
//!
//! **Links.** A bond consists of all networks of a process; those that reach a peer are its links to that peer.
//! The first link carries the first message. The others are connected when a long message is sent.
//! They carry messages only after their connection is established, so a blocked network delays no message.
//!
//! **Sharing.** Messages that may overtake others ([`OVERTAKES`](crate::btl::OVERTAKES)), that is, the fragments of large messages, use the link that
//! is expected to deliver them first: the one with the smallest `(outstanding + length) / speed` ([`speed`]).
//! All other messages use the first live link, so they keep their order.
//!
//! **Loss of a link loses no message.** Every message has a sequence number and is recorded until the peer has acknowledged it.
//! When a link fails, its unacknowledged messages are retransmitted over the remaining links.
//! The bond stores copies of ordered messages for such a retransmission.
//! Overtaking messages are sent from their sender's memory without a copy: for a retransmission, the bond requests the data from the sender ([`Sink::again`]),
//! and sends a [`VOID`] instead of a message that its sender no longer has, so the sequence has no gap.
//! The receiver drops duplicates and delivers ordered messages by sequence number, regardless of the link on which they arrive.
//! The peer counts as lost only when its last link has failed; the error text then contains the reason of every link.
//! The failure of a link is printed only after a later message has proved that the peer is alive, because all links of a dead peer fail as well.
//!
//! **Wire format.** A message over a link is an [`IN_ORDER`] or a [`FREELY`] with the header
//! `[sequence number, upper layer's handler number | link << 8]`.
//! Its payload begins with [`PREFIX`] bytes: the upper layer's header, then two cumulative
//! acknowledgements, which cover the messages of the opposite direction.
//! Ordered and overtaking messages have separate sequences; both begin with 1.
//! An [`ACK`] contains the acknowledgements, and for each of the peer's links the number of bytes of overtaking messages that have arrived over the link.
//! The receiver sends an [`ACK`] after a certain number of bytes or messages, and before the process sleeps.
//!
//! The bond has its own handler numbers,
//! so one link can carry bonded messages and messages of peers without a bond.
//! The two processes of a bond may send over different links.

mod repair;
mod side;
mod speed;
mod through;

use super::Rejection;
use crate::btl::{
    Am, Btl, Capabilities, Connections, Endpoint, Family, Header, Info, Limits, OVERTAKES, Payload,
    Pipeline, ProcId, Reach, SendError, Sink, Traffic, Wakeup,
};
use side::{FREE, Kept, ORDERED, Side, Stage, Way, What, sequence};
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use through::Through;

/// The active message that carries an ordered message.
pub const IN_ORDER: Am = Family::Multirail.am(12);
/// The active message that carries an overtaking message.
pub const FREELY: Am = Family::Multirail.am(13) | OVERTAKES;
/// The active message that carries acknowledgements.
pub const ACK: Am = Family::Multirail.am(15) | OVERTAKES;
/// The active message that replaces a message whose sender no longer has the data, so the sequence has no gap; its payload is only the prefix.
pub const VOID: Am = Family::Multirail.am(14) | OVERTAKES;

/// Length in bytes of the prefix of each payload: the message's header and two acknowledgements.
const PREFIX: usize = 4 * size_of::<u64>();

/// Maximum number of links; further networks are not used.
const MOST: usize = 16;
/// Maximum number of unacknowledged bytes to one peer.
const WINDOW: usize = 8 << 20;
/// The receiver sends an acknowledgement after at most this number of bytes or messages.
const SOON_BYTES: usize = WINDOW / 32;
const SOON_MESSAGES: u32 = 64;
/// Number of fragments per link into which a long message is divided if all links are equally fast.
/// More than one per link, so the share of each link can follow its speed.
const PIECES: u64 = 8;
/// Minimum length of a fragment in bytes, because each fragment costs some system calls.
const SHORTEST: usize = 32 << 10;
/// Maximum of the factor by which fragments are shortened if one link is slow.
const MOST_SPREAD: u64 = 32;
/// Maximum number of message buffers that are stored for reuse.
const SPARE: usize = 128;

/// The bonded links of one process. `L` is an owned or shared transport.
pub struct Multirail<L> {
    me: ProcId,
    info: Info,
    links: Vec<L>,
    sides: Vec<OnceCell<Box<Side>>>,
    spare: RefCell<Vec<Vec<u8>>>,
    /// The peers to which an acknowledgement or a retransmission is due. If `urgent` is true, the next poll must handle them.
    due: RefCell<Vec<ProcId>>,
    urgent: Cell<bool>,
    /// Failures of links that the links' polls have reported: peer, link and reason.
    deaths: RefCell<Vec<(ProcId, usize, String)>>,
    /// Divisor of the fragment length for links of different speeds ([`Side::spread`]), updated at each acknowledgement.
    spread: Cell<u64>,
    /// A bit set of the links whose failure has been printed.
    printed: Cell<u32>,
}

/// The route of messages to a peer.
pub enum Reached {
    /// Over a single link, without the bond's prefix.
    Alone(usize, Endpoint),
    Bonded(Endpoint),
    No,
}

impl<L> Multirail<L>
where
    L: Deref,
    L::Target: Btl,
{
    pub fn new(me: ProcId, size: u32, mut links: Vec<L>) -> Self {
        links.truncate(MOST);
        Multirail {
            me,
            info: bonded(&links),
            spread: Cell::new(links.len() as u64),
            links,
            sides: (0..size).map(|_| OnceCell::new()).collect(),
            spare: RefCell::default(),
            due: RefCell::default(),
            urgent: Cell::new(false),
            deaths: RefCell::default(),
            printed: Cell::new(0),
        }
    }

    /// Returns the route to a peer, and the reasons why some links do not reach it.
    /// If `mixed` is false, only links of the same kind as the first live link are bonded.
    pub fn route(&self, peer: ProcId, mixed: bool) -> (Reached, Vec<Rejection>) {
        let Some(side) = self.side(peer) else {
            return (Reached::No, Vec::new());
        };
        let ways = self.ways(side);
        let live = || (0..ways.len()).filter(|&way| ways[way].is_live());
        let first = live().next();
        if let (Some(first), false) = (first, mixed) {
            let name = self.links[first].info().name;
            live()
                .filter(|&way| self.links[way].info().name != name)
                .for_each(|way| {
                    ways[way].leave_out("the parameter bml_share allows one kind of network")
                });
        }
        let reached = match (first, live().count()) {
            (None, _) if ways.iter().all(Way::is_unused) => Reached::No,
            // All links to the peer have failed, so each message to the peer fails.
            (None, _) => Reached::Bonded(Endpoint(peer)),
            (Some(first), 1) => Reached::Alone(first, ways[first].endpoint),
            _ => Reached::Bonded(Endpoint(peer)),
        };
        (reached, self.rejections(ways))
    }

    /// Returns the reasons why links do not reach a peer:
    /// each reason one time, and none for a kind of network with a live link.
    fn rejections(&self, ways: &[Way]) -> Vec<Rejection> {
        let mut all: Vec<Rejection> = Vec::new();
        let each = || self.links.iter().zip(ways);
        for (link, way) in each() {
            let name = link.info().name;
            let is_live = |(other, way): (&L, &Way)| other.info().name == name && way.is_live();
            if each().any(is_live) {
                continue;
            }
            if let Some(reason) = way.dead.borrow().clone() {
                let btl = name;
                let is_new = |other: &Rejection| other.btl != btl || other.reason != reason;
                if all.iter().all(is_new) {
                    all.push(Rejection { btl, reason });
                }
            }
        }
        all
    }

    /// Returns the names of the networks that reach a peer,
    /// each with the number of its links, for explanations to the user.
    pub fn names(&self, peer: ProcId) -> String {
        let ways = self.side(peer).map_or(&[][..], |side| self.ways(side));
        let mut names: Vec<(&str, u32)> = Vec::new();
        for (link, _) in self.links.iter().zip(ways).filter(|(_, way)| way.is_live()) {
            match names.last_mut() {
                Some((name, count)) if *name == link.info().name => *count += 1,
                _ => names.push((link.info().name, 1)),
            }
        }
        let shown = names.iter().map(|(name, count)| match count {
            1 => (*name).to_owned(),
            _ => format!("{name} over {count} networks"),
        });
        shown.collect::<Vec<_>>().join(" and ")
    }

    fn side(&self, peer: ProcId) -> Option<&Side> {
        let make = || Box::new(Side::new(peer));
        Some(self.sides.get(peer as usize)?.get_or_init(make))
    }

    /// Returns the links to a peer. Must not be called while a link polls, because the query may make a link connect.
    fn ways<'a>(&self, side: &'a Side) -> &'a [Way] {
        side.ways.get_or_init(|| {
            let each = self.links.iter();
            let mut ways: Vec<Way> = each.map(|link| Way::new(link.reach(side.peer))).collect();
            if let Some(first) = ways.iter_mut().find(|way| way.is_live()) {
                first.stage.set(Stage::Open);
            }
            ways
        })
    }

    /// Passes a message to one link. `runs` are the prefix and the payload, or the whole message and an empty slice.
    /// Returns the link's error if the link refuses the message.
    fn offer(
        &self,
        side: &Side,
        way: usize,
        am: Am,
        number: u64,
        runs: [&[u8]; 2],
    ) -> Result<(), SendError> {
        let link = &self.ways(side)[way];
        let payload = match runs {
            [all, []] => Payload::Bytes(all),
            [prefix, rest] => Payload::Joined(prefix, rest),
        };
        let len = payload.len();
        let (outer, word) = match am {
            ACK | VOID => (am, u64::from(am)),
            _ if sequence(am) == FREE => (FREELY, u64::from(am)),
            _ => (IN_ORDER, u64::from(am)),
        };
        let header = [number, word | (way as u64) << 8];
        self.links[way].send(link.endpoint, outer, header, payload)?;
        if outer == FREELY {
            link.speed.sent(len);
        }
        Ok(())
    }

    /// Passes a new message to one link after the other until one accepts it. Returns the index of this link.
    fn offer_all(&self, side: &Side, am: Am, runs: [&[u8]; 2]) -> Result<usize, SendError> {
        let which = sequence(am);
        let number = {
            let sent = side.sent[which].borrow();
            sent.acked + sent.kept.len() as u64 + 1
        };
        let len = runs[0].len() + runs[1].len();
        if which == FREE && len >= SHORTEST / 2 {
            self.open_idle(side);
        }
        let mut result = Err(SendError::PeerGone);
        let mut limit = u64::MAX;
        for (way, cost) in self.order(side, which, len) {
            // A link that is this much slower would deliver the message later than the fast link, which is full now.
            if cost > limit {
                break;
            }
            match self.offer(side, way, am, number, runs) {
                Ok(()) => return Ok(way),
                Err(SendError::WouldBlock) => {
                    result = Err(SendError::WouldBlock);
                    // The next link would accept this ordered message,
                    // but the message could overtake earlier ones, and the receiver would have to buffer it.
                    if which == ORDERED {
                        break;
                    }
                    limit = limit.min(cost.saturating_mul(2));
                }
                // The link has failed; its next poll reports the failure.
                Err(_) => {}
            }
        }
        match result {
            // Another live link exists, but may have no connection yet.
            // The caller tries again after the poll that records the failure.
            Err(SendError::PeerGone) if self.has_idle(side) => Err(SendError::WouldBlock),
            other => other,
        }
    }

    /// Returns true if a live link to a peer has no open connection.
    fn has_idle(&self, side: &Side) -> bool {
        let mut ways = self.ways(side).iter();
        ways.any(|way| way.is_live() && way.stage.get() != Stage::Open)
    }

    /// Starts the connections of the live links that have no connection.
    fn open_idle(&self, side: &Side) {
        for (link, way) in self.links.iter().zip(self.ways(side)) {
            if way.is_live() && way.stage.get() != Stage::Open {
                let connections = link.capabilities().connections;
                let is_open = connections.is_none_or(|all| all.open(way.endpoint));
                let stage = if is_open { Stage::Open } else { Stage::Opening };
                way.stage.set(stage);
            }
        }
    }

    /// Copies a message into one buffer, behind its prefix.
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
        // The prefix is written last: `fill` may have sent other messages, after which the acknowledgements have changed.
        bytes[..PREFIX].copy_from_slice(&side.prefix(header));
        bytes
    }

    /// Records as unacknowledged a message that a link has accepted.
    fn remember(&self, side: &Side, which: usize, kept: Kept) {
        side.told_by_prefix();
        side.kept_bytes.set(side.kept_bytes.get() + kept.len());
        side.sent[which].borrow_mut().kept.push_back(kept);
    }

    /// Returns the open links in the order in which a message of `len` bytes tries them, each with the expected delivery time.
    fn order(&self, side: &Side, which: usize, len: usize) -> impl Iterator<Item = (usize, u64)> {
        let all = self.ways(side);
        let is_open = |way: &usize| all[*way].is_live() && all[*way].stage.get() == Stage::Open;
        if !(0..all.len()).any(|way| is_open(&way))
            && let Some(next) = all.iter().find(|way| way.is_live())
        {
            // No link is open. The next live link accepts the message and sends it when its connection exists.
            next.stage.set(Stage::Open);
        }
        let mut ways = [(usize::MAX, u64::MAX); MOST];
        let mut count = 0;
        for (place, way) in ways.iter_mut().zip((0..all.len()).filter(is_open)) {
            let cost = match which {
                FREE => self.cost(&all[way], way, len),
                _ => 0,
            };
            *place = (way, cost);
            count += 1;
        }
        if which == FREE {
            ways[..count].sort_by_key(|&(_, cost)| cost);
        }
        ways.into_iter().take(count)
    }

    /// Returns the expected time until a message of `len` bytes is delivered over a link, in nanoseconds.
    fn cost(&self, link: &Way, way: usize, len: usize) -> u64 {
        let claimed = || self.links[way].capabilities().bandwidth(link.endpoint);
        link.speed.time(len, claimed)
    }

    fn connections(&self) -> impl Iterator<Item = &dyn Connections> {
        let each = self.links.iter();
        each.filter_map(|link| link.capabilities().connections)
    }

    /// Returns the open links to a peer.
    fn used(&self, to: Endpoint) -> impl Iterator<Item = (&L, &Way)> {
        let ways = self.side(to.0).and_then(|side| side.ways.get());
        let each = self.links.iter().zip(ways.into_iter().flatten());
        each.filter(|(_, way)| way.is_live() && way.stage.get() == Stage::Open)
    }

    /// Records that an acknowledgement or a retransmission to a peer is due. If `now` is true, the next poll handles it.
    fn set_due(&self, side: &Side, now: bool) {
        if !side.is_due.replace(true) {
            self.due.borrow_mut().push(side.peer);
        }
        if now {
            self.urgent.set(true);
        }
    }

    /// Polls one link. Returns the number of messages that were delivered to the sink.
    #[inline]
    pub fn poll(&self, way: usize, sink: &dyn Sink) -> usize {
        let through = Through {
            bond: self,
            way,
            sink,
            delivered: Cell::new(0),
        };
        self.links[way].progress(&through);
        if self.urgent.get() {
            self.do_due(sink);
        }
        through.delivered.get()
    }

    /// Sends the due retransmissions and acknowledgements.
    fn do_due(&self, sink: &dyn Sink) {
        self.urgent.set(false);
        self.record_deaths(sink);
        for peer in self.due.take() {
            let Some(side) = self.side(peer) else {
                continue;
            };
            side.is_due.set(false);
            if !side.again.borrow().is_empty() {
                self.repair(side, sink);
            }
            let has_much =
                side.news_bytes.get() >= SOON_BYTES || side.news_messages.get() >= SOON_MESSAGES;
            if has_much {
                self.acknowledge(side);
            }
            let is_broken = !side.again.borrow().is_empty();
            if is_broken || side.news_messages.get() > 0 {
                self.set_due(side, is_broken);
            }
        }
    }

    /// Sends all due acknowledgements, because the process is about to sleep. Returns true if a retransmission is due.
    pub fn before_sleep(&self) -> bool {
        let mut busy = !self.deaths.borrow().is_empty();
        for peer in self.due.take() {
            let Some(side) = self.side(peer) else {
                continue;
            };
            side.is_due.set(false);
            if side.news_messages.get() > 0 {
                self.acknowledge(side);
            }
            let is_broken = !side.again.borrow().is_empty();
            if is_broken || side.news_messages.get() > 0 {
                self.set_due(side, is_broken);
            }
            busy |= is_broken && self.ways(side).iter().any(Way::is_live);
        }
        busy
    }
}

/// Returns the [`Info`] of a bond with these links.
fn bonded<L>(links: &[L]) -> Info
where
    L: Deref,
    L::Target: Btl,
{
    let all = || links.iter().map(|link| link.info());
    let least = |of: fn(&Limits) -> usize| {
        let least = all().map(|info| of(&info.limits)).min();
        least.unwrap_or(0).saturating_sub(PREFIX)
    };
    Info {
        name: all().next().map_or("bond", |info| info.name),
        exclusivity: all().next().map_or(0, |info| info.exclusivity),
        is_network: true,
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

impl<L> Btl for Multirail<L>
where
    L: Deref,
    L::Target: Btl,
{
    fn info(&self) -> &Info {
        &self.info
    }

    fn reach(&self, peer: ProcId) -> Reach {
        match self.route(peer, true) {
            (Reached::Alone(..) | Reached::Bonded(_), _) => Reach::Yes(Endpoint(peer)),
            (Reached::No, rejected) => {
                let reasons = rejected.into_iter().map(|rejection| rejection.reason);
                let reasons: Vec<String> = reasons.collect();
                match reasons.is_empty() {
                    true => Reach::No("it is no process of this job".into()),
                    false => Reach::No(reasons.join("; ")),
                }
            }
        }
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
        // Retransmissions are sent before new messages. Otherwise the peer would have to buffer the new ones.
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
        (0..self.links.len()).map(|way| self.poll(way, sink)).sum()
    }

    fn pending(&self) -> bool {
        let busy = self.before_sleep();
        self.links
            .iter()
            .fold(busy, |busy, link| busy | link.pending())
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            pipeline: Some(self),
            connections: Some(self),
            wakeup: Some(self),
            traffic: (self.links.iter())
                .map(|link| link.capabilities().traffic)
                .fold(Traffic::InMemory, Traffic::and),
            ..Capabilities::default()
        }
    }
}

impl<L> Pipeline for Multirail<L>
where
    L: Deref,
    L::Target: Btl,
{
    fn fragment(&self, bytes: u64, _packed: bool, _alone: bool) -> usize {
        let most = self.info.limits.max_send;
        let piece = bytes / (PIECES * self.spread.get().max(1));
        usize::try_from(piece).map_or(most, |piece| piece.max(SHORTEST).min(most))
    }
}

impl<L> Connections for Multirail<L>
where
    L: Deref,
    L::Target: Btl,
{
    fn is_connected(&self, to: Endpoint) -> bool {
        // All links must be checked, because a link without messages counts as connected.
        let mut each = self.used(to);
        each.all(|(link, way)| link.capabilities().is_connected(way.endpoint))
    }

    fn cut(&self, to: Endpoint) {
        let each = self.used(to);
        each.for_each(|(link, way)| link.capabilities().cut(way.endpoint));
    }

    fn is_flushed(&self) -> bool {
        self.connections().all(Connections::is_flushed)
    }

    fn flush(&self) {
        self.connections().for_each(|all| all.flush());
    }

    fn abandon(&self, peer: ProcId) {
        self.connections().for_each(|all| all.abandon(peer));
    }

    fn shutdown(&self) {
        self.connections().for_each(|all| all.shutdown());
    }

    fn bandwidth(&self, to: Endpoint) -> u32 {
        let each = self.used(to);
        each.map(|(link, way)| link.capabilities().bandwidth(way.endpoint))
            .sum()
    }
}

impl<L> Wakeup for Multirail<L>
where
    L: Deref,
    L::Target: Btl,
{
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
