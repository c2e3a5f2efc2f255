//! BML, the BTL management layer: selects the transport to each peer.
//!
//! A peer is looked up when it is first needed, so in a job of thousands of ranks only the used connections have a cost.
//! Each peer is reached by the transport with the highest exclusivity that can reach it.
//! If this transport is a network, all networks that reach the peer are bonded (`multirail`): they share long messages, and if one network fails the others carry its messages.
//!
//! If a poll of a transport is a system call
//! ([`Info::poll_is_syscall`](crate::btl::Info::poll_is_syscall)),
//! it is polled in every progress call only
//! while the other transports are idle, otherwise more rarely (`poll_throttle`).
//! So a rank that communicates through shared memory loses no time to polls of its TCP connections.

mod multirail;
mod poll_throttle;
#[cfg(test)]
mod tests;

use crate::btl::{
    Btl, Connections, Dispatch, Endpoint, ProcId, Reach, Registry, Sink, Traffic, Transport,
};
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use mpi_base::param::{Level, Param};
use multirail::{Multirail, Reached};
use poll_throttle::PollThrottle;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;

/// If true, networks of different kinds are bonded.
pub static SHARE: Param<bool> = Param::new(
    "bml",
    "",
    "share",
    "true",
    Level::USER,
    "Whether all networks that reach a process share its messages, so that the loss of one is survived; false: only networks of one kind, see btl_tcp_links",
);

/// A transport of this process.
struct Carrier {
    btl: Rc<dyn Btl>,
    /// True if the BML polls this transport:
    /// from the start if the transport listens for connections, otherwise from the first peer that uses it.
    polled: Cell<bool>,
    /// The transport's index among the links of the network bond; `None` if it is not a network.
    link: Option<usize>,
}

/// The transports of one process.
pub struct Bml {
    me: ProcId,
    carriers: Vec<Carrier>,
    /// The bond, if this process has several networks.
    /// `mixes` is true if the bond combines networks of different kinds.
    networks: Option<Rc<Multirail<Rc<dyn Btl>>>>,
    mixes: bool,
    /// Number of transports at the front of `carriers` whose poll is not a system call.
    cheap: usize,
    throttle: PollThrottle,
    /// The number of ranks in the job. Process numbers from this value on belong to other jobs.
    job_size: u32,
    /// Transports to processes of other jobs, added while the job runs.
    /// `has_joined` is true if at least one was added.
    joined: RefCell<Vec<Rc<dyn Btl>>>,
    has_joined: Cell<bool>,
    /// The handlers of active messages that are not point-to-point messages.
    handlers: Registry,
    /// The selected transports that this process could not open, for [`Route::None`].
    unopened: OnceCell<Vec<Rejection>>,
}

/// The result of a route lookup for one peer.
pub enum Route {
    Via(Rc<dyn Btl>, Endpoint),
    /// No transport reaches the peer; `reasons` contains the reason of each transport.
    None {
        reasons: String,
    },
}

/// A transport that does not reach a peer, and the reason.
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
    /// Creates the BML. Sorts the transports by exclusivity, highest first, for lookup and polling. If `mixes` is true, networks of different kinds are bonded.
    pub fn new(me: ProcId, size: u32, mut all: Vec<Transport>, mixes: bool) -> Bml {
        all.sort_by_key(|btl| std::cmp::Reverse(btl.info().exclusivity));
        let btls = all.into_iter().map(|btl| Rc::from(btl as Box<dyn Btl>));
        let btls: Vec<Rc<dyn Btl>> = btls.collect();
        let networks = btls.iter().filter(|btl| btl.info().is_network).cloned();
        let networks: Vec<_> = networks.collect();
        let is_bonded = networks.len() > 1;
        let mut links = 0..;
        let carriers = btls.into_iter().map(|btl| Carrier {
            polled: Cell::new(btl.info().listens),
            link: match is_bonded && btl.info().is_network {
                true => links.next(),
                false => None,
            },
            btl,
        });
        let carriers: Vec<Carrier> = carriers.collect();
        let is_cheap = |carrier: &&Carrier| !carrier.btl.info().poll_is_syscall;
        Bml {
            me,
            cheap: carriers.iter().take_while(is_cheap).count(),
            carriers,
            networks: is_bonded.then(|| Rc::new(Multirail::new(me, size, networks))),
            mixes,
            throttle: PollThrottle::default(),
            job_size: size,
            joined: RefCell::default(),
            has_joined: Cell::new(false),
            handlers: Registry::default(),
            unopened: OnceCell::new(),
        }
    }

    /// Stores the selected transports that this process could not open, and the reasons.
    pub fn set_unopened(&self, unopened: Vec<(&'static str, String)>) {
        let unopened = unopened.into_iter();
        let unopened = unopened.map(|(btl, reason)| Rejection { btl, reason });
        // A second call changes nothing: the transports are opened once.
        let _ = self.unopened.set(unopened.collect());
    }

    /// Returns the process number of this process.
    pub fn me(&self) -> ProcId {
        self.me
    }

    /// Returns the transports of this process, in the order of lookup.
    pub fn btls(&self) -> impl Iterator<Item = &Rc<dyn Btl>> {
        self.carriers.iter().map(|carrier| &carrier.btl)
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

    /// Returns the transport with the highest exclusivity that reaches the peer.
    /// Transports of lower exclusivity are not queried, because a query can need a round trip to the launcher.
    pub fn route(&self, peer: ProcId) -> Route {
        if peer >= self.job_size {
            return self.route_abroad(peer);
        }
        let mut rejections = Vec::new();
        match self.ask(peer, &mut rejections) {
            Some((btl, endpoint)) => Route::Via(btl, endpoint),
            None => {
                let unopened = self.unopened.get().into_iter().flatten();
                let reasons: Vec<String> = rejections
                    .iter()
                    .chain(unopened)
                    .map(Rejection::to_string)
                    .collect();
                Route::None {
                    reasons: reasons.join("; "),
                }
            }
        }
    }

    /// Returns the names of the transports that reach a peer, for explanations to the user,
    /// and the reasons why the transports queried earlier do not reach it.
    /// The order of the queries is that of [`Bml::route`].
    pub fn survey(&self, peer: ProcId) -> (Option<String>, Vec<Rejection>) {
        let mut rejections = Vec::new();
        let found = self.ask(peer, &mut rejections);
        let name = found.map(|(btl, _)| match &self.networks {
            Some(bond) if btl.info().is_network => bond.names(peer),
            _ => btl.info().name.to_owned(),
        });
        (name, rejections)
    }

    /// Queries the transports in order until one reaches the peer. All networks are queried together, as one bond.
    fn ask(
        &self,
        peer: ProcId,
        rejections: &mut Vec<Rejection>,
    ) -> Option<(Rc<dyn Btl>, Endpoint)> {
        for carrier in self.carriers.iter() {
            // The networks are last, because no other transport has a lower exclusivity. So all of them are queried here.
            if carrier.link.is_some() {
                return self.ask_networks(peer, rejections);
            }
            match carrier.btl.reach(peer) {
                Reach::Yes(endpoint) => {
                    carrier.polled.set(true);
                    return Some((carrier.btl.clone(), endpoint));
                }
                Reach::No(reason) => rejections.push(Rejection {
                    btl: carrier.btl.info().name,
                    reason,
                }),
            }
        }
        None
    }

    fn ask_networks(
        &self,
        peer: ProcId,
        rejections: &mut Vec<Rejection>,
    ) -> Option<(Rc<dyn Btl>, Endpoint)> {
        let bond = self.networks.as_ref()?;
        let (reached, rejected) = bond.route(peer, self.mixes);
        rejections.extend(rejected);
        match reached {
            Reached::Bonded(endpoint) => Some((bond.clone(), endpoint)),
            Reached::Alone(link, endpoint) => {
                let mut all = self.carriers.iter();
                let alone = all.find(|carrier| carrier.link == Some(link))?;
                Some((alone.btl.clone(), endpoint))
            }
            Reached::No => None,
        }
    }

    /// Returns the handlers of active messages that are not point-to-point messages.
    pub fn handlers(&self) -> &Registry {
        &self.handlers
    }

    /// Delivers the messages that have arrived on all transports: point-to-point messages to `first`, all others to their handlers.
    /// Returns the number of delivered messages.
    #[inline]
    pub fn progress<F: Sink>(&self, first: &F) -> usize {
        let others = &self.handlers;
        let delivered = self.poll(&Dispatch { first, others });
        delivered + usize::from(others.take_turns())
    }

    /// Returns true if [`Bml::progress`] would do nothing now. A polled transport whose poll is a system call is never idle.
    #[inline]
    pub fn is_idle(&self) -> bool {
        let has_work = |carrier: &Carrier| carrier.polled.get() && carrier.btl.has_work();
        !self.has_joined.get()
            && !self.handlers.wants_turns()
            && !self.carriers.iter().any(has_work)
    }

    #[inline]
    fn poll(&self, sink: &dyn Sink) -> usize {
        let mut by_memory = self.look(0..self.cheap, sink);
        let abroad = self.has_joined.get();
        if abroad {
            by_memory += self.look_abroad(false, sink);
        }
        let no_wire = self.cheap == self.carriers.len() && !abroad;
        if no_wire || !self.throttle.is_due(by_memory) {
            return by_memory;
        }
        let mut by_wire = self.look(self.cheap..self.carriers.len(), sink);
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
        for carrier in &self.carriers[which] {
            if carrier.polled.get() {
                delivered += match (carrier.link, &self.networks) {
                    (Some(link), Some(bond)) => bond.poll(link, sink),
                    _ => carrier.btl.progress(sink),
                };
            }
        }
        delivered
    }

    /// Polls the transports to other jobs: those whose poll is a system call if `by_wire` is true, otherwise the others.
    fn look_abroad(&self, by_wire: bool, sink: &dyn Sink) -> usize {
        let joined = self.joined.borrow();
        let such = joined
            .iter()
            .filter(|btl| btl.info().poll_is_syscall == by_wire);
        such.map(|btl| btl.progress(sink)).sum()
    }

    /// Makes the next [`Bml::progress`] poll every transport, for callers that poll only one time.
    #[inline]
    pub fn attend(&self) {
        self.throttle.attend();
    }

    /// Calls `look` with the file descriptors that become readable when a transport without a doorbell has data,
    /// and with the inboxes of other jobs' transports, whose doorbells peers ring in addition to the process's own.
    pub fn with_descriptors<R>(
        &self,
        look: impl FnOnce(&[BorrowedFd<'_>], &[Held<Inbox>]) -> R,
    ) -> R {
        let joined = self.joined.borrow().clone();
        let (mut all, mut doorbells) = (Vec::new(), Vec::new());
        for btl in self.btls().chain(&joined) {
            if let Some(wakeup) = btl.capabilities().wakeup {
                wakeup.descriptors(&mut all);
                wakeup.doorbells(&mut doorbells);
            }
        }
        look(&all, &doorbells)
    }

    /// Returns the maximum time to sleep, so that messages are not delayed for longer,
    /// if the descriptors of some transport do not always signal a message; otherwise `None`.
    pub fn longest_sleep(&self) -> Option<Duration> {
        let each = self.btls().filter_map(|btl| btl.capabilities().wakeup);
        each.filter_map(|wakeup| wakeup.longest_sleep()).min()
    }

    /// Returns the messages in flight between ranks of this job.
    /// Messages of other jobs are not included: while this process knows a process of another job
    /// ([`crate::universe::Universe::foreign`]), it cannot exclude that such a message is in flight.
    pub fn traffic(&self) -> Traffic {
        let all = self.btls().map(|btl| btl.capabilities().traffic);
        all.fold(Traffic::InMemory, Traffic::and)
    }

    /// Calls `what` for the connections of each transport; those to other jobs are last.
    fn each(&self, what: impl Fn(&dyn Connections)) {
        let joined = self.joined.borrow().clone();
        let all = self.btls().chain(&joined);
        all.filter_map(|btl| btl.capabilities().connections)
            .for_each(what);
    }

    /// Waits until every transport has passed on all messages that it accepted.
    pub fn flush(&self) {
        self.each(|all| all.flush());
    }

    /// Abandons a process that has ended: no transport waits for it in [`Bml::flush`] and [`Bml::leave`].
    pub fn abandon(&self, peer: ProcId) {
        self.each(|all| all.abandon(peer));
    }

    /// Shuts down every transport.
    pub fn leave(&self) {
        self.each(|all| all.shutdown());
    }

    /// Returns true if any transport has a message to deliver, so the process must not sleep.
    pub fn pending(&self) -> bool {
        let mut pending = self
            .networks
            .as_ref()
            .is_some_and(|bond| bond.before_sleep());
        pending |= self.btls().any(|btl| btl.pending());
        if self.has_joined.get() {
            pending |= self.joined.borrow().iter().any(|btl| btl.pending());
        }
        if pending {
            // The next poll must include every transport,
            // because any transport may have the message.
            self.attend();
        }
        pending || self.handlers.pending()
    }
}
