//! The sink of one link: processes acknowledgements, drops duplicates and restores the order of ordered messages.

use super::side::{FREE, Landing, ORDERED, Way, sequence};
use super::{ACK, Multirail, PREFIX, VOID};
use crate::btl::{Am, Header, ProcId, Sink};
use std::cell::Cell;
use std::ops::Range;

/// The sink of one link's poll.
pub(super) struct Through<'a> {
    pub(super) bond: &'a Multirail,
    pub(super) way: usize,
    pub(super) sink: &'a dyn Sink,
    pub(super) delivered: Cell<usize>,
}

impl Through<'_> {
    fn way(&self, from: ProcId) -> Option<&Way> {
        self.bond.side(from)?.ways.get(self.way)
    }

    /// Returns true if an overtaking message has arrived before, over a link that has died since.
    fn has_had(&self, from: ProcId, header: Header) -> bool {
        let side = self.bond.side(from);
        side.is_some_and(|side| side.received[FREE].borrow().knows(header[0]))
    }

    /// Delivers one message whose prefix has been checked.
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
        // A payload that is too short for its prefix was not written by a bond.
        let (Some(ordered), Some(free)) = (word(payload, at), word(payload, at + 8)) else {
            return;
        };
        side.acknowledge([ordered, free], &self.bond.spare);
        if am == ACK {
            return;
        }
        let number = header[0];
        side.has_news(payload.len());
        if sequence(am) == FREE {
            let is_new = side.received[FREE].borrow_mut().admit_free(number);
            if is_new && am != VOID {
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

    /// Receives an overtaking message in place. An ordered one is buffered, since it may have to wait for a retransmission before it.
    ///
    /// If the link dies before the message is complete, the same bytes arrive at the same address over another link.
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
        side.acknowledge(landing.acks, &self.bond.spare);
        side.has_news(len);
        if side.received[FREE].borrow_mut().admit_free(header[0]) {
            self.delivered.set(self.delivered.get() + 1);
            let len = len - PREFIX;
            self.sink.landed(from, am, landing.header, len);
        }
    }

    fn lost(&self, peer: ProcId, why: &str) {
        if let Some(side) = self.bond.side(peer) {
            self.bond.record_link_death(side, self.way, why, self.sink);
        }
    }

    fn link_lost(&self, peer: ProcId, what: &str) {
        self.sink.link_lost(peer, what);
    }
}

/// Returns the little-endian word at `at`, or `None` beyond the end.
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

    /// A link that accepts everything and delivers nothing.
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
        /// Arbitrary input is a message or dropped; each number is delivered at most once, and acknowledgements of what was never sent free nothing.
        #[test]
        fn what_no_bond_has_written_does_no_harm(
            messages in prop::collection::vec(
                (any::<u8>(), any::<u64>(), 0u64..6, any::<bool>(), prop::collection::vec(any::<u8>(), 0..200)),
                1..60,
            ),
        ) {
            let bond = Multirail::new(0, 2, vec![Box::new(Quiet)]);
            bond.send(Endpoint(1), 3, [1, 2], Payload::Bytes(&[5])).unwrap();
            let sink = Keep::default();
            let through = Through { bond: &bond, way: 0, sink: &sink, delivered: Cell::new(0) };
            for (am, wild, near, is_near, bytes) in &messages {
                // Numbers near the expected ones reach more of the code.
                let header = [if *is_near { *near } else { *wild }, 0];
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
