//! Retransmission after the failure of a link, and acknowledgements.

use super::side::{FREE, ORDERED, Side, Stage, Way, What};
use super::{ACK, Multirail, PREFIX, VOID};
use crate::btl::{Am, Btl, Header, Sink};
use std::ops::Deref;

impl<L> Multirail<L>
where
    L: Deref,
    L::Target: Btl,
{
    /// Retransmits the messages that failed links may have lost, until no link accepts more.
    pub(super) fn repair(&self, side: &Side, sink: &dyn Sink) {
        while let Some((which, number)) = { side.again.borrow().front().copied() } {
            // `None` if the peer has acknowledged the message since the failure; then nothing is sent.
            let way = match side.take(which, number) {
                Some((am, What::Copy(bytes))) => {
                    let way = self.mend(side, am, number, [&bytes, &[]]);
                    side.put_back(which, number, way, What::Copy(bytes));
                    way
                }
                Some((am, What::Left { header, len })) => {
                    let way = self.ask_again(side, am, number, header, len, sink);
                    side.put_back(which, number, way, What::Left { header, len });
                    way
                }
                None => Some(0),
            };
            if way.is_none() {
                return;
            }
            side.again.borrow_mut().pop_front();
        }
    }

    /// Retransmits an overtaking message from its sender's memory, or sends a [`VOID`] if the sender no longer has the data.
    fn ask_again(
        &self,
        side: &Side,
        am: Am,
        number: u64,
        header: Header,
        len: usize,
        sink: &dyn Sink,
    ) -> Option<usize> {
        let prefix = side.prefix(header);
        let mut answer = None;
        sink.again(side.peer, am, header, len, &mut |data| {
            answer = Some(self.mend(side, am, number, [&prefix, data]));
        });
        answer.unwrap_or_else(|| self.mend(side, VOID, number, [&prefix, &[]]))
    }

    /// Retransmits a message. Returns the link that accepted it.
    fn mend(&self, side: &Side, am: Am, number: u64, runs: [&[u8]; 2]) -> Option<usize> {
        let len = runs[0].len() + runs[1].len();
        let offer = |&way: &usize| self.offer(side, way, am, number, runs).is_ok();
        let ways = self.order(side, FREE, len).map(|(way, _)| way);
        ways.collect::<Vec<_>>().into_iter().find(offer)
    }

    /// Records the failures that the links have reported. Must not be called while a link polls,
    /// because the first query of the links to a peer (`ways`) may make a link connect.
    #[cold]
    pub(super) fn record_deaths(&self, sink: &dyn Sink) {
        for (peer, way, why) in self.deaths.take() {
            match self.side(peer) {
                Some(side) => self.record_link_death(side, way, &why, sink),
                None => sink.lost(peer, &why),
            }
        }
    }

    /// Records the failure of a link, and reports the peer as lost if no live link is left.
    fn record_link_death(&self, side: &Side, way: usize, why: &str, sink: &dyn Sink) {
        let ways = self.ways(side);
        if !ways[way].is_live() {
            return;
        }
        ways[way].die(why);
        let (me, peer) = (self.me, side.peer);
        let mut others = ways.iter().enumerate().filter(|(at, _)| *at != way);
        if others.all(|(_, other)| other.is_unused()) {
            return sink.lost(peer, why);
        }
        if !ways.iter().any(Way::is_live) {
            let all = ways.iter().enumerate().map(|(at, way)| {
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
        // A link that was never open has carried no message, so nothing is retransmitted.
        if ways[way].stage.get() != Stage::Open {
            return;
        }
        let (mut messages, mut bytes) = (0, 0);
        let mut again = side.again.borrow_mut();
        for (which, sent) in side.sent.iter().enumerate() {
            let sent = sent.borrow();
            for (at, kept) in sent.kept.iter().enumerate() {
                if kept.way == way {
                    messages += 1;
                    bytes += kept.len() - PREFIX;
                    again.push_back((which, sent.acked + 1 + at as u64));
                }
            }
        }
        drop(again);
        self.set_due(side, true);
        let network = self.links[way].capabilities().connections;
        let network = network.and_then(|all| all.network(ways[way].endpoint));
        let network = network.map_or(String::new(), |network| format!(" ({network})"));
        let name = self.links[way].info().name;
        let sentence = format!(
            "job rank {me}: {name} link {way}{network} to job rank {peer} is gone ({why}); {messages} messages of {bytes} bytes that may have been lost with it are sent again over the others"
        );
        side.unsaid.borrow_mut().push((way, sentence));
        side.has_unsaid.set(true);
    }

    /// Prints the texts about failed links, because a message has proved that the peer is alive.
    /// Of the two ranks of a connection, only the lower one prints the failure of a link, and only for one of its peers,
    /// so a network that fails under many ranks does not flood the output.
    #[cold]
    pub(super) fn print_unsaid(&self, side: &Side, over: usize, sink: &dyn Sink) {
        let is_live = |ways: &Vec<Way>| ways.get(over).is_some_and(Way::is_live);
        // A message over a failed link may be an old one and does not prove that the peer is alive.
        if !side.ways.get().is_some_and(is_live) {
            return;
        }
        side.has_unsaid.set(false);
        for (way, sentence) in side.unsaid.take() {
            let bit = 1 << way;
            let prints = self.me < side.peer && self.printed.get() & bit == 0;
            if prints {
                self.printed.set(self.printed.get() | bit);
            }
            sink.link_lost(side.peer, prints.then_some(&*sentence));
        }
    }

    /// Sends the peer an acknowledgement of all messages that have arrived from it.
    pub(super) fn acknowledge(&self, side: &Side) {
        let report = side.report();
        let way = self.order(side, ORDERED, 0).next();
        if let Some((way, _)) = way
            && self.offer(side, way, ACK, 0, [&report, &[]]).is_ok()
        {
            side.told();
        }
    }
}
