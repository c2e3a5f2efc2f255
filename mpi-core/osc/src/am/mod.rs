//! The component `am`: one-sided communication by active messages, over any transport.
//!
//! The origin splits an access into messages, each with a list of runs (contiguous byte ranges)
//! of the target's window ([`wire`]).
//! The target serves each message on arrival, inside any MPI call and for any of its windows.
//! Transports deliver in order, so all earlier accesses of the origin are complete
//! when the target serves a message. Hence a flush is one request and one reply,
//! and the notification of `MPI_Win_complete` is the origin's last message of an epoch.
//!
//! Received values are not trusted. The context id of a message selects the window.
//! The token of a reply has the index and generation of a fetch. The target checks all offsets.
//! An invalid access is refused with an error text; the origin reports it at its next flush.
//! A message for a window that the target has not created yet is queued;
//! a message for a freed window is refused ([`early`]).
//!
//! A [`RemoteMember`](crate::state::remote_members::RemoteMember) exists for each window member,
//! a [`Peer`] only for each process that gets messages.

pub(crate) mod active;
mod early;
mod origin;
mod serve;
pub(crate) mod wire;

use super::win::{WeakWin, Win};
use crate::Error;
use crate::bml::Route;
use crate::btl::{Am, AmHandler, Btl, Endpoint, Family, Header, Payload, ProcId, SendError, Sink};
use crate::datatype::RecvBuf;
use crate::engine::{Engine, WeakEngine};
use crate::error::{OscClass, OscError};
use crate::request::{Body, Req, Status};
use crate::state::target::Target;
use active::{Active, AllActive};
use early::Early;
use mpi_base::window::Ticket;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// Flow control of sends: an access waits while more bytes than this are queued for its target.
const QUEUED: usize = 4 << 20;
/// Flow control of gets: an access waits while its target owes more requested bytes than this.
const ASKED: u64 = 8 << 20;

/// The connection to a process that gets messages.
pub(crate) struct Peer {
    btl: Rc<dyn Btl>,
    endpoint: Endpoint,
    /// The maximum payload of a message in bytes.
    max: usize,
    queue: RefCell<VecDeque<Message>>,
    queued: Cell<usize>,
}

impl Peer {
    pub fn btl(&self) -> &Rc<dyn Btl> {
        &self.btl
    }

    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }
}

struct Message {
    am: Am,
    header: Header,
    payload: Vec<u8>,
}

/// An access whose result has not arrived completely: the buffer, and the number of missing bytes.
struct Fetch {
    win: WeakWin,
    rank: u32,
    proc: ProcId,
    buf: RecvBuf,
    left: u64,
    req: Option<Req>,
}

/// A queued lock request of a member on another node, for this process's memory.
struct Waiting {
    win: WeakWin,
    index: usize,
    rank: u32,
    ticket: Ticket,
}

/// The fetches that have not ended, by index and generation.
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
        // Generation 0 is never assigned, so token 0 can mean "no reply requested".
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

/// The active-message service of this process, for all of its windows.
pub struct Service {
    engine: WeakEngine,
    windows: RefCell<HashMap<u64, WeakWin>>,
    early: Early,
    peers: RefCell<HashMap<ProcId, Rc<Peer>>>,
    fetches: RefCell<Fetches>,
    active: AllActive,
    waiting: RefCell<Vec<Waiting>>,
    /// True while the progress engine calls `turn` of this service in every poll.
    turning: Cell<bool>,
    lost: RefCell<HashMap<ProcId, String>>,
    /// The number of malformed messages received.
    protocol_errors: Cell<u64>,
    /// True after this service has been registered as the handler of OSC messages.
    is_registered: Cell<bool>,
}

impl Service {
    /// Returns the active-message service of this process. The first call creates it.
    pub fn of(engine: &Engine) -> Rc<Service> {
        let service = engine.extension(|| Service {
            engine: engine.downgrade(),
            windows: RefCell::default(),
            early: Early::default(),
            peers: RefCell::default(),
            fetches: RefCell::default(),
            active: AllActive::default(),
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

    /// Returns the windows of this process that have not been freed.
    pub fn windows(&self) -> Vec<Win> {
        let windows = self.windows.borrow();
        windows.values().filter_map(WeakWin::upgrade).collect()
    }

    fn window(&self, id: u64) -> Option<Win> {
        self.windows.borrow().get(&id)?.upgrade()
    }

    pub(crate) fn is_lost(&self, proc: ProcId) -> bool {
        self.lost.borrow().contains_key(&proc)
    }

    pub(crate) fn why_lost(&self, proc: ProcId) -> String {
        let lost = self.lost.borrow();
        lost.get(&proc)
            .cloned()
            .unwrap_or_else(|| "it has ended".into())
    }

    pub(crate) fn peer(&self, proc: ProcId) -> Result<Rc<Peer>, OscError> {
        if let Some(peer) = self.peers.borrow().get(&proc) {
            return Ok(peer.clone());
        }
        let engine = self.engine.upgrade();
        let route = engine.as_ref().map(|e| e.pml().bml().route(proc));
        match route {
            Some(Route::Via(btl, endpoint)) => {
                let peer = Rc::new(Peer {
                    max: btl.info().limits.max_send,
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

    /// Sends a message now, or queues it until the transport has space.
    fn send(&self, proc: ProcId, am: Am, header: Header, payload: Vec<u8>) -> Result<(), OscError> {
        if self.is_lost(proc) {
            // `lose` has failed the accesses that wait for a reply.
            // A message queued for a dead process would never leave the queue.
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
                // `lose` fails all accesses that wait for a reply of this peer.
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

    /// Sends queued messages. Returns true if it has sent at least one.
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

    /// Completes a fetch with success or an error.
    pub(crate) fn finish(&self, token: u64, outcome: Result<(), OscError>) {
        let Some(fetch) = self.fetches.borrow_mut().remove(token) else {
            return;
        };
        let Some(win) = fetch.win.upgrade() else {
            return;
        };
        let remote = win.state().remote().of(fetch.rank);
        remote.due.set(remote.due.get().saturating_sub(fetch.left));
        let requests = win.engine().pml().requests();
        if let Some(req) = &fetch.req {
            let outcome = outcome.clone().map(|()| Status::EMPTY);
            requests.complete(req, outcome.map_err(Error::from));
        }
        if let (Err(e), None) = (outcome, &fetch.req) {
            remote.refused.borrow_mut().get_or_insert(e);
        }
        requests.nudge();
    }

    /// Releases a request that no call will wait for. The access itself continues.
    pub(crate) fn detach(&self, req: &Req) {
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

    /// Records that a peer is unreachable and fails the accesses that wait for its replies.
    pub(crate) fn lose(&self, proc: ProcId, why: &str) {
        {
            let mut lost = self.lost.borrow_mut();
            lost.entry(proc).or_insert_with(|| why.to_owned());
        }
        let mut tokens = self.fetches.borrow().tokens(|fetch| fetch.proc == proc);
        // Fetches by the network stay active: the network may still write to their buffers.
        tokens.retain(|token| !self.active.has_token(*token));
        for token in tokens {
            let sentence = format!("data from job rank {proc} cannot come any more: {why}");
            self.finish(token, Err(OscError::new(OscClass::Gone, sentence)));
        }
        if let Some(peer) = self.peers.borrow().get(&proc) {
            peer.queue.borrow_mut().clear();
            peer.queued.set(0);
        }
    }

    /// Returns the network accesses that have not ended.
    pub(crate) fn active(&self) -> &AllActive {
        &self.active
    }

    /// Adds a network access. Each call of `turn` tests whether the access has ended.
    pub(crate) fn add_active(&self, active: Active) {
        self.active.add(active);
        self.ask_for_turns();
    }

    /// Registers a get by the network. Returns its token and request.
    pub(crate) fn expect_from_network(
        &self,
        win: &Win,
        target: &Target,
        buf: &RecvBuf,
    ) -> (u64, Req) {
        let req = self.begin(win.engine());
        let fetch = Fetch {
            win: win.downgrade(),
            rank: target.rank,
            proc: target.proc,
            buf: buf.clone(),
            // The target sends no reply to a network access.
            left: 0,
            req: Some(req.clone()),
        };
        let token = self.fetches.borrow_mut().insert(fetch);
        (token, req)
    }

    /// Creates the request of an access that is incomplete when its call returns.
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
        if !self.active.is_empty() {
            moved |= self.end_by_network();
        }
        let idle = !self.has_queued() && self.active.is_empty() && self.waiting.borrow().is_empty();
        if idle
            && self.turning.replace(false)
            && let Some(engine) = self.engine.upgrade()
        {
            engine.pml().bml().handlers().end_turns();
        }
        moved
    }

    fn pending(&self) -> bool {
        let is_granted = self.waiting.borrow().iter().any(|waiting| {
            let win = waiting.win.upgrade();
            win.is_some_and(|win| win.state().control().admits(waiting.index, waiting.ticket))
        });
        // No event reports the end of an access to a lost peer, so the process must keep polling.
        is_granted || self.active.has_to(|proc| self.is_lost(proc))
    }
}

impl Win {
    pub(crate) fn service(&self) -> Rc<Service> {
        Service::of(self.engine())
    }
}

impl Service {
    /// Starts to serve messages for a window, first the messages queued before its creation.
    pub(crate) fn register(&self, win: &Win) {
        self.windows.borrow_mut().insert(win.id(), win.downgrade());
        for message in self.early.take(win.id()) {
            self.serve(message.from, message.am, message.header, &message.payload);
        }
    }

    /// Stops serving messages for a window. Later accesses to it are refused.
    pub(crate) fn unregister(&self, win: &Win) {
        self.windows.borrow_mut().remove(&win.id());
        self.forget_window(win.id());
    }
}
