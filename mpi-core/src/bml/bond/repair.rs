//! When a link dies: what it may have lost is sent again over those that are left; and the acknowledgements that say what was not lost.

use super::side::{FREE, Side};
use super::{ACK, Bond, PREFIX};
use crate::btl::Sink;

impl Bond {
    /// Sends again what dead links have lost, as far as there is room.
    pub(super) fn repair(&self, side: &Side) -> bool {
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
    pub(super) fn bury(&self, side: &Side, way: usize, why: &str, sink: &dyn Sink) {
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
    pub(super) fn acknowledge(&self, side: &Side) {
        let mut acks = [0; 16];
        side.tell(&mut acks);
        if let Some(way) = side.first_up()
            && self.offer(side, way, ACK, 0, &acks).is_ok()
        {
            side.told();
        }
    }
}
