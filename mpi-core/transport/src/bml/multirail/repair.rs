//! Retransmission after the death of a link, and acknowledgements.

use super::side::{FREE, Side, What};
use super::{ACK, Multirail, PREFIX, VOID};
use crate::btl::{Am, Header, Sink};

impl Multirail {
    /// Retransmits what dead links may have lost, until no link takes more.
    pub(super) fn repair(&self, side: &Side, sink: &dyn Sink) {
        while let Some((which, number)) = { side.again.borrow().front().copied() } {
            // Skipped if it was acknowledged in the meantime.
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

    /// Retransmits a message from its sender's memory, or a [`VOID`] if the sender no longer has it.
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

    /// Offers a lost message to the links; returns the link that took it.
    fn mend(&self, side: &Side, am: Am, number: u64, runs: [&[u8]; 2]) -> Option<usize> {
        let offer = |&way: &usize| self.offer(side, way, am, number, runs).is_ok();
        self.order(side, FREE).find(offer)
    }

    /// Records the death of a link, and reports the peer as lost if it was the last one.
    #[cold]
    pub(super) fn record_link_death(&self, side: &Side, way: usize, why: &str, sink: &dyn Sink) {
        if !side.is_up(way) {
            return;
        }
        *side.ways[way].dead.borrow_mut() = Some(why.into());
        let (me, peer) = (self.me, side.peer);
        let name = self.links[way].info().name;
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
                    bytes += kept.len() - PREFIX;
                    again.push_back((which, sent.acked + 1 + at as u64));
                }
            }
        }
        let what = format!(
            "job rank {me}: {name} link {way} to job rank {peer} is gone ({why}); {messages} messages of {bytes} bytes that may have been lost with it are sent again over the others"
        );
        sink.link_lost(peer, &what);
    }

    /// Sends the peer a cumulative acknowledgement.
    pub(super) fn acknowledge(&self, side: &Side) {
        let mut acks = [0; 16];
        side.tell(&mut acks);
        if let Some(way) = side.first_up()
            && self.offer(side, way, ACK, 0, [&acks, &[]]).is_ok()
        {
            side.told();
        }
    }
}
