//! What is known of one peer: its links, what it has not acknowledged, and what came from it.

use super::{PREFIX, SPARE};
use crate::btl::{Am, Endpoint, Header, OVERTAKES, ProcId, Reach, Transport};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

/// One peer.
pub(super) struct Side {
    pub(super) peer: ProcId,
    pub(super) ways: Vec<Way>,
    pub(super) sent: [RefCell<Sent>; 2],
    pub(super) kept_bytes: Cell<usize>,
    pub(super) received: [RefCell<Received>; 2],
    /// What has come since the peer was last told.
    pub(super) news_bytes: Cell<usize>,
    pub(super) news_messages: Cell<u32>,
    /// Messages of dead links that are to be sent again.
    pub(super) again: RefCell<VecDeque<(usize, u64)>>,
}

/// One link to one peer.
pub(super) struct Way {
    pub(super) endpoint: Endpoint,
    /// Why it is of no use, once it is not.
    pub(super) dead: RefCell<Option<String>>,
    /// Bytes it has had, each weighed by the inverse of the bandwidth.
    pub(super) load: Cell<u64>,
    /// A message that is being read straight to its place.
    pub(super) landing: Cell<Landing>,
}

/// What the prefix of a message said whose payload is on its way to its place.
#[derive(Clone, Copy, Default)]
pub(super) struct Landing {
    pub(super) header: Header,
    pub(super) acks: [u64; 2],
}

/// The two sequences.
pub(super) const ORDERED: usize = 0;
pub(super) const FREE: usize = 1;

pub(super) fn sequence(am: Am) -> usize {
    if am & OVERTAKES != 0 { FREE } else { ORDERED }
}

/// Messages of one sequence that the peer has not acknowledged.
#[derive(Default)]
pub(super) struct Sent {
    /// The number of the first that is kept, less one.
    pub(super) acked: u64,
    pub(super) kept: VecDeque<Kept>,
}

pub(super) struct Kept {
    pub(super) am: Am,
    /// The link over which it went.
    pub(super) way: usize,
    pub(super) what: What,
}

/// How a message is had again.
pub(super) enum What {
    /// Prefix and payload.
    Copy(Vec<u8>),
    /// Its sender has it.
    Left { header: Header, len: usize },
}

impl Kept {
    /// How many bytes it takes on a link.
    pub(super) fn len(&self) -> usize {
        match &self.what {
            What::Copy(bytes) => bytes.len(),
            What::Left { len, .. } => PREFIX + len,
        }
    }
}

/// What has come of one sequence.
#[derive(Default)]
pub(super) struct Received {
    /// Everything up to this number has come.
    pub(super) upto: u64,
    /// What has come beyond a gap; ordered messages wait here, overtaking ones are only remembered.
    pub(super) beyond: BTreeMap<u64, Option<(Am, Vec<u8>)>>,
}

impl Side {
    pub(super) fn new(peer: ProcId, links: &[Transport]) -> Side {
        let ways = links.iter().map(|link| {
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
        Side {
            peer,
            ways: ways.collect(),
            sent: Default::default(),
            kept_bytes: Cell::new(0),
            received: Default::default(),
            news_bytes: Cell::new(0),
            news_messages: Cell::new(0),
            again: RefCell::default(),
        }
    }

    pub(super) fn is_up(&self, way: usize) -> bool {
        self.ways
            .get(way)
            .is_some_and(|way| way.dead.borrow().is_none())
    }

    pub(super) fn first_up(&self) -> Option<usize> {
        (0..self.ways.len()).find(|&way| self.is_up(way))
    }

    pub(super) fn acks(&self) -> [u64; 2] {
        [ORDERED, FREE].map(|which| self.received[which].borrow().upto)
    }

    /// What stands before a message's own payload.
    pub(super) fn prefix(&self, header: Header) -> [u8; PREFIX] {
        let mut prefix = [0; PREFIX];
        prefix[..8].copy_from_slice(&header[0].to_le_bytes());
        prefix[8..16].copy_from_slice(&header[1].to_le_bytes());
        self.tell(&mut prefix[16..]);
        prefix
    }

    /// Writes the acknowledgements into a message's prefix; the peer need not be told again.
    pub(super) fn tell(&self, prefix: &mut [u8]) {
        let [ordered, free] = self.acks();
        prefix[..8].copy_from_slice(&ordered.to_le_bytes());
        prefix[8..16].copy_from_slice(&free.to_le_bytes());
    }

    /// Takes how a message is had again out of what is remembered, unless the peer has acknowledged it.
    pub(super) fn take(&self, which: usize, number: u64) -> Option<(Am, What)> {
        let mut sent = self.sent[which].borrow_mut();
        let kept = sent.get(number)?;
        let what = std::mem::replace(&mut kept.what, What::Copy(Vec::new()));
        Some((kept.am, what))
    }

    /// Puts back what [`Side::take`] has taken, and by which link it went, if one took it.
    pub(super) fn put_back(&self, which: usize, number: u64, way: Option<usize>, what: What) {
        if let Some(kept) = self.sent[which].borrow_mut().get(number) {
            kept.what = what;
            kept.way = way.unwrap_or(kept.way);
        }
    }

    /// The peer is to be told that a message has come.
    pub(super) fn has_news(&self, bytes: usize) {
        self.news_messages.set(self.news_messages.get() + 1);
        self.news_bytes.set(self.news_bytes.get() + bytes);
    }

    pub(super) fn told(&self) {
        self.news_bytes.set(0);
        self.news_messages.set(0);
    }

    /// The peer has everything up to these numbers; what was kept of it may go.
    pub(super) fn hear(&self, acks: [u64; 2], spare: &RefCell<Vec<Vec<u8>>>) {
        for (sent, ack) in self.sent.iter().zip(acks) {
            let mut sent = sent.borrow_mut();
            while sent.acked < ack
                && let Some(kept) = sent.kept.pop_front()
            {
                sent.acked += 1;
                self.kept_bytes.set(self.kept_bytes.get() - kept.len());
                let mut spare = spare.borrow_mut();
                if spare.len() < SPARE
                    && let What::Copy(bytes) = kept.what
                {
                    spare.push(bytes);
                }
            }
        }
    }
}

impl Sent {
    fn get(&mut self, number: u64) -> Option<&mut Kept> {
        let at = number.checked_sub(self.acked + 1)?;
        self.kept.get_mut(usize::try_from(at).ok()?)
    }
}

impl Received {
    pub(super) fn knows(&self, number: u64) -> bool {
        number <= self.upto || self.beyond.contains_key(&number)
    }

    /// Whether a number is new; remembers that it has come.
    pub(super) fn admit_free(&mut self, number: u64) -> bool {
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
