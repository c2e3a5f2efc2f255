//! Counters of rare events, always active and exported as performance variables.
//!
//! The fast path of a short message updates no counter.

use std::cell::Cell;

/// The counters of one process.
#[derive(Debug, Default)]
pub struct Counts {
    rendezvous_sent: Cell<u64>,
    rendezvous_received: Cell<u64>,
    queued: Cell<u64>,
    unexpected: Cell<u64>,
    /// The number of sends while an observer was set, and the number of announced sends among them.
    observed: Cell<u64>,
    observed_rendezvous: Cell<u64>,
    links_lost: Cell<u64>,
    peers_lost: Cell<u64>,
}

/// Adds one to a counter.
fn count(counter: &Cell<u64>) {
    counter.set(counter.get().wrapping_add(1));
}

impl Counts {
    pub(super) fn sends_rendezvous(&self) {
        count(&self.rendezvous_sent);
    }

    pub(super) fn receives_rendezvous(&self) {
        count(&self.rendezvous_received);
    }

    pub(super) fn sends_observed(&self) {
        count(&self.observed);
    }

    pub(super) fn announces_observed(&self) {
        count(&self.observed_rendezvous);
    }

    pub(super) fn queues(&self) {
        count(&self.queued);
    }

    pub(super) fn keeps(&self) {
        count(&self.unexpected);
    }

    pub(super) fn loses_link(&self) {
        count(&self.links_lost);
    }

    pub(super) fn loses_peer(&self) {
        count(&self.peers_lost);
    }

    /// Returns the number of messages that this process has announced by rendezvous.
    pub fn rendezvous_sent(&self) -> u64 {
        self.rendezvous_sent.get()
    }

    /// Returns the number of announced messages that have matched a receive of this process.
    pub fn rendezvous_received(&self) -> u64 {
        self.rendezvous_received.get()
    }

    /// Returns the number of messages that were sent eagerly, without an announcement, while an observer was set.
    pub fn eager_observed(&self) -> u64 {
        let (all, announced) = (self.observed.get(), self.observed_rendezvous.get());
        all.saturating_sub(announced)
    }

    /// Returns the number of messages that had to wait in this process because their transport had no space.
    pub fn queued(&self) -> u64 {
        self.queued.get()
    }

    /// Returns the number of messages that arrived before their receives were posted.
    pub fn unexpected(&self) -> u64 {
        self.unexpected.get()
    }

    /// Returns the number of links that were lost while other links to the peer remained.
    pub fn links_lost(&self) -> u64 {
        self.links_lost.get()
    }

    /// Returns the number of peers that became unreachable.
    pub fn peers_lost(&self) -> u64 {
        self.peers_lost.get()
    }
}
