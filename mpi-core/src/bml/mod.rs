//! BML, the BTL management layer: which transport reaches which peer.
//!
//! A peer is looked up when it is first needed, never before, so a job of thousands of ranks pays only for the peers it talks to.
//! Of the transports that reach a peer the one of the highest exclusivity is taken.

use crate::btl::{Btl, Endpoint, ProcId, Reach, Sink};
use std::cell::Cell;
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
    /// Transports in the order in which they are polled.
    pub fn new(btls: Vec<Rc<dyn Btl>>) -> Bml {
        let polled = btls.iter().map(|btl| Cell::new(btl.listens())).collect();
        Bml { btls, polled }
    }

    pub fn btls(&self) -> &[Rc<dyn Btl>] {
        &self.btls
    }

    /// The best transport to a peer.
    pub fn route(&self, peer: ProcId) -> Route {
        let mut best: Option<(u32, &Rc<dyn Btl>, Endpoint)> = None;
        let mut reasons = Vec::new();
        for btl in &self.btls {
            match btl.reach(peer) {
                Reach::Yes(endpoint) => {
                    if best.as_ref().is_none_or(|(e, ..)| btl.exclusivity() > *e) {
                        best = Some((btl.exclusivity(), btl, endpoint));
                    }
                }
                Reach::No(reason) => reasons.push(format!("{}: {reason}", btl.name())),
            }
        }
        match best {
            Some((_, btl, endpoint)) => {
                for (other, polled) in self.btls.iter().zip(&self.polled) {
                    if Rc::ptr_eq(other, btl) {
                        polled.set(true);
                    }
                }
                Route::Via(btl.clone(), endpoint)
            }
            None => Route::None {
                reasons: reasons.join("; "),
            },
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

    /// Whether any transport holds a message to deliver.
    pub fn pending(&self) -> bool {
        self.btls.iter().any(|btl| btl.pending())
    }
}
