//! The component `am`: one-sided communication by active messages, over any transport.
//!
//! The origin cuts an access into messages that say which runs of the target's window they are about ([`wire`]);
//! the target carries each out when it comes, in whatever MPI call it is, and for whatever window.
//! Transports keep the order of messages, so what comes behind an access finds it done:
//! a flush is a question and its answer, and a completion needs no more than to be sent last.
//!
//! Nothing that arrives is followed: windows go by their communicator's number, answers by index and generation of what waits for them,
//! memory by offsets that the target checks. What is wrong is answered with a sentence, which the origin reports at its next flush.
//! A message for a window that the target has not made yet waits for it; one for a window that the target does not have any more is refused ([`early`]).
//!
//! Every member of this process's windows is a [`Far`](remote::Far), though few are ever spoken to; a [`Peer`] is a process to which messages go.

mod early;
mod origin;
pub(super) mod remote;
mod serve;
mod wire;

use super::win::{Inner, Win};
use super::{OscClass, OscError};
use crate::Error;
use crate::bml::Route;
use crate::btl::{Am, AmHandler, Btl, Endpoint, Family, Header, Payload, ProcId, SendError, Sink};
use crate::datatype::RecvBuf;
use crate::engine::{Engine, WeakEngine};
use crate::request::{Body, Req, Status};
use early::Early;
use mpi_base::window::Ticket;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::{Rc, Weak};

/// As many bytes may wait for room to one process before the origin of more waits too.
const QUEUED: usize = 4 << 20;
/// As many bytes may be asked for from one member and not have come.
const ASKED: u64 = 8 << 20;

/// A process to which messages go.
struct Peer {
    btl: Rc<dyn Btl>,
    endpoint: Endpoint,
    /// The longest payload.
    max: usize,
    queue: RefCell<VecDeque<Message>>,
    queued: Cell<usize>,
}

struct Message {
    am: Am,
    header: Header,
    payload: Vec<u8>,
}

/// Data that are to come for an access.
struct Fetch {
    win: Weak<Inner>,
    rank: u32,
    proc: ProcId,
    buf: RecvBuf,
    left: u64,
    req: Option<Req>,
}

/// A member elsewhere that waits for our lock.
struct Waiting {
    win: Weak<Inner>,
    index: usize,
    rank: u32,
    ticket: Ticket,
}

/// The answers that are waited for, by index and generation.
#[derive(Default)]
struct Fetches {
    slots: Vec<(u32, Option<Fetch>)>,
    free: Vec<u32>,
}

impl Fetches {
    fn insert(&mut self, fetch: Fetch) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((1, None));
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.1 = Some(fetch);
        u64::from(slot.0) << 32 | u64::from(index)
    }

    fn get(&mut self, token: u64) -> Option<&mut Fetch> {
        let slot = self.slots.get_mut(token as u32 as usize)?;
        (slot.0 == (token >> 32) as u32).then_some(slot.1.as_mut())?
    }

    fn remove(&mut self, token: u64) -> Option<Fetch> {
        self.get(token)?;
        let slot = self.slots.get_mut(token as u32 as usize)?;
        // Generation 0 is never given out, so that token 0 is none.
        slot.0 = slot.0.wrapping_add(1).max(1);
        self.free.push(token as u32);
        slot.1.take()
    }

    fn tokens(&self, matches: impl Fn(&Fetch) -> bool) -> Vec<u64> {
        let all = (0u64..).zip(&self.slots);
        let found = all.filter(|(_, (_, fetch))| fetch.as_ref().is_some_and(&matches));
        found
            .map(|(index, (generation, _))| u64::from(*generation) << 32 | index)
            .collect()
    }
}

/// One process's part in all windows.
pub struct Service {
    engine: WeakEngine,
    windows: RefCell<HashMap<u64, Weak<Inner>>>,
    early: Early,
    peers: RefCell<HashMap<ProcId, Rc<Peer>>>,
    fetches: RefCell<Fetches>,
    waiting: RefCell<Vec<Waiting>>,
    /// Whether turns have been asked for.
    turning: Cell<bool>,
    lost: RefCell<HashMap<ProcId, String>>,
    /// Messages that made no sense.
    protocol_errors: Cell<u64>,
    /// Whether its messages reach it.
    is_registered: Cell<bool>,
}

impl Service {
    /// The service of this process, from its first window on.
    pub fn of(engine: &Engine) -> Rc<Service> {
        let service = engine.extension(|| Service {
            engine: engine.downgrade(),
            windows: RefCell::default(),
            early: Early::default(),
            peers: RefCell::default(),
            fetches: RefCell::default(),
            waiting: RefCell::default(),
            turning: Cell::new(false),
            lost: RefCell::default(),
            protocol_errors: Cell::new(0),
            is_registered: Cell::new(false),
        });
        if !service.is_registered.replace(true) {
            let handlers = engine.pml().bml().handlers();
            handlers.register(Family::Osc, service.clone());
        }
        service
    }

    /// The windows of this process that have not been freed.
    pub fn windows(&self) -> Vec<Win> {
        let windows = self.windows.borrow();
        windows
            .values()
            .filter_map(Weak::upgrade)
            .map(Win)
            .collect()
    }

    fn window(&self, id: u64) -> Option<Win> {
        self.windows.borrow().get(&id)?.upgrade().map(Win)
    }

    pub(super) fn is_lost(&self, proc: ProcId) -> bool {
        self.lost.borrow().contains_key(&proc)
    }

    pub(super) fn why_lost(&self, proc: ProcId) -> String {
        let lost = self.lost.borrow();
        lost.get(&proc)
            .cloned()
            .unwrap_or_else(|| "it has ended".into())
    }

    fn peer(&self, proc: ProcId) -> Result<Rc<Peer>, OscError> {
        if let Some(peer) = self.peers.borrow().get(&proc) {
            return Ok(peer.clone());
        }
        let engine = self.engine.upgrade();
        let route = engine.as_ref().map(|e| e.pml().bml().route(proc));
        match route {
            Some(Route::Via(btl, endpoint)) => {
                let peer = Rc::new(Peer {
                    max: btl.limits().max_send,
                    btl,
                    endpoint,
                    queue: RefCell::default(),
                    queued: Cell::new(0),
                });
                self.peers.borrow_mut().insert(proc, peer.clone());
                Ok(peer)
            }
            Some(Route::None { reasons }) => Err(OscError::new(
                OscClass::Gone,
                format!("no transport reaches job rank {proc}: {reasons}"),
            )),
            None => Err(OscError::new(OscClass::Gone, "MPI has been finalized")),
        }
    }

    /// Sends a message, now or as soon as there is room.
    fn send(&self, proc: ProcId, am: Am, header: Header, payload: Vec<u8>) -> Result<(), OscError> {
        if self.is_lost(proc) {
            // Accesses that wait for an answer have learnt it; what waits for room to a dead process would wait without end.
            return Ok(());
        }
        let peer = self.peer(proc)?;
        if peer.queue.borrow().is_empty() {
            match peer
                .btl
                .send(peer.endpoint, am, header, Payload::Bytes(&payload))
            {
                Ok(()) => return Ok(()),
                Err(SendError::WouldBlock) => {}
                // Accesses that wait for an answer learn that the peer is lost.
                Err(SendError::PeerGone) => {
                    self.lose(proc, "the peer has ended");
                    return Ok(());
                }
                Err(e @ SendError::TooLong { .. }) => {
                    return Err(OscError::new(OscClass::Size, e.to_string()));
                }
            }
        }
        peer.queued.set(peer.queued.get() + payload.len());
        let message = Message {
            am,
            header,
            payload,
        };
        peer.queue.borrow_mut().push_back(message);
        self.ask_for_turns();
        Ok(())
    }

    fn ask_for_turns(&self) {
        if !self.turning.replace(true)
            && let Some(engine) = self.engine.upgrade()
        {
            engine.pml().bml().handlers().ask_for_turns();
        }
    }

    /// Sends what waits for room; whether anything went.
    fn drain(&self) -> bool {
        let peers: Vec<(ProcId, Rc<Peer>)> = {
            let peers = self.peers.borrow();
            let busy = peers.iter().filter(|(_, p)| !p.queue.borrow().is_empty());
            busy.map(|(proc, peer)| (*proc, peer.clone())).collect()
        };
        let mut moved = false;
        for (proc, peer) in peers {
            loop {
                let Some(message) = peer.queue.borrow_mut().pop_front() else {
                    break;
                };
                let payload = Payload::Bytes(&message.payload);
                match peer
                    .btl
                    .send(peer.endpoint, message.am, message.header, payload)
                {
                    Err(SendError::WouldBlock) => {
                        peer.queue.borrow_mut().push_front(message);
                        break;
                    }
                    Err(SendError::PeerGone) => self.lose(proc, "the peer has ended"),
                    Ok(()) | Err(SendError::TooLong { .. }) => {}
                }
                peer.queued.set(peer.queued.get() - message.payload.len());
                moved = true;
            }
        }
        moved
    }

    fn has_queued(&self) -> bool {
        let peers = self.peers.borrow();
        peers.values().any(|peer| !peer.queue.borrow().is_empty())
    }

    /// A fetch has ended, well or not.
    fn finish(&self, token: u64, outcome: Result<(), OscError>) {
        let Some(fetch) = self.fetches.borrow_mut().remove(token) else {
            return;
        };
        let Some(inner) = fetch.win.upgrade() else {
            return;
        };
        let far = inner.remote.of(fetch.rank);
        far.due.set(far.due.get().saturating_sub(fetch.left));
        let requests = inner.engine.pml().requests();
        if let Some(req) = &fetch.req {
            let outcome = outcome.clone().map(|()| Status::EMPTY);
            requests.complete(req, outcome.map_err(Error::from));
        }
        if let (Err(e), None) = (outcome, &fetch.req) {
            far.refused.borrow_mut().get_or_insert(e);
        }
        requests.nudge();
    }

    /// The request will not be asked for any more.
    pub(super) fn detach(&self, req: &Req) {
        {
            let mut fetches = self.fetches.borrow_mut();
            let all = fetches.slots.iter_mut().filter_map(|(_, f)| f.as_mut());
            for fetch in all {
                fetch.req.take_if(|known| Rc::ptr_eq(known, req));
            }
        }
        if let Some(engine) = self.engine.upgrade() {
            engine.pml().requests().release(req);
        }
    }

    /// A peer cannot be reached any more.
    fn lose(&self, proc: ProcId, why: &str) {
        {
            let mut lost = self.lost.borrow_mut();
            lost.entry(proc).or_insert_with(|| why.to_owned());
        }
        let tokens = self.fetches.borrow().tokens(|fetch| fetch.proc == proc);
        for token in tokens {
            let sentence = format!("data from job rank {proc} cannot come any more: {why}");
            self.finish(token, Err(OscError::new(OscClass::Gone, sentence)));
        }
        if let Some(peer) = self.peers.borrow().get(&proc) {
            peer.queue.borrow_mut().clear();
            peer.queued.set(0);
        }
    }

    /// A request for an access that is not over when its call returns.
    fn begin(&self, engine: &Engine) -> Req {
        engine.pml().requests().begin(Body::Idle)
    }
}

impl Sink for Service {
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        self.serve(from, am, header, payload);
    }

    fn lost(&self, peer: ProcId, why: &str) {
        self.lose(peer, why);
    }
}

impl AmHandler for Service {
    fn turn(&self) -> bool {
        let mut moved = self.drain();
        moved |= self.grant_waiting();
        let idle = !self.has_queued() && self.waiting.borrow().is_empty();
        if idle
            && self.turning.replace(false)
            && let Some(engine) = self.engine.upgrade()
        {
            engine.pml().bml().handlers().end_turns();
        }
        moved
    }

    fn pending(&self) -> bool {
        self.waiting.borrow().iter().any(|waiting| {
            let win = waiting.win.upgrade();
            win.is_some_and(|win| win.control.admits(waiting.index, waiting.ticket))
        })
    }
}

impl Win {
    pub(super) fn service(&self) -> Rc<Service> {
        Service::of(&self.0.engine)
    }

    /// Messages for this window are taken from now on, first those that have arrived before it was made.
    pub(super) fn register(&self) {
        let service = self.service();
        let window = Rc::downgrade(&self.0);
        service.windows.borrow_mut().insert(self.id(), window);
        for message in service.early.take(self.id()) {
            service.serve(message.from, message.am, message.header, &message.payload);
        }
    }

    /// No more are.
    pub(super) fn unregister(&self) {
        let service = self.service();
        service.windows.borrow_mut().remove(&self.id());
        service.has_gone(self.id());
    }
}
