//! BML, the BTL management layer: which transport reaches which peer.
//!
//! A peer is looked up when it is first needed, never before, so a job of thousands of ranks pays only for the peers it talks to.
//! Of the transports that reach a peer the one of the highest exclusivity is taken;
//! several of the same exclusivity are links that are used together ([`bond`]).

mod bond;
#[cfg(test)]
mod tests;

use crate::btl::{Btl, Endpoint, ProcId, Reach, Sink, Transport};
use bond::Bond;
use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

/// The transports of one process.
pub struct Bml {
    btls: Vec<Rc<dyn Btl>>,
    /// Those that are polled: all that listen, and the others from their first route on.
    polled: Vec<Cell<bool>>,
}

/// What the layer found out about a peer.
pub enum Route {
    Via(Rc<dyn Btl>, Endpoint),
    /// Nobody reaches it; each transport's reason.
    None {
        reasons: String,
    },
}

impl Bml {
    /// The transports of the highest exclusivity are asked, and polled, first.
    pub fn new(me: ProcId, size: u32, mut all: Vec<Transport>) -> Bml {
        all.sort_by_key(|btl| std::cmp::Reverse(btl.exclusivity()));
        let mut btls: Vec<Rc<dyn Btl>> = Vec::new();
        while let Some(first) = all.first() {
            let exclusivity = first.exclusivity();
            let alike = all.iter().take_while(|b| b.exclusivity() == exclusivity);
            let mut links: Vec<Transport> = all.drain(..alike.count()).collect();
            btls.push(match (links.len(), links.pop()) {
                (1, Some(alone)) => Rc::from(alone as Box<dyn Btl>),
                (_, last) => {
                    links.extend(last);
                    Rc::new(Bond::new(me, size, links))
                }
            });
        }
        let polled = btls.iter().map(|btl| Cell::new(btl.listens())).collect();
        Bml { btls, polled }
    }

    pub fn btls(&self) -> &[Rc<dyn Btl>] {
        &self.btls
    }

    /// The best transport to a peer; a lesser one is not even asked, since its answer may take a trip to the launcher.
    pub fn route(&self, peer: ProcId) -> Route {
        let mut reasons = Vec::new();
        for (btl, polled) in self.btls.iter().zip(&self.polled) {
            match btl.reach(peer) {
                Reach::Yes(endpoint) => {
                    polled.set(true);
                    return Route::Via(btl.clone(), endpoint);
                }
                Reach::No(reason) => reasons.push(format!("{}: {reason}", btl.name())),
            }
        }
        Route::None {
            reasons: reasons.join("; "),
        }
    }

    /// Delivers what has arrived on any transport; returns how many messages.
    #[inline]
    pub fn progress(&self, sink: &dyn Sink) -> usize {
        let mut delivered = 0;
        for (btl, polled) in self.btls.iter().zip(&self.polled) {
            if polled.get() {
                delivered += btl.progress(sink);
            }
        }
        delivered
    }

    /// What becomes readable when a transport that does not ring the bell has something.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = Vec::new();
        self.btls.iter().for_each(|btl| btl.descriptors(&mut all));
        all
    }

    /// Waits until what every transport took is out of this process's hands.
    pub fn settle(&self) {
        self.btls.iter().for_each(|btl| btl.settle());
    }

    /// Lets every transport say its last word.
    pub fn leave(&self) {
        self.btls.iter().for_each(|btl| btl.leave());
    }

    /// Whether any transport holds a message to deliver.
    pub fn pending(&self) -> bool {
        self.btls.iter().any(|btl| btl.pending())
    }
}
