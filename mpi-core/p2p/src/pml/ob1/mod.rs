//! ob1: eager and rendezvous protocols over any BTL, matching in the receiver.
//!
//! Protocol, by the size of the message:
//! * up to the BTL's eager limit the data travel with the match header ([`wire::EAGER`]) and the send is complete when the BTL has taken them;
//! * longer or synchronous messages send a [`wire::RNDV`] and wait.
//!   When the receive is there, the receiver fetches the data in one copy and says [`wire::FIN`],
//!   or, where that is impossible or slower ([`protocol_choice`]), says [`wire::CTS`] and gets [`wire::FRAG`]s, which both sides work on at once.
//! * data of middling length follow their announcement unasked to peers where that is faster ([`eager_pipeline`]).
//! * what goes in fragments or pieces to one peer takes turns ([`fragment_stream`]);
//! * of a large message's one copy the sender is asked to do a part ([`wire::ASSIST`]), and says when it has ([`wire::ASSIST_DONE`]);
//!   if it is not there, the receiver has done all of it by itself;
//! * a receiver that holds too many short messages that no receive has asked for has them ask first ([`flow_control`]).
//!
//! Order: a BTL keeps the order of what it took, and what it did not take waits in the peer's queue, so matching sees messages in the order they were sent.
//!
//! Nothing here calls the user, and no interior borrow is held while a BTL or the request table is called.

mod buffer_pool;
mod cancel_send;
mod config;
mod direct_receive;
mod eager_pipeline;
mod fast_path;
mod flow_control;
mod fragment_stream;
mod interrupt;
pub mod matching;
mod peer;
mod peer_failure;
mod probe;
mod protocol_choice;
mod recv;
mod send;
mod sender_copies;
mod single_copy;
pub mod wire;

#[cfg(feature = "testing")]
pub mod testing;

pub use config::{Config, PARAMS};
pub use probe::Message;
pub use recv::RecvBody;
pub use send::{SendBody, Sent};

use super::{Context, PmlError};
use crate::bml::{Bml, Route};
use crate::btl::{Header, Limits, Payload, ProcId, SendError, Sink};
use crate::group::Group;
use crate::observer::Observer;
use crate::request::{ANY_SOURCE, Body, ReqId, Table};
use matching::{Key, Posted, Unexpected, WordMap};
use mpi_base::state::{About, NO_PEER, Waits};
use peer::{Peer, PeerRef, Queued};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

/// One context's receives and messages that have not met.
pub struct Matching {
    context: Context,
    /// The processes that ranks name, once a communicator has said so.
    peers: RefCell<Option<Group>>,
    posted: RefCell<Posted<ReqId>>,
    unexpected: RefCell<Unexpected<Arrived>>,
}

/// A message that came before its receive.
pub(crate) struct Arrived {
    from: ProcId,
    content: Content,
}

pub(crate) enum Content {
    Eager(Vec<u8>),
    Rendezvous(wire::Rendezvous),
    Followed(Rc<eager_pipeline::Kept>),
}

impl Content {
    fn bytes(&self) -> u64 {
        match self {
            Content::Eager(data) => data.len() as u64,
            Content::Rendezvous(r) => r.bytes,
            Content::Followed(kept) => kept.bytes,
        }
    }
}

impl Content {
    /// Whether its data are kept here, unasked.
    fn is_charged(&self) -> bool {
        matches!(self, Content::Eager(_) | Content::Followed(_))
    }
}

impl Matching {
    fn new(context: Context) -> Matching {
        Matching {
            context,
            peers: RefCell::default(),
            posted: RefCell::default(),
            unexpected: RefCell::default(),
        }
    }

    /// The communicator and plane whose receives and messages meet here.
    pub fn context(&self) -> Context {
        self.context
    }

    /// What the state page tells of a process that waits here for a message of this key.
    pub fn about(&self, key: Key, bytes: u64) -> About {
        let peers = self.peers.borrow();
        let proc = match key.source() {
            ANY_SOURCE => None,
            source => peers.as_ref().and_then(|peers| peers.proc(source as u32)),
        };
        About {
            waits: Waits::Recv,
            comm: self.context.number(),
            peer: match key.source() {
                ANY_SOURCE => NO_PEER,
                source => source,
            },
            proc: proc.map_or(NO_PEER, |proc| proc as i32),
            tag: key.tag(),
            bytes,
            requests: 1,
        }
    }
}

/// Point-to-point messaging of one process.
pub struct Ob1 {
    config: Config,
    bml: Bml,
    requests: Table,
    peers: Vec<OnceCell<Rc<Peer>>>,
    /// Peers of other jobs.
    foreign: RefCell<HashMap<ProcId, Rc<Peer>>>,
    contexts: RefCell<WordMap<Context, Rc<Matching>>>,
    /// The context of the last message; most messages come in runs.
    recent: RefCell<Option<Rc<Matching>>>,
    /// The blocking receive of the express lane.
    slot: fast_path::Slot,
    /// Peers with sends whose data go in fragments or pieces.
    streaming: RefCell<Vec<Rc<Peer>>>,
    /// Copies of which something may be left to take.
    shared: RefCell<VecDeque<single_copy::Open>>,
    /// Messages that came before their receives.
    charge: flow_control::UnexpectedMemory,
    /// Memory for those.
    buffer_pool: buffer_pool::BufferPool,
    /// Messages that wait for their receives here, because their receivers hold too many.
    copies: sender_copies::SenderCopies,
    /// Peers with something that waits for room.
    congested: RefCell<Vec<Rc<Peer>>>,
    /// Peers that cannot be reached any more.
    losses: RefCell<HashMap<ProcId, peer_failure::Reason>>,
    /// Whether the job goes on when a peer is lost.
    survives: Cell<bool>,
    /// Messages that made no sense; counted, never obeyed.
    protocol_errors: Cell<u64>,
    /// What looks on.
    witness: OnceCell<Rc<dyn Observer>>,
}

impl Ob1 {
    /// Messaging in a job of `job_size` processes.
    pub fn new(bml: Bml, job_size: u32, config: Config) -> Ob1 {
        Ob1 {
            config,
            bml,
            requests: Table::default(),
            peers: (0..job_size).map(|_| OnceCell::new()).collect(),
            foreign: RefCell::default(),
            contexts: RefCell::default(),
            recent: RefCell::default(),
            slot: fast_path::Slot::default(),
            streaming: RefCell::default(),
            shared: RefCell::default(),
            charge: flow_control::UnexpectedMemory::default(),
            buffer_pool: buffer_pool::BufferPool::default(),
            copies: sender_copies::SenderCopies::default(),
            congested: RefCell::default(),
            losses: RefCell::default(),
            survives: Cell::new(false),
            protocol_errors: Cell::new(0),
            witness: OnceCell::new(),
        }
    }

    /// All requests of this process, those of collective operations too.
    pub fn requests(&self) -> &Table {
        &self.requests
    }

    /// From now on the observer looks on; the first one stays.
    pub fn set_witness(&self, witness: Rc<dyn Observer>) {
        self.slot.close();
        let _ = self.witness.set(witness);
    }

    /// The observer that looks on while messages are matched; nearly always none.
    #[inline]
    pub fn witness(&self) -> Option<&dyn Observer> {
        self.witness.get().map(|witness| &**witness)
    }

    /// The transports below.
    pub fn bml(&self) -> &Bml {
        &self.bml
    }

    /// How many arriving messages were dropped because they made no sense.
    pub fn protocol_errors(&self) -> u64 {
        self.protocol_errors.get()
    }

    /// The matching state of a context, made when either a communicator or a message first names it:
    /// a peer may finish making a communicator, and send on it, before this process does.
    pub fn matching(&self, context: Context) -> Rc<Matching> {
        if let Some(m) = &*self.recent.borrow()
            && m.context == context
        {
            return m.clone();
        }
        let matching = self
            .contexts
            .borrow_mut()
            .entry(context)
            .or_insert_with(|| Rc::new(Matching::new(context)))
            .clone();
        *self.recent.borrow_mut() = Some(matching.clone());
        matching
    }

    /// Forgets a freed context and what was left in it.
    pub fn forget(&self, context: Context) {
        let gone = self.contexts.borrow_mut().remove(&context);
        self.recent.borrow_mut().take_if(|m| m.context == context);
        let left = gone.map(|matching| matching.unexpected.take());
        for message in left.into_iter().flat_map(Unexpected::into_messages) {
            if message.content.is_charged() {
                self.discharge(message.from, message.content.bytes() as usize);
            }
        }
    }

    /// The limits of the transport to a peer.
    pub fn limits(&self, proc: ProcId) -> Result<Limits, PmlError> {
        self.peer(proc).map(|p| p.limits)
    }

    #[inline]
    fn peer(&self, proc: ProcId) -> Result<PeerRef<'_>, PmlError> {
        match self.peers.get(proc as usize).and_then(OnceCell::get) {
            Some(peer) => Ok(PeerRef::OfJob(peer)),
            None => self.meet(proc),
        }
    }

    #[cold]
    fn meet(&self, proc: ProcId) -> Result<PeerRef<'_>, PmlError> {
        let cell = self.peers.get(proc as usize);
        if cell.is_none()
            && let Some(peer) = self.foreign.borrow().get(&proc)
        {
            return Ok(PeerRef::Foreign(peer.clone()));
        }
        match self.bml.route(proc) {
            Route::Via(btl, endpoint) => {
                let peer = || Rc::new(Peer::new(btl, endpoint, self.config.sharing));
                Ok(match cell {
                    Some(cell) => PeerRef::OfJob(cell.get_or_init(peer)),
                    None => {
                        let mut foreign = self.foreign.borrow_mut();
                        PeerRef::Foreign(foreign.entry(proc).or_insert_with(peer).clone())
                    }
                })
            }
            Route::None { reasons } => Err(PmlError::Unreachable {
                peer: proc,
                reasons,
            }),
        }
    }

    /// Forgets a process of another job, which no communicator names any more.
    pub fn part_from(&self, proc: ProcId) {
        self.foreign.borrow_mut().remove(&proc);
        self.losses.borrow_mut().remove(&proc);
        self.bml.part_from(proc);
    }

    /// Polls the transports and moves what is queued; returns whether anything happened.
    #[inline]
    pub fn progress(&self) -> bool {
        let delivered = self.bml.progress(self);
        let mut moved = false;
        if !self.congested.borrow().is_empty() {
            moved |= self.drain_queues();
        }
        if !self.streaming.borrow().is_empty() {
            moved |= self.push_streams();
        }
        if delivered == 0 && !self.shared.borrow().is_empty() {
            moved |= self.read_rest();
        }
        delivered > 0 || moved
    }

    /// Whether going to sleep now would miss something.
    ///
    /// Of what a transport had no room for it tells when there is ([`crate::btl::Btl::pending`]).
    pub fn pending(&self) -> bool {
        self.bml.pending() || !self.shared.borrow().is_empty()
    }

    /// Sends a control message, now or as soon as there is room.
    fn control(&self, peer: &Rc<Peer>, am: crate::btl::Am, header: Header, payload: [u8; 8]) {
        if peer.is_clear() {
            match peer.send(am, header, Payload::Bytes(&payload)) {
                Ok(()) => return,
                Err(SendError::WouldBlock) => {}
                // A peer that has ended needs no answer; its absence is reported where something waits for it.
                Err(SendError::PeerGone | SendError::TooLong { .. }) => return,
            }
        }
        self.enqueue(
            peer,
            Queued::Control {
                am,
                header,
                payload,
            },
        );
    }

    fn enqueue(&self, peer: &Rc<Peer>, item: Queued) {
        peer.queue.borrow_mut().push_back(item);
        self.congest(peer);
    }

    /// Something for a peer waits for room.
    fn congest(&self, peer: &Rc<Peer>) {
        if !peer.congested.replace(true) {
            self.congested.borrow_mut().push(peer.clone());
        }
    }

    #[cold]
    fn drain_queues(&self) -> bool {
        let peers = std::mem::take(&mut *self.congested.borrow_mut());
        let mut moved = false;
        for peer in peers {
            peer.congested.set(false);
            self.send_throttle(&peer);
            loop {
                let Some(item) = peer.queue.borrow_mut().pop_front() else {
                    break;
                };
                let result = match &item {
                    Queued::Control {
                        am,
                        header,
                        payload,
                    } => peer.send(*am, *header, Payload::Bytes(payload)),
                    Queued::Send(req) => self.offer(&peer, req),
                };
                match result {
                    Ok(()) => moved = true,
                    Err(SendError::WouldBlock) => {
                        peer.queue.borrow_mut().push_front(item);
                        break;
                    }
                    Err(SendError::PeerGone | SendError::TooLong { .. }) => {
                        moved = true;
                        if let Queued::Send(req) = item {
                            self.fail_send(&req);
                        }
                    }
                }
            }
            if !peer.is_clear() {
                self.congest(&peer);
            }
        }
        moved
    }

    /// What is not a short message; apart, so that short ones pay for none of it.
    #[inline(never)]
    fn on_rare(&self, from: ProcId, am: crate::btl::Am, header: Header, payload: &[u8]) {
        match am {
            wire::RNDV => self.on_rendezvous(from, header, payload),
            wire::CTS => self.on_cts(from, header, payload),
            wire::FRAG => self.on_fragment(from, header, payload),
            wire::FIN => self.on_fin(from, header),
            wire::ASSIST => self.on_assist(from, header, payload),
            wire::ASSIST_DONE => self.on_assist_done(from, header, payload),
            wire::THROTTLE => self.on_throttle(from, header),
            wire::EAGER_LONG => self.on_eager_long(from, header, payload),
            wire::EAGER_START => self.on_eager_start(from, header, payload),
            wire::EAGER_FRAG => self.on_eager_frag(from, header, payload),
            wire::EAGER_MODE => self.on_eager_mode(from, header),
            wire::CANCEL => self.on_cancel(from, header, payload),
            wire::CANCELLED => self.on_cancelled(from, header),
            _ => self.nonsense(from, "an unknown kind of message"),
        }
    }

    /// Counts a message about a request that is not there; it may be late rather than wrong, because the request may have been given up.
    fn protocol_error(&self) {
        self.protocol_errors.set(self.protocol_errors.get() + 1);
    }

    /// A message names a request that is not there: it is late, unless there has never been such a request.
    #[cold]
    fn late(&self, from: ProcId, request: u64) {
        match self.requests.was_issued(ReqId(request)) {
            true => self.protocol_error(),
            false => self.nonsense(from, "an answer about a request that was never made"),
        }
    }

    /// Whether a message that no receive waits for can be one of `from`'s: its context is of a process of the job,
    /// and if this process knows the communicator, `from` has the rank that the message names.
    fn is_plausible(&self, from: ProcId, matching: &Matching, key: Key) -> bool {
        let known = matching.peers.borrow();
        let names = known.as_ref().map(|peers| {
            u32::try_from(key.source())
                .ok()
                .and_then(|source| peers.proc(source))
        });
        let context = matching.context;
        (context.is_random() || (context.chooser() as usize) < self.peers.len())
            && names.is_none_or(|proc| proc == Some(from))
    }

    /// A peer has sent what no message layer of this library sends, so nothing that it says can be believed: it counts as lost.
    #[cold]
    fn nonsense(&self, from: ProcId, what: &str) {
        self.protocol_error();
        if from == self.bml.me() || self.is_lost(from) {
            return;
        }
        let why = format!(
            "rank {from} sent {what} to rank {}, which no message layer of this library does",
            self.bml.me()
        );
        if let Ok(peer) = self.peer(from) {
            peer.btl.cut(peer.endpoint);
        }
        self.declare_lost(from, &why);
    }
}

impl Sink for Ob1 {
    #[inline]
    fn deliver(&self, from: ProcId, am: crate::btl::Am, header: Header, payload: &[u8]) {
        match am {
            wire::EAGER => self.on_eager(from, header, payload),
            _ => self.on_rare(from, am, header, payload),
        }
    }

    fn begin(
        &self,
        from: ProcId,
        am: crate::btl::Am,
        header: Header,
        len: usize,
        begun: &[u8],
    ) -> bool {
        self.begin_direct_receive(from, am, header, len, begun)
    }

    fn land(
        &self,
        from: ProcId,
        am: crate::btl::Am,
        header: Header,
        range: Range<usize>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        self.continue_direct_receive(from, am, header, range, fill)
    }

    fn landed(&self, from: ProcId, am: crate::btl::Am, header: Header, len: usize) {
        self.end_direct_receive(from, am, header, len);
    }

    fn again(
        &self,
        to: ProcId,
        am: crate::btl::Am,
        header: Header,
        len: usize,
        send: &mut dyn FnMut(&[u8]),
    ) {
        if am == wire::FRAG {
            self.fragment_again(to, header, len, send);
        }
    }

    fn lost(&self, peer: ProcId, why: &str) {
        self.declare_lost(peer, why);
    }

    fn note(&self, what: &str) {
        eprintln!("{what}");
    }
}
