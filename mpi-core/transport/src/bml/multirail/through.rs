//! The sink of one link of a bond: delivers messages of peers without a bond unchanged.
//! For bonded peers it processes acknowledgements, drops duplicates and restores the order.

use super::side::{FREE, Landing, ORDERED, Side};
use super::{
    ACK, FREELY, IN_ORDER, MOST_SPREAD, Multirail, PREFIX, SOON_BYTES, SOON_MESSAGES, VOID,
};
use crate::btl::{Am, Btl, Header, ProcId, Sink};
use std::cell::Cell;
use std::ops::{Deref, Range};

/// The sink with which the bond polls one link.
pub(super) struct Through<'a, L> {
    pub(super) bond: &'a Multirail<L>,
    pub(super) way: usize,
    pub(super) sink: &'a dyn Sink,
    pub(super) delivered: Cell<usize>,
}

/// Returns true for the active messages of a bond.
fn is_bonded(am: Am) -> bool {
    matches!(am, IN_ORDER | FREELY | VOID | ACK)
}

/// Returns the upper layer's handler number and the sender's link from `word`, the second word of a header.
/// Returns `None` if a bond cannot have written the word.
fn own(am: Am, word: u64) -> Option<(Am, usize)> {
    let own = Am::try_from(word & 0xff).ok()?;
    let fits = match am {
        FREELY => super::sequence(own) == FREE,
        _ => super::sequence(own) == ORDERED,
    };
    fits.then_some((own, usize::try_from(word >> 8).ok()?))
}

impl<L> Through<'_, L>
where
    L: Deref,
    L::Target: Btl,
{
    fn landing(&self, from: ProcId) -> Option<&Cell<Landing>> {
        self.bond.side(from)?.landings.get(self.way)
    }

    /// Delivers a message to the bond's own sink.
    #[inline]
    fn pass(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        self.delivered.set(self.delivered.get() + 1);
        self.sink.deliver(from, am, header, payload);
    }

    /// Delivers a bonded message without its prefix, whose length has been checked.
    fn hand_on(&self, from: ProcId, am: Am, bytes: &[u8]) {
        if let (Some(first), Some(second)) = (word(bytes, 0), word(bytes, 8)) {
            self.pass(from, am, [first, second], &bytes[PREFIX..]);
        }
    }

    /// Processes the peer's acknowledgements of both sequences.
    fn acknowledged(&self, side: &Side, acks: [u64; 2]) {
        side.acknowledge(acks, &self.bond.spare);
        if side.has_unsaid.get() {
            self.bond.print_unsaid(side, self.way, self.sink);
        }
    }

    fn report(&self, side: &Side, carried: &[u8]) {
        side.take_report(carried);
        if let Some(spread) = side.spread() {
            self.bond.spread.set(spread.clamp(1, MOST_SPREAD));
        }
    }

    /// Counts an arrived message, which must be acknowledged to the peer.
    fn count(&self, side: &Side, bytes: usize, link: Option<usize>) {
        side.has_news(bytes, link);
        let is_much =
            side.news_bytes.get() >= SOON_BYTES || side.news_messages.get() >= SOON_MESSAGES;
        self.bond.set_due(side, is_much);
    }

    fn in_order(&self, side: &Side, am: Am, number: u64, payload: &[u8]) {
        let received = &side.received[ORDERED];
        let next = received.borrow().upto + 1;
        if number > next {
            let waiting = Some((am, payload.to_vec()));
            let mut received = received.borrow_mut();
            received.beyond.entry(number).or_insert(waiting);
        } else if number == next {
            received.borrow_mut().upto = number;
            self.hand_on(side.peer, am, payload);
            loop {
                let waited = received.borrow_mut().advance();
                let Some(waited) = waited else { break };
                if let Some((am, bytes)) = waited {
                    self.hand_on(side.peer, am, &bytes);
                }
            }
        }
    }
}

impl<L> Sink for Through<'_, L>
where
    L: Deref,
    L::Target: Btl,
{
    #[inline]
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        if !is_bonded(am) {
            return self.pass(from, am, header, payload);
        }
        let Some(side) = self.bond.side(from) else {
            return;
        };
        let at = if am == ACK { 0 } else { 16 };
        // A payload that is shorter than the prefix was not written by a bond.
        let (Some(ordered), Some(free)) = (word(payload, at), word(payload, at + 8)) else {
            return;
        };
        self.acknowledged(side, [ordered, free]);
        let number = header[0];
        match (am, own(am, header[1])) {
            (ACK, _) => self.report(side, &payload[16..]),
            (VOID, _) => {
                self.count(side, payload.len(), None);
                side.received[FREE].borrow_mut().admit_free(number);
            }
            (FREELY, Some((am, link))) => {
                self.count(side, payload.len(), Some(link));
                if side.received[FREE].borrow_mut().admit_free(number) {
                    self.hand_on(from, am, payload);
                }
            }
            (IN_ORDER, Some((am, _))) => {
                self.count(side, payload.len(), None);
                self.in_order(side, am, number, payload);
            }
            _ => {}
        }
    }

    /// Begins to receive an overtaking message directly into its destination.
    /// An ordered message is buffered, because an earlier message may have to be retransmitted first.
    ///
    /// If the link fails before the message is complete, a retransmission writes the same bytes to the same destination.
    fn begin(&self, from: ProcId, am: Am, header: Header, len: usize, begun: &[u8]) -> bool {
        if !is_bonded(am) {
            return self.sink.begin(from, am, header, len, begun);
        }
        let (FREELY, Some((own, link)), Some(landing)) =
            (am, own(am, header[1]), self.landing(from))
        else {
            return false;
        };
        let words = [0, 8, 16, 24].map(|at| word(begun, at));
        let [Some(first), Some(second), Some(ordered), Some(free)] = words else {
            return false;
        };
        // The message may already have arrived over a link that has failed since. Then this copy is a duplicate.
        let side = self.bond.side(from);
        if side.is_none_or(|side| side.received[FREE].borrow().knows(header[0])) {
            return false;
        }
        let header = [first, second];
        landing.set(Landing {
            am: own,
            link,
            header,
            acks: [ordered, free],
        });
        let begun = &begun[PREFIX..];
        self.sink.begin(from, own, header, len - PREFIX, begun)
    }

    fn land(
        &self,
        from: ProcId,
        am: Am,
        header: Header,
        range: Range<usize>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        if !is_bonded(am) {
            return self.sink.land(from, am, header, range, fill);
        }
        let Some(landing) = self.landing(from).map(Cell::get) else {
            return false;
        };
        let range = range.start - PREFIX..range.end - PREFIX;
        let Landing { am, header, .. } = landing;
        self.sink.land(from, am, header, range, fill)
    }

    fn landed(&self, from: ProcId, am: Am, header: Header, len: usize) {
        if !is_bonded(am) {
            self.delivered.set(self.delivered.get() + 1);
            return self.sink.landed(from, am, header, len);
        }
        let (Some(side), Some(landing)) = (self.bond.side(from), self.landing(from)) else {
            return;
        };
        let landing = landing.get();
        self.acknowledged(side, landing.acks);
        self.count(side, len, Some(landing.link));
        if side.received[FREE].borrow_mut().admit_free(header[0]) {
            self.delivered.set(self.delivered.get() + 1);
            let len = len - PREFIX;
            self.sink.landed(from, landing.am, landing.header, len);
        }
    }

    fn lost(&self, peer: ProcId, why: &str) {
        let death = (peer, self.way, why.to_owned());
        self.bond.deaths.borrow_mut().push(death);
        self.bond.urgent.set(true);
    }

    fn parted(&self, peer: ProcId) {
        self.sink.parted(peer);
    }

    fn link_lost(&self, peer: ProcId, what: Option<&str>) {
        self.sink.link_lost(peer, what);
    }
}

/// Returns the little-endian 64-bit integer at byte `at`, or `None` beyond the end of `bytes`.
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?;
    word.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btl::suite::Keep;
    use crate::btl::{Btl, Endpoint, Info, Limits, Payload, Reach, SendError};
    use proptest::prelude::*;

    /// A link that accepts all messages and delivers none.
    struct Quiet;

    impl Btl for Quiet {
        fn info(&self) -> &Info {
            const LIMITS: Limits = Limits {
                eager: 4096,
                max_send: 4096,
            };
            &const { Info::of_memory("quiet", 0, LIMITS) }
        }
        fn reach(&self, peer: ProcId) -> Reach {
            Reach::Yes(Endpoint(peer))
        }
        fn send(&self, _: Endpoint, _: Am, _: Header, _: Payload<'_>) -> Result<(), SendError> {
            Ok(())
        }
        fn progress(&self, _: &dyn Sink) -> usize {
            0
        }
        fn pending(&self) -> bool {
            false
        }
    }

    proptest! {
        /// Arbitrary input is delivered as a message or dropped,
        /// and each sequence number is delivered at most once.
        /// Acknowledgements of messages that were never sent release no message.
        #[test]
        fn what_no_bond_has_written_does_no_harm(
            messages in prop::collection::vec(
                (any::<u8>(), any::<u64>(), 0u64..6, any::<bool>(), prop::collection::vec(any::<u8>(), 0..200)),
                1..60,
            ),
        ) {
            let bond = Multirail::new(0, 2, vec![Box::new(Quiet) as Box<dyn Btl>]);
            bond.send(Endpoint(1), 3, [1, 2], Payload::Bytes(&[5])).unwrap();
            let sink = Keep::default();
            let through = Through { bond: &bond, way: 0, sink: &sink, delivered: Cell::new(0) };
            for (am, wild, near, is_near, bytes) in &messages {
                // Sequence numbers near the expected one cover more of the code.
                let header = if *is_near { [*near, wild % 1000] } else { [*wild; 2] };
                let am = &[ACK, VOID, FREELY, IN_ORDER][usize::from(*am) % 4];
                let len = bytes.len() + 100;
                if bytes.len() >= crate::btl::BEGUN && through.begin(1, *am, header, len, bytes) {
                    through.land(1, *am, header, bytes.len()..len, &mut |_| {});
                    through.landed(1, *am, header, len);
                }
                through.deliver(1, *am, header, bytes);
                through.deliver(7, *am, header, bytes);
            }
            prop_assert!(sink.len() <= messages.len());
            prop_assert!(bond.side(1).is_some_and(|side| side.kept_bytes.get() <= PREFIX + 1));
        }
    }
}
