//! BML, the BTL management layer: selects the transport to each peer.
//!
//! A peer is looked up when it is first needed, so a job of thousands of ranks pays only for the peers it communicates with.
//! The transport of the highest exclusivity that reaches the peer is used;
//! several transports of the same exclusivity are bonded (`multirail`).
//!
//! A transport whose poll is a system call ([`Info::poll_is_syscall`](crate::btl::Info::poll_is_syscall)) is polled on each call only while the other transports are idle,
//! so a rank that communicates through shared memory does not pay for its TCP connections (`poll_throttle`).

mod multirail;
mod poll_throttle;
#[cfg(test)]
mod tests;

use crate::btl::{
    Btl, Connections, Dispatch, Endpoint, ProcId, Reach, Registry, Sink, Traffic, Transport,
};
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use multirail::Multirail;
use poll_throttle::PollThrottle;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;

/// The transports of one process.
pub struct Bml {
    me: ProcId,
    btls: Vec<Rc<dyn Btl>>,
    /// Whether each transport is polled: from the start if it listens, else from its first route on.
    polled: Vec<Cell<bool>>,
    /// Number of transports at the front whose poll is no system call.
    cheap: usize,
    throttle: PollThrottle,
    /// Ranks of the job are below this number, processes of other jobs at or above it.
    job_size: u32,
    /// Transports to processes of other jobs, added while the job runs, and whether any exist.
    joined: RefCell<Vec<Rc<dyn Btl>>>,
    has_joined: Cell<bool>,
    /// The handlers of active messages that are not point-to-point messages.
    handlers: Registry,
}

/// The result of a route lookup.
pub enum Route {
    Via(Rc<dyn Btl>, Endpoint),
    /// No transport reaches the peer; the reason of each transport.
    None {
        reasons: String,
    },
}

/// A transport that does not reach a peer, with its reason.
pub struct Rejection {
    pub btl: &'static str,
    pub reason: String,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.btl, self.reason)
    }
}

impl Bml {
    /// Sorts the transports by exclusivity, highest first; this is the order of lookup and polling.
    pub fn new(me: ProcId, size: u32, mut all: Vec<Transport>) -> Bml {
        all.sort_by_key(|btl| std::cmp::Reverse(btl.info().exclusivity));
        let mut btls: Vec<Rc<dyn Btl>> = Vec::new();
        while let Some(first) = all.first() {
            let exclusivity = first.info().exclusivity;
            let alike = all
                .iter()
                .take_while(|b| b.info().exclusivity == exclusivity);
            let mut links: Vec<Transport> = all.drain(..alike.count()).collect();
            btls.push(match (links.len(), links.pop()) {
                (1, Some(alone)) => Rc::from(alone as Box<dyn Btl>),
                (_, last) => {
                    links.extend(last);
                    Rc::new(Multirail::new(me, size, links))
                }
            });
        }
        let polled = btls
            .iter()
            .map(|btl| Cell::new(btl.info().listens))
            .collect();
        Bml {
            me,
            cheap: btls
                .iter()
                .take_while(|btl| !btl.info().poll_is_syscall)
                .count(),
            btls,
            polled,
            throttle: PollThrottle::default(),
            job_size: size,
            joined: RefCell::default(),
            has_joined: Cell::new(false),
            handlers: Registry::default(),
        }
    }

    /// This process.
    pub fn me(&self) -> ProcId {
        self.me
    }

    /// The transports of this process, in the order in which the user or the default names them.
    pub fn btls(&self) -> &[Rc<dyn Btl>] {
        &self.btls
    }

    /// Adds a transport to processes of other jobs.
    pub fn join(&self, transport: Transport) {
        self.joined
            .borrow_mut()
            .push(Rc::from(transport as Box<dyn Btl>));
        self.has_joined.set(true);
    }

    /// Disconnects from a process of another job.
    pub fn disconnect(&self, peer: ProcId) {
        self.joined
            .borrow()
            .iter()
            .for_each(|btl| btl.capabilities().disconnect(peer));
    }

    fn route_abroad(&self, peer: ProcId) -> Route {
        let mut reasons = Vec::new();
        for btl in &*self.joined.borrow() {
            match btl.reach(peer) {
                Reach::Yes(endpoint) => return Route::Via(btl.clone(), endpoint),
                Reach::No(reason) => {
                    let btl = btl.info().name;
                    reasons.push(Rejection { btl, reason }.to_string());
                }
            }
        }
        if reasons.is_empty() {
            reasons.push(format!("the job has {} ranks", self.job_size));
        }
        Route::None {
            reasons: reasons.join("; "),
        }
    }

    /// Returns the best transport to a peer. A transport of lower exclusivity is not queried, since its answer may take a round trip to the launcher.
    pub fn route(&self, peer: ProcId) -> Route {
        if peer >= self.job_size {
            return self.route_abroad(peer);
        }
        let mut rejections = Vec::new();
        match self.ask(peer, &mut rejections) {
            Some((index, endpoint)) => {
                self.polled[index].set(true);
                Route::Via(self.btls[index].clone(), endpoint)
            }
            None => {
                let reasons: Vec<String> = rejections.iter().map(Rejection::to_string).collect();
                Route::None {
                    reasons: reasons.join("; "),
                }
            }
        }
    }

    /// Returns the transport that reaches a peer, and why those queried before it do not. Queries in the order of [`Bml::route`]; used for explanations.
    pub fn survey(&self, peer: ProcId) -> (Option<Rc<dyn Btl>>, Vec<Rejection>) {
        let mut rejections = Vec::new();
        let found = self.ask(peer, &mut rejections);
        (found.map(|(index, _)| self.btls[index].clone()), rejections)
    }

    /// Queries the transports in order until one reaches the peer.
    fn ask(&self, peer: ProcId, rejections: &mut Vec<Rejection>) -> Option<(usize, Endpoint)> {
        for (index, btl) in self.btls.iter().enumerate() {
            match btl.reach(peer) {
                Reach::Yes(endpoint) => return Some((index, endpoint)),
                Reach::No(reason) => rejections.push(Rejection {
                    btl: btl.info().name,
                    reason,
                }),
            }
        }
        None
    }

    /// The handlers of active messages that are not point-to-point messages.
    pub fn handlers(&self) -> &Registry {
        &self.handlers
    }

    /// Delivers what has arrived on any transport, point-to-point messages to `first` and all others to their handlers;
    /// returns the number of messages.
    #[inline]
    pub fn progress<F: Sink>(&self, first: &F) -> usize {
        let others = &self.handlers;
        let delivered = self.poll(&Dispatch { first, others });
        delivered + usize::from(others.take_turns())
    }

    #[inline]
    fn poll(&self, sink: &dyn Sink) -> usize {
        let mut by_memory = self.look(0..self.cheap, sink);
        let abroad = self.has_joined.get();
        if abroad {
            by_memory += self.look_abroad(false, sink);
        }
        let no_wire = self.cheap == self.btls.len() && !abroad;
        if no_wire || !self.throttle.is_due(by_memory) {
            return by_memory;
        }
        let mut by_wire = self.look(self.cheap..self.btls.len(), sink);
        if abroad {
            by_wire += self.look_abroad(true, sink);
        }
        if by_wire > 0 {
            self.throttle.attend();
        }
        by_memory + by_wire
    }

    #[inline]
    fn look(&self, which: Range<usize>, sink: &dyn Sink) -> usize {
        let mut delivered = 0;
        for index in which {
            if self.polled[index].get() {
                delivered += self.btls[index].progress(sink);
            }
        }
        delivered
    }

    /// Polls the transports to other jobs whose poll is a system call (`by_wire`), or the others.
    fn look_abroad(&self, by_wire: bool, sink: &dyn Sink) -> usize {
        let joined = self.joined.borrow();
        let such = joined
            .iter()
            .filter(|btl| btl.info().poll_is_syscall == by_wire);
        such.map(|btl| btl.progress(sink)).sum()
    }

    /// Makes the next [`Bml::progress`] poll every transport, for callers that poll only once.
    #[inline]
    pub fn attend(&self) {
        self.throttle.attend();
    }

    /// Calls `look` with the descriptors that become readable when a transport without a doorbell has data,
    /// and with the inboxes, besides the process's own, whose doorbells peers ring.
    pub fn with_descriptors<R>(
        &self,
        look: impl FnOnce(&[BorrowedFd<'_>], &[Held<Inbox>]) -> R,
    ) -> R {
        let joined = self.joined.borrow().clone();
        let (mut all, mut doorbells) = (Vec::new(), Vec::new());
        for btl in self.btls.iter().chain(&joined) {
            if let Some(wakeup) = btl.capabilities().wakeup {
                wakeup.descriptors(&mut all);
                wakeup.doorbells(&mut doorbells);
            }
        }
        look(&all, &doorbells)
    }

    /// Returns the longest sleep that loses no time, if the descriptors of some transport may miss a message.
    pub fn longest_sleep(&self) -> Option<Duration> {
        let each = self.btls.iter().filter_map(|btl| btl.capabilities().wakeup);
        each.filter_map(|wakeup| wakeup.longest_sleep()).min()
    }

    /// Returns the messages in flight on all transports of this job; those to other jobs are not counted.
    pub fn traffic(&self) -> Traffic {
        if self.has_joined.get() {
            return Traffic::Uncounted;
        }
        let all = self.btls.iter().map(|btl| btl.capabilities().traffic);
        all.fold(Traffic::InMemory, Traffic::and)
    }

    /// Calls `what` for all transports with connections, those to other jobs last.
    fn each(&self, what: impl Fn(&dyn Connections)) {
        let joined = self.joined.borrow().clone();
        let all = self.btls.iter().chain(&joined);
        all.filter_map(|btl| btl.capabilities().connections)
            .for_each(what);
    }

    /// Waits until every transport has handed over what it accepted for sending.
    pub fn flush(&self) {
        self.each(|all| all.flush());
    }

    /// Shuts down every transport.
    pub fn leave(&self) {
        self.each(|all| all.shutdown());
    }

    /// Returns true if any transport has a message to deliver.
    pub fn pending(&self) -> bool {
        let mut pending = self.btls.iter().any(|btl| btl.pending());
        if self.has_joined.get() {
            pending |= self.joined.borrow().iter().any(|btl| btl.pending());
        }
        if pending {
            // The next poll must cover every transport, since any of them may have reported it.
            self.attend();
        }
        pending || self.handlers.pending()
    }
}
