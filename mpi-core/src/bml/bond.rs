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

use crate::btl::{
    Am, Btl, Endpoint, Header, Limits, OVERTAKES, Payload, ProcId, Reach, SendError, Sink,
    Transport,
};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::os::fd::BorrowedFd;

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

/// One peer.
struct Side {
    peer: ProcId,
    ways: Vec<Way>,
    sent: [RefCell<Sent>; 2],
    kept_bytes: Cell<usize>,
    received: [RefCell<Received>; 2],
    /// What has come since the peer was last told.
    news_bytes: Cell<usize>,
    news_messages: Cell<u32>,
    /// Messages of dead links that are to be sent again.
    again: RefCell<VecDeque<(usize, u64)>>,
}

/// One link to one peer.
struct Way {
    endpoint: Endpoint,
    /// Why it is of no use, once it is not.
    dead: RefCell<Option<String>>,
    /// Bytes it has had, each weighed by the inverse of the bandwidth.
    load: Cell<u64>,
    /// A message that is being read straight to its place.
    landing: Cell<Landing>,
}

/// What the prefix of a message said whose payload is on its way to its place.
#[derive(Clone, Copy, Default)]
struct Landing {
    header: Header,
    acks: [u64; 2],
}

/// The two sequences.
const ORDERED: usize = 0;
const FREE: usize = 1;

fn sequence(am: Am) -> usize {
    if am & OVERTAKES != 0 { FREE } else { ORDERED }
}

/// Messages of one sequence that the peer has not acknowledged.
#[derive(Default)]
struct Sent {
    /// The number of the first that is kept, less one.
    acked: u64,
    kept: VecDeque<Kept>,
}

struct Kept {
    am: Am,
    /// The link over which it went.
    way: usize,
    bytes: Vec<u8>,
}

/// What has come of one sequence.
#[derive(Default)]
struct Received {
    /// Everything up to this number has come.
    upto: u64,
    /// What has come beyond a gap; ordered messages wait here, overtaking ones are only remembered.
    beyond: BTreeMap<u64, Option<(Am, Vec<u8>)>>,
}

impl Side {
    fn is_up(&self, way: usize) -> bool {
        self.ways
            .get(way)
            .is_some_and(|way| way.dead.borrow().is_none())
    }

    fn first_up(&self) -> Option<usize> {
        (0..self.ways.len()).find(|&way| self.is_up(way))
    }

    fn acks(&self) -> [u64; 2] {
        [ORDERED, FREE].map(|which| self.received[which].borrow().upto)
    }

    /// Writes the acknowledgements into a message's prefix; the peer need not be told again.
    fn tell(&self, prefix: &mut [u8]) {
        let [ordered, free] = self.acks();
        prefix[..8].copy_from_slice(&ordered.to_le_bytes());
        prefix[8..16].copy_from_slice(&free.to_le_bytes());
    }

    /// The peer is to be told that a message has come.
    fn has_news(&self, bytes: usize) {
        self.news_messages.set(self.news_messages.get() + 1);
        self.news_bytes.set(self.news_bytes.get() + bytes);
    }

    fn told(&self) {
        self.news_bytes.set(0);
        self.news_messages.set(0);
    }

    /// The peer has everything up to these numbers; what was kept of it may go.
    fn hear(&self, acks: [u64; 2], spare: &RefCell<Vec<Vec<u8>>>) {
        for (sent, ack) in self.sent.iter().zip(acks) {
            let mut sent = sent.borrow_mut();
            while sent.acked < ack
                && let Some(kept) = sent.kept.pop_front()
            {
                sent.acked += 1;
                self.kept_bytes
                    .set(self.kept_bytes.get() - kept.bytes.len());
                let mut spare = spare.borrow_mut();
                if spare.len() < SPARE {
                    spare.push(kept.bytes);
                }
            }
        }
    }
}

impl Received {
    fn knows(&self, number: u64) -> bool {
        number <= self.upto || self.beyond.contains_key(&number)
    }

    /// Whether a number is new; remembers that it has come.
    fn admit_free(&mut self, number: u64) -> bool {
        if self.knows(number) {
            return false;
        }
        self.beyond.insert(number, None);
        while self.beyond.remove(&(self.upto + 1)).is_some() {
            self.upto += 1;
        }
        true
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?;
    word.try_into().ok().map(u64::from_le_bytes)
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
        let make = || {
            let ways = self.links.iter().map(|link| {
                let (endpoint, dead) = match link.reach(peer) {
                    Reach::Yes(endpoint) => (endpoint, None),
                    Reach::No(why) => (Endpoint(u32::MAX), Some(why)),
                };
                Way {
                    endpoint,
                    dead: RefCell::new(dead),
                    load: Cell::new(0),
                    landing: Cell::default(),
                }
            });
            Box::new(Side {
                peer,
                ways: ways.collect(),
                sent: Default::default(),
                kept_bytes: Cell::new(0),
                received: Default::default(),
                news_bytes: Cell::new(0),
                news_messages: Cell::new(0),
                again: RefCell::default(),
            })
        };
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

    /// Sends again what dead links have lost, as far as there is room.
    fn repair(&self, side: &Side) -> bool {
        let mut moved = false;
        while let Some((which, number)) = { side.again.borrow().front().copied() } {
            let sent = side.sent[which].borrow();
            let at = number.wrapping_sub(sent.acked + 1) as usize;
            let mut taken = None;
            match sent.kept.get(at) {
                // Acknowledged in the meantime.
                _ if number <= sent.acked => {}
                None => {}
                Some(kept) => {
                    for way in self.order(side, FREE) {
                        if self.offer(side, way, kept.am, number, &kept.bytes).is_ok() {
                            taken = Some(way);
                            break;
                        }
                    }
                    if taken.is_none() {
                        break;
                    }
                }
            }
            drop(sent);
            if let Some(way) = taken
                && let Some(kept) = side.sent[which].borrow_mut().kept.get_mut(at)
            {
                kept.way = way;
            }
            side.again.borrow_mut().pop_front();
            moved = true;
        }
        moved
    }

    /// A link to a peer has died.
    #[cold]
    fn bury(&self, side: &Side, way: usize, why: &str, sink: &dyn Sink) {
        if !side.is_up(way) {
            return;
        }
        *side.ways[way].dead.borrow_mut() = Some(why.into());
        let (me, peer) = (self.me, side.peer);
        let name = self.links[way].name();
        if side.first_up().is_none() {
            let all = side.ways.iter().enumerate().map(|(at, way)| {
                let dead = way.dead.borrow();
                format!("link {at}: {}", dead.as_deref().unwrap_or_default())
            });
            let all: Vec<String> = all.collect();
            let why = format!(
                "no link is left between job ranks {me} and {peer}: {}",
                all.join("; ")
            );
            return sink.lost(peer, &why);
        }
        let (mut messages, mut bytes) = (0, 0);
        let mut again = side.again.borrow_mut();
        for (which, sent) in side.sent.iter().enumerate() {
            let sent = sent.borrow();
            for (at, kept) in sent.kept.iter().enumerate() {
                if kept.way == way {
                    messages += 1;
                    bytes += kept.bytes.len() - PREFIX;
                    again.push_back((which, sent.acked + 1 + at as u64));
                }
            }
        }
        sink.note(&format!(
            "job rank {me}: {name} link {way} to job rank {peer} is gone ({why}); {messages} messages of {bytes} bytes that may have been lost with it are sent again over the others"
        ));
    }

    /// Tells a peer how far it has got.
    fn acknowledge(&self, side: &Side) {
        let mut acks = [0; 16];
        side.tell(&mut acks);
        if let Some(way) = side.first_up()
            && self.offer(side, way, ACK, 0, &acks).is_ok()
        {
            side.told();
        }
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

/// What one link delivers to.
struct Through<'a> {
    bond: &'a Bond,
    way: usize,
    sink: &'a dyn Sink,
    delivered: Cell<usize>,
}

impl Through<'_> {
    fn way(&self, from: ProcId) -> Option<&Way> {
        self.bond.side(from)?.ways.get(self.way)
    }

    /// Whether a message that may overtake others came before, over a link that has died since.
    fn has_had(&self, from: ProcId, header: Header) -> bool {
        let side = self.bond.side(from);
        side.is_some_and(|side| side.received[FREE].borrow().knows(header[0]))
    }

    /// Delivers one message whose prefix has been looked at before it came here.
    fn hand_on(&self, from: ProcId, am: Am, bytes: &[u8]) {
        if let (Some(first), Some(second)) = (word(bytes, 0), word(bytes, 8)) {
            self.delivered.set(self.delivered.get() + 1);
            self.sink
                .deliver(from, am, [first, second], &bytes[PREFIX..]);
        }
    }
}

impl Sink for Through<'_> {
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        let Some(side) = self.bond.side(from) else {
            return;
        };
        let at = if am == ACK { 0 } else { 16 };
        // A message that is too short for its prefix is none of ours.
        let (Some(ordered), Some(free)) = (word(payload, at), word(payload, at + 8)) else {
            return;
        };
        side.hear([ordered, free], &self.bond.spare);
        if am == ACK {
            return;
        }
        let number = header[0];
        side.has_news(payload.len());
        if sequence(am) == FREE {
            if side.received[FREE].borrow_mut().admit_free(number) {
                self.hand_on(from, am, payload);
            }
            return;
        }
        let received = &side.received[ORDERED];
        let next = received.borrow().upto + 1;
        if number > next {
            let waiting = Some((am, payload.to_vec()));
            received
                .borrow_mut()
                .beyond
                .entry(number)
                .or_insert(waiting);
        } else if number == next {
            received.borrow_mut().upto = number;
            self.hand_on(from, am, payload);
            loop {
                let mut state = received.borrow_mut();
                let next = state.upto + 1;
                let Some(waited) = state.beyond.remove(&next) else {
                    break;
                };
                state.upto = next;
                drop(state);
                if let Some((am, bytes)) = waited {
                    self.hand_on(from, am, &bytes);
                }
            }
        }
    }

    /// A message that may overtake others goes to its place as it comes; an ordered one is kept until its turn, which a dying link may put off.
    ///
    /// Should the link die before the message is whole, the same bytes come to the same place over another.
    fn begin(&self, from: ProcId, am: Am, header: Header, len: usize, begun: &[u8]) -> bool {
        let Some(way) = self.way(from) else {
            return false;
        };
        let words = [0, 8, 16, 24].map(|at| word(begun, at));
        let [Some(first), Some(second), Some(ordered), Some(free)] = words else {
            return false;
        };
        if sequence(am) == ORDERED || self.has_had(from, header) {
            return false;
        }
        let header = [first, second];
        way.landing.set(Landing {
            header,
            acks: [ordered, free],
        });
        let begun = &begun[PREFIX..];
        self.sink.begin(from, am, header, len - PREFIX, begun)
    }

    fn land(
        &self,
        from: ProcId,
        am: Am,
        _: Header,
        range: Range<usize>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        let Some(way) = self.way(from) else {
            return false;
        };
        let header = way.landing.get().header;
        let range = range.start - PREFIX..range.end - PREFIX;
        self.sink.land(from, am, header, range, fill)
    }

    fn landed(&self, from: ProcId, am: Am, header: Header, len: usize) {
        let (Some(side), Some(way)) = (self.bond.side(from), self.way(from)) else {
            return;
        };
        let landing = way.landing.get();
        side.hear(landing.acks, &self.bond.spare);
        side.has_news(len);
        if side.received[FREE].borrow_mut().admit_free(header[0]) {
            self.delivered.set(self.delivered.get() + 1);
            let len = len - PREFIX;
            self.sink.landed(from, am, landing.header, len);
        }
    }

    fn lost(&self, peer: ProcId, why: &str) {
        if let Some(side) = self.bond.side(peer) {
            self.bond.bury(side, self.way, why, self.sink);
        }
    }

    fn note(&self, what: &str) {
        self.sink.note(what);
    }
}
