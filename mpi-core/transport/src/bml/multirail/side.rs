//! State of one peer: its links, the unacknowledged messages, and the receive sequences.

use super::{PREFIX, SPARE};
use crate::btl::{Am, Endpoint, Header, OVERTAKES, ProcId, Reach, Transport};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

/// The state of one peer.
pub(super) struct Side {
    pub(super) peer: ProcId,
    pub(super) ways: Vec<Way>,
    pub(super) sent: [RefCell<Sent>; 2],
    pub(super) kept_bytes: Cell<usize>,
    pub(super) received: [RefCell<Received>; 2],
    /// Bytes and messages received since the last acknowledgement.
    pub(super) news_bytes: Cell<usize>,
    pub(super) news_messages: Cell<u32>,
    /// Messages of dead links to retransmit: sequence and number.
    pub(super) again: RefCell<VecDeque<(usize, u64)>>,
}

/// One link to one peer.
pub(super) struct Way {
    pub(super) endpoint: Endpoint,
    /// Why the link is unusable; `None` while it is alive.
    pub(super) dead: RefCell<Option<String>>,
    /// Bytes sent over it, divided by its bandwidth.
    pub(super) load: Cell<u64>,
    /// The message that is being received in place.
    pub(super) landing: Cell<Landing>,
}

/// The prefix of a message whose payload is being received in place.
#[derive(Clone, Copy, Default)]
pub(super) struct Landing {
    pub(super) header: Header,
    pub(super) acks: [u64; 2],
}

/// The two sequences: ordered, and free to overtake.
pub(super) const ORDERED: usize = 0;
pub(super) const FREE: usize = 1;

pub(super) fn sequence(am: Am) -> usize {
    if am & OVERTAKES != 0 { FREE } else { ORDERED }
}

/// The unacknowledged messages of one sequence.
#[derive(Default)]
pub(super) struct Sent {
    /// All numbers up to this one are acknowledged; `kept` begins with the next.
    pub(super) acked: u64,
    pub(super) kept: VecDeque<Kept>,
}

pub(super) struct Kept {
    pub(super) am: Am,
    /// The link it was sent over.
    pub(super) way: usize,
    pub(super) what: What,
}

/// Where the data for a retransmission are.
pub(super) enum What {
    /// A copy of prefix and payload.
    Copy(Vec<u8>),
    /// In the sender's memory.
    Left { header: Header, len: usize },
}

impl Kept {
    /// Returns its length on a link, in bytes.
    pub(super) fn len(&self) -> usize {
        match &self.what {
            What::Copy(bytes) => bytes.len(),
            What::Left { len, .. } => PREFIX + len,
        }
    }
}

/// Receive state of one sequence.
#[derive(Default)]
pub(super) struct Received {
    /// All numbers up to this one have arrived.
    pub(super) upto: u64,
    /// Numbers that arrived after a gap. Ordered messages are buffered here; of overtaking ones only the number is kept.
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

    /// Returns the prefix of a payload.
    pub(super) fn prefix(&self, header: Header) -> [u8; PREFIX] {
        let mut prefix = [0; PREFIX];
        prefix[..8].copy_from_slice(&header[0].to_le_bytes());
        prefix[8..16].copy_from_slice(&header[1].to_le_bytes());
        self.tell(&mut prefix[16..]);
        prefix
    }

    /// Writes both acknowledgements, little-endian.
    pub(super) fn tell(&self, prefix: &mut [u8]) {
        let [ordered, free] = self.acks();
        prefix[..8].copy_from_slice(&ordered.to_le_bytes());
        prefix[8..16].copy_from_slice(&free.to_le_bytes());
    }

    /// Takes the retransmission data of a message; `None` if the peer has acknowledged it.
    pub(super) fn take(&self, which: usize, number: u64) -> Option<(Am, What)> {
        let mut sent = self.sent[which].borrow_mut();
        let kept = sent.get(number)?;
        let what = std::mem::replace(&mut kept.what, What::Copy(Vec::new()));
        Some((kept.am, what))
    }

    /// Puts back what [`Side::take`] has taken, and records the link that retransmitted it, if one did.
    pub(super) fn put_back(&self, which: usize, number: u64, way: Option<usize>, what: What) {
        if let Some(kept) = self.sent[which].borrow_mut().get(number) {
            kept.what = what;
            kept.way = way.unwrap_or(kept.way);
        }
    }

    /// Counts a received message for the next acknowledgement.
    pub(super) fn has_news(&self, bytes: usize) {
        self.news_messages.set(self.news_messages.get() + 1);
        self.news_bytes.set(self.news_bytes.get() + bytes);
    }

    pub(super) fn told(&self) {
        self.news_bytes.set(0);
        self.news_messages.set(0);
    }

    /// Drops the messages that these acknowledgements cover, and keeps their buffers for reuse.
    pub(super) fn acknowledge(&self, acks: [u64; 2], spare: &RefCell<Vec<Vec<u8>>>) {
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

    /// Records the arrival of a number; returns true if it is new.
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
