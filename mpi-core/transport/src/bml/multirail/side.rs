//! State of one peer in a bond: its links, the unacknowledged messages, and the receive sequences.

use super::speed::Speed;
use super::{MOST, PREFIX, SPARE};
use crate::btl::{Am, Endpoint, Header, OVERTAKES, ProcId, Reach};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};

/// The state of one peer in a bond.
pub(super) struct Side {
    pub(super) peer: ProcId,
    /// The state of each link of the bond to this peer;
    /// `None` until this process has queried which links reach the peer.
    pub(super) ways: OnceCell<Vec<Way>>,
    pub(super) sent: [RefCell<Sent>; 2],
    pub(super) kept_bytes: Cell<usize>,
    pub(super) received: [RefCell<Received>; 2],
    /// Number of bytes and of messages received since the last acknowledgement.
    pub(super) news_bytes: Cell<usize>,
    pub(super) news_messages: Cell<u32>,
    /// True if overtaking messages have arrived that no acknowledgement has reported.
    pub(super) has_unreported: Cell<bool>,
    /// Number of bytes of overtaking messages that have arrived, for each link of the peer.
    pub(super) carried: [Cell<u64>; MOST],
    /// The message that is being received directly into its destination, for each link of this process.
    pub(super) landings: [Cell<Landing>; MOST],
    /// Messages of failed links that must be retransmitted: sequence index and sequence number.
    pub(super) again: RefCell<VecDeque<(usize, u64)>>,
    /// True if an acknowledgement or a retransmission is due.
    pub(super) is_due: Cell<bool>,
    /// Texts about failed links with the link's index, to be printed when the peer has proved that it is alive.
    pub(super) unsaid: RefCell<Vec<(usize, String)>>,
    pub(super) has_unsaid: Cell<bool>,
}

/// The state of one link to one peer.
pub(super) struct Way {
    pub(super) endpoint: Endpoint,
    /// True if the link does not reach the peer or must not be used for it.
    is_unused: Cell<bool>,
    /// The reason why the link is unusable; `None` if it is usable.
    pub(super) dead: RefCell<Option<String>>,
    pub(super) stage: Cell<Stage>,
    pub(super) speed: Speed,
}

/// The connection state of a link to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No connection exists.
    Idle,
    /// The connection is being established; the link carries no messages yet.
    Opening,
    Open,
}

impl Way {
    pub(super) fn new(reach: Reach) -> Way {
        let (endpoint, dead) = match reach {
            Reach::Yes(endpoint) => (endpoint, None),
            Reach::No(why) => (Endpoint(u32::MAX), Some(why)),
        };
        Way {
            endpoint,
            is_unused: Cell::new(dead.is_some()),
            dead: RefCell::new(dead),
            stage: Cell::new(Stage::Idle),
            speed: Speed::default(),
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.dead.borrow().is_none()
    }

    /// Returns true if the link did not reach the peer or was excluded.
    pub(super) fn is_unused(&self) -> bool {
        self.is_unused.get()
    }

    /// Excludes the link from the bond to this peer, although it reaches the peer.
    pub(super) fn leave_out(&self, why: &str) {
        self.die(why);
        self.is_unused.set(true);
    }

    pub(super) fn die(&self, why: &str) {
        *self.dead.borrow_mut() = Some(why.into());
    }
}

/// A message whose payload is being received directly into its destination:
/// the upper layer's handler number and prefix, and the sender's link.
#[derive(Clone, Copy, Default)]
pub(super) struct Landing {
    pub(super) am: Am,
    pub(super) link: usize,
    pub(super) header: Header,
    pub(super) acks: [u64; 2],
}

/// Indices of the two sequences: ordered messages, and messages that may overtake.
pub(super) const ORDERED: usize = 0;
pub(super) const FREE: usize = 1;

pub(super) fn sequence(am: Am) -> usize {
    if am & OVERTAKES != 0 { FREE } else { ORDERED }
}

/// The unacknowledged messages of one sequence to the peer.
#[derive(Default)]
pub(super) struct Sent {
    /// The highest cumulatively acknowledged sequence number; `kept` begins with the next one.
    pub(super) acked: u64,
    pub(super) kept: VecDeque<Kept>,
}

pub(super) struct Kept {
    pub(super) am: Am,
    /// The link that carried the message.
    pub(super) way: usize,
    pub(super) what: What,
}

/// The data of an unacknowledged message, for a retransmission.
pub(super) enum What {
    /// A copy of the prefix and the payload.
    Copy(Vec<u8>),
    /// The data are in the sender's memory, and are requested by header and length.
    Left { header: Header, len: usize },
}

impl Kept {
    /// Returns the length of the message with its prefix, in bytes.
    pub(super) fn len(&self) -> usize {
        match &self.what {
            What::Copy(bytes) => bytes.len(),
            What::Left { len, .. } => PREFIX + len,
        }
    }
}

/// The received messages of one sequence.
#[derive(Default)]
pub(super) struct Received {
    /// All messages up to and including this sequence number have arrived.
    pub(super) upto: u64,
    /// Sequence numbers that arrived after a gap.
    /// For ordered messages, the payload is buffered;
    /// for overtaking messages, which were delivered immediately, only the number is stored.
    pub(super) beyond: BTreeMap<u64, Option<(Am, Vec<u8>)>>,
}

impl Side {
    pub(super) fn new(peer: ProcId) -> Side {
        Side {
            peer,
            ways: OnceCell::new(),
            sent: Default::default(),
            kept_bytes: Cell::new(0),
            received: Default::default(),
            news_bytes: Cell::new(0),
            news_messages: Cell::new(0),
            has_unreported: Cell::new(false),
            carried: Default::default(),
            landings: Default::default(),
            again: RefCell::default(),
            is_due: Cell::new(false),
            unsaid: RefCell::default(),
            has_unsaid: Cell::new(false),
        }
    }

    pub(super) fn acks(&self) -> [u64; 2] {
        [ORDERED, FREE].map(|which| self.received[which].borrow().upto)
    }

    /// Returns the prefix of a message's payload: the message's header and both acknowledgements.
    pub(super) fn prefix(&self, header: Header) -> [u8; PREFIX] {
        let mut prefix = [0; PREFIX];
        prefix[..8].copy_from_slice(&header[0].to_le_bytes());
        prefix[8..16].copy_from_slice(&header[1].to_le_bytes());
        self.tell(&mut prefix[16..]);
        prefix
    }

    /// Writes the acknowledgements of both sequences to `prefix`, little-endian.
    pub(super) fn tell(&self, prefix: &mut [u8]) {
        let [ordered, free] = self.acks();
        prefix[..8].copy_from_slice(&ordered.to_le_bytes());
        prefix[8..16].copy_from_slice(&free.to_le_bytes());
    }

    /// Removes and returns the retransmission data of a message; `None` if the peer has acknowledged the message.
    pub(super) fn take(&self, which: usize, number: u64) -> Option<(Am, What)> {
        let mut sent = self.sent[which].borrow_mut();
        let kept = sent.get(number)?;
        let what = std::mem::replace(&mut kept.what, What::Copy(Vec::new()));
        Some((kept.am, what))
    }

    /// Stores the data again that [`Side::take`] has removed,
    /// and the link `way` of the retransmission, if it was sent.
    pub(super) fn put_back(&self, which: usize, number: u64, way: Option<usize>, what: What) {
        if let Some(kept) = self.sent[which].borrow_mut().get(number) {
            kept.what = what;
            kept.way = way.unwrap_or(kept.way);
        }
    }

    /// Returns the payload of an ACK: both acknowledgements, and the bytes that have arrived over each of the peer's links.
    pub(super) fn report(&self) -> Vec<u8> {
        let carried = self.carried.iter().map(Cell::get);
        let all: Vec<u64> = self.acks().into_iter().chain(carried).collect();
        let used = all
            .iter()
            .rposition(|word| *word > 0)
            .map_or(2, |at| at + 1);
        let words = all.iter().take(used.max(2));
        words.flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Processes the peer's report: for each link of this process, the number of bytes that have arrived over it.
    pub(super) fn take_report(&self, carried: &[u8]) {
        let ways = self.ways.get().map_or(&[][..], |ways| ways);
        for (way, bytes) in ways.iter().zip(carried.as_chunks::<8>().0) {
            way.speed.report(u64::from_le_bytes(*bytes));
        }
    }

    /// Returns the divisor of the fragment length. It is the number of open links if they are equally fast, and larger if they differ,
    /// because a fragment takes longest on the slowest link.
    /// Returns `None` until all open links have been measured.
    pub(super) fn spread(&self) -> Option<u64> {
        let ways = self.ways.get()?;
        let used = ways
            .iter()
            .filter(|way| way.is_live() && way.stage.get() == Stage::Open);
        let mut rates = Vec::new();
        for way in used {
            rates.push(way.speed.rate()?);
        }
        let least = rates.iter().min()?;
        let parts = rates.iter().sum::<u64>() / (*least).max(1);
        Some(2 * parts - rates.len() as u64)
    }

    /// Counts a received message of `bytes` bytes for the next acknowledgement.
    /// `link` is the sender's link for an overtaking message, otherwise `None`.
    pub(super) fn has_news(&self, bytes: usize, link: Option<usize>) {
        if let Some(carried) = link.and_then(|link| self.carried.get(link)) {
            carried.set(carried.get() + bytes as u64);
            self.has_unreported.set(true);
        }
        self.news_messages.set(self.news_messages.get() + 1);
        self.news_bytes.set(self.news_bytes.get() + bytes);
    }

    /// Resets the counters of unacknowledged messages, after an ACK was sent.
    pub(super) fn told(&self) {
        self.news_bytes.set(0);
        self.news_messages.set(0);
        self.has_unreported.set(false);
    }

    /// Resets the counters of unacknowledged messages after a message was sent whose prefix acknowledges them.
    /// Only an ACK can report the bytes of overtaking messages; if these are unreported, the counters remain.
    pub(super) fn told_by_prefix(&self) {
        if !self.has_unreported.get() {
            self.told();
        }
    }

    /// Discards the messages that the peer has acknowledged by `acks`, and stores their buffers in `spare` for reuse.
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

    /// If the next message of the sequence is buffered, removes and returns it.
    pub(super) fn advance(&mut self) -> Option<Option<(Am, Vec<u8>)>> {
        let waited = self.beyond.remove(&(self.upto + 1))?;
        self.upto += 1;
        Some(waited)
    }

    /// Records the arrival of the overtaking message `number`; returns true if it is new.
    pub(super) fn admit_free(&mut self, number: u64) -> bool {
        if self.knows(number) {
            return false;
        }
        self.beyond.insert(number, None);
        while self.advance().is_some() {}
        true
    }
}
