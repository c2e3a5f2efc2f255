//! The ports of this process, its calls to ports of other processes, and the handshake of two roots that have no communicator yet.
//!
//! All messages are active messages of [`Family::Ports`], to which a process replies in any MPI call.
//! A handler cannot send inside a delivery, so it queues its messages in an outbox until the next progress call.
//!
//! This process has a reference ([`Universe::hold`](mpi_transport::universe::Universe::hold)) to a caller from its KNOCK until the caller has been refused
//! or has replied to the ACCEPT, and to a destination while a message to it is queued.
//! Without the reference the process could disappear: this process may be disconnecting, and jobs may reconnect immediately.
//! If the accepting process closes the connection normally
//! (because it disconnects after an earlier use, or leaves MPI),
//! the connecting root sends KNOCK again. A repeated KNOCK has no effect.

use crate::comm::CommError;
use crate::engine::{Engine, WeakEngine};
use mpi_base::fdpass::Key;
use mpi_p2p::pml::Context;
use mpi_transport::bml::{Bml, Route};
use mpi_transport::btl::{
    Am, AmHandler, Family, Header, Payload, ProcId, SendError, Sink, open_to_other_jobs,
};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// From the connecting to the accepting root: requests a connection. Header: [port, call].
const KNOCK: Am = Family::Ports.am(0);
/// From the accepting to the connecting root: accepts the call. Header: [0, call].
const ACCEPT: Am = Family::Ports.am(1);
/// From the accepting to the connecting root: no such port is open. Header: [0, call].
const REFUSE: Am = Family::Ports.am(2);
/// From the connecting to the accepting root: confirms the ACCEPT. Header: [port, call].
const CONFIRM: Am = Family::Ports.am(3);
/// From the connecting to the accepting root: the call has been cancelled. Header: [port or 0, call].
const WITHDRAW: Am = Family::Ports.am(4);

/// Maximum number of callers that wait at one port; further callers are refused.
const MOST_CALLERS: usize = 4096;

/// The ports of a process, and its calls to other ports.
pub struct Ports {
    engine: WeakEngine,
    open: RefCell<HashMap<u64, VecDeque<Caller>>>,
    /// Ports to which no process will connect, with the reason.
    failed: RefCell<HashMap<u64, String>>,
    /// The callers to which ACCEPT has been sent, and their replies.
    taken: RefCell<HashMap<Caller, Taken>>,
    calls: RefCell<HashMap<u64, Call>>,
    outbox: RefCell<VecDeque<(ProcId, Am, Header)>>,
    /// Processes whose references are released in the next progress call.
    dropped: RefCell<Vec<ProcId>>,
}

/// A calling process, and the random number of its call.
type Caller = (ProcId, u64);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Asked,
    Confirmed,
    Gone,
}

struct Call {
    to: ProcId,
    port: u64,
    state: CallState,
}

enum CallState {
    Waiting,
    Accepted,
    Failed(String),
}

/// Draws a random number that cannot be guessed and that no communicator has;
/// it becomes the context id of the bridge.
fn draw() -> Result<u64, CommError> {
    let random = Key::random().map_err(|error| CommError::Unreachable {
        why: error.to_string(),
    })?;
    let mut word = [0; 8];
    word.copy_from_slice(&random.bytes()[..8]);
    Ok(Context::FIRST_RANDOM + u64::from_le_bytes(word) % Context::FIRST_RANDOM)
}

impl Engine {
    /// Returns the functions that open ports and connect this process with other jobs.
    pub fn ports(&self) -> ProcessPorts<'_> {
        ProcessPorts { engine: self }
    }
}

/// The port functions of a process.
#[derive(Clone, Copy)]
pub struct ProcessPorts<'a> {
    pub(super) engine: &'a Engine,
}

impl<'a> ProcessPorts<'a> {
    /// Makes this process able to connect with other jobs; later calls have no effect.
    pub fn reach_other_jobs(self) -> Result<(), CommError> {
        if self.known().is_some() {
            return Ok(());
        }
        let failed = |why: String| CommError::Unreachable { why };
        let engine = self.engine;
        let transports = open_to_other_jobs(engine.params(), engine.universe())
            .map_err(|error| failed(error.to_string()))?;
        let bml = engine.pml().bml();
        transports.into_iter().for_each(|btl| bml.join(btl));
        let ports = engine.extension(|| Ports::new(engine.downgrade()));
        Ports::serve(&ports, bml);
        Ok(())
    }

    /// Returns the ports of this process; `None` before [`reach_other_jobs`](ProcessPorts::reach_other_jobs).
    pub(super) fn known(self) -> Option<&'a Ports> {
        self.engine.known_extension()
    }

    /// Returns the ports of this process; the first call enables connections with other jobs.
    pub(super) fn opened(self) -> Result<&'a Ports, CommError> {
        self.reach_other_jobs()?;
        let why = || CommError::Unreachable {
            why: "this process has no ports".into(),
        };
        self.known().ok_or_else(why)
    }
}

impl Ports {
    fn new(engine: WeakEngine) -> Ports {
        Ports {
            engine,
            open: RefCell::default(),
            failed: RefCell::default(),
            taken: RefCell::default(),
            calls: RefCell::default(),
            outbox: RefCell::default(),
            dropped: RefCell::default(),
        }
    }

    fn serve(ports: &Rc<Ports>, bml: &Bml) {
        bml.handlers().register(Family::Ports, ports.clone());
    }

    pub(super) fn open(&self) -> Result<u64, CommError> {
        let number = draw()?;
        self.open.borrow_mut().insert(number, VecDeque::new());
        Ok(number)
    }

    /// Closes a port to which no process will connect; an accept on it fails with the text `why`.
    pub(super) fn fail(&self, number: u64, why: String) {
        if self.close(number) {
            self.failed.borrow_mut().insert(number, why);
            self.news();
        }
    }

    pub(super) fn close(&self, number: u64) -> bool {
        if self.failed.borrow_mut().remove(&number).is_some() {
            return true;
        }
        let closed = self.open.borrow_mut().remove(&number);
        let known = closed.is_some();
        for (proc, call) in closed.into_iter().flatten() {
            self.say(proc, REFUSE, [0, call]);
            self.drop_hold(proc);
        }
        known
    }

    fn hold(&self, proc: ProcId) {
        if let Some(engine) = self.engine.upgrade() {
            engine.universe().hold([proc].into_iter());
        }
    }

    /// Releases the reference to a process in the next progress call,
    /// because connections must not be closed inside a delivery.
    fn drop_hold(&self, proc: ProcId) {
        self.dropped.borrow_mut().push(proc);
        self.ask_for_turn();
    }

    fn ask_for_turn(&self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.pml().bml().handlers().ask_for_turns();
        }
    }

    /// Queues a message until the next progress call, with a reference to its destination.
    fn say(&self, to: ProcId, am: Am, header: Header) {
        self.hold(to);
        self.outbox.borrow_mut().push_back((to, am, header));
        self.ask_for_turn();
    }

    /// Polls the operations that wait for a change of a port or call.
    fn news(&self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.pml().requests().nudge();
        }
    }

    /// Accepts the next caller at a port. Returns the caller's process, to which this process keeps a reference ([`Universe::hold`](mpi_transport::universe::Universe::hold)),
    /// and the number of its call.
    /// The accept fails if `broken` returns an error text, because a member of the accepting group has failed.
    pub(super) async fn accept(
        &self,
        engine: &Engine,
        port: u64,
        broken: impl Fn() -> Option<String>,
    ) -> Result<Caller, String> {
        loop {
            let next = poll_fn(|_| match self.open.borrow_mut().get_mut(&port) {
                None => {
                    let failed = self.failed.borrow().get(&port).cloned();
                    Poll::Ready(Err(failed.unwrap_or_else(|| {
                        "the port is not open: this process has not opened it, or has closed it"
                            .into()
                    })))
                }
                Some(callers) => match broken() {
                    Some(why) => Poll::Ready(Err(why)),
                    None => callers
                        .pop_front()
                        .map_or(Poll::Pending, |caller| Poll::Ready(Ok(caller))),
                },
            });
            let caller = next.await?;
            let (proc, call) = caller;
            self.taken.borrow_mut().insert(caller, Taken::Asked);
            // This process has had a reference to the caller since the KNOCK.
            self.say(proc, ACCEPT, [0, call]);
            let answer = poll_fn(|_| match self.taken.borrow().get(&caller) {
                Some(Taken::Asked) => Poll::Pending,
                answer => Poll::Ready(answer.copied()),
            });
            let answer = answer.await;
            self.taken.borrow_mut().remove(&caller);
            if answer == Some(Taken::Confirmed) {
                return Ok(caller);
            }
            engine.peers().disconnect(&[proc]);
        }
    }

    /// Connects to a port of `to`; waits for the accept at most `patience`, or without a limit. Returns the number of the call.
    pub(super) async fn connect(
        &self,
        engine: &Engine,
        to: ProcId,
        port: u64,
        patience: Option<Duration>,
        broken: impl Fn() -> Option<String>,
    ) -> Result<u64, String> {
        let number = draw().map_err(|error| error.to_string())?;
        let state = CallState::Waiting;
        self.calls
            .borrow_mut()
            .insert(number, Call { to, port, state });
        self.say(to, KNOCK, [port, number]);
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        // No message arrives when the time limit expires, so the engine must keep polling.
        let _awake = until.map(|_| engine.operations().poll_always());
        let ended = poll_fn(|_| {
            let mut calls = self.calls.borrow_mut();
            let Some(call) = calls.get_mut(&number) else {
                return Poll::Ready(Err("the call was forgotten".into()));
            };
            match &mut call.state {
                CallState::Accepted => Poll::Ready(Ok(())),
                CallState::Failed(why) => Poll::Ready(Err(std::mem::take(why))),
                CallState::Waiting if until.is_some_and(|until| Instant::now() >= until) => {
                    let patience = patience.unwrap_or_default().as_secs_f64();
                    Poll::Ready(Err(format!(
                        "no MPI_Comm_accept has answered at the port within {patience} seconds"
                    )))
                }
                CallState::Waiting => match broken() {
                    Some(why) => Poll::Ready(Err(why)),
                    None => Poll::Pending,
                },
            }
        });
        let ended: Result<(), String> = ended.await;
        let call = self.calls.borrow_mut().remove(&number);
        if let (
            Err(_),
            Some(Call {
                state: CallState::Waiting,
                ..
            }),
        ) = (&ended, call)
        {
            self.say(to, WITHDRAW, [port, number]);
        }
        ended.map(|()| number)
    }

    fn on_knock(&self, from: ProcId, [port, call]: Header) {
        let caller = (from, call);
        let mut open = self.open.borrow_mut();
        let callers = open.get_mut(&port);
        match callers.filter(|callers| callers.len() < MOST_CALLERS) {
            _ if self.taken.borrow().contains_key(&caller) => {}
            Some(callers) if callers.contains(&caller) => {}
            Some(callers) => {
                callers.push_back(caller);
                self.hold(from);
            }
            None => {
                drop(open);
                self.say(from, REFUSE, [0, call]);
            }
        }
    }

    fn dismiss(&self, is_dismissed: impl Fn(&Caller) -> bool) {
        for callers in self.open.borrow_mut().values_mut() {
            callers.retain(|caller| {
                let is_dismissed = is_dismissed(caller);
                if is_dismissed {
                    self.drop_hold(caller.0);
                }
                !is_dismissed
            });
        }
    }

    fn on_answer(&self, from: ProcId, am: Am, call: u64) {
        let mut calls = self.calls.borrow_mut();
        let known = calls.get_mut(&call).filter(|known| known.to == from);
        let Some(known) = known else {
            drop(calls);
            // This call has been cancelled, but the accepting root waits for a reply,
            // so it gets WITHDRAW.
            if am == ACCEPT {
                self.say(from, WITHDRAW, [0, call]);
            }
            return;
        };
        if am == ACCEPT {
            known.state = CallState::Accepted;
            let port = known.port;
            drop(calls);
            self.say(from, CONFIRM, [port, call]);
        } else {
            known.state = CallState::Failed(
                "its process answers that no such port is open: it was closed, or never opened"
                    .into(),
            );
        }
    }

    fn on_word(&self, caller: Caller, word: Taken) {
        if let Some(taken) = self.taken.borrow_mut().get_mut(&caller) {
            *taken = word;
        } else if word == Taken::Gone {
            self.dismiss(|waiting| *waiting == caller);
        }
    }
}

impl Sink for Ports {
    fn deliver(&self, from: ProcId, am: Am, header: Header, _: &[u8]) {
        let [_, call] = header;
        match am {
            KNOCK => self.on_knock(from, header),
            ACCEPT | REFUSE => self.on_answer(from, am, call),
            CONFIRM => self.on_word((from, call), Taken::Confirmed),
            WITHDRAW => self.on_word((from, call), Taken::Gone),
            // No other message can arrive: a process with another library version already fails when it connects.
            _ => {}
        }
        self.news();
    }

    fn lost(&self, peer: ProcId, why: &str) {
        for call in self.calls.borrow_mut().values_mut() {
            if call.to == peer && matches!(call.state, CallState::Waiting) {
                call.state =
                    CallState::Failed(format!("the port's process cannot be reached: {why}"));
            }
        }
        for ((proc, _), taken) in self.taken.borrow_mut().iter_mut() {
            if *proc == peer {
                *taken = Taken::Gone;
            }
        }
        self.dismiss(|(proc, _)| *proc == peer);
        self.news();
    }

    fn parted(&self, peer: ProcId) {
        let waits = |call: &Call| call.to == peer && matches!(call.state, CallState::Waiting);
        let calls = self.calls.borrow();
        for (number, call) in calls.iter().filter(|(_, call)| waits(call)) {
            self.say(peer, KNOCK, [call.port, *number]);
        }
    }
}

impl AmHandler for Ports {
    fn turn(&self) -> bool {
        let Some(engine) = self.engine.upgrade() else {
            return false;
        };
        let bml = engine.pml().bml();
        let dropped = self.dropped.take();
        let mut moved = !dropped.is_empty();
        dropped.iter().for_each(|_| bml.handlers().end_turns());
        engine.peers().disconnect(&dropped);
        loop {
            let next = self.outbox.borrow().front().copied();
            let Some((to, am, header)) = next else {
                return moved;
            };
            let sent = match bml.route(to) {
                Route::Via(btl, endpoint) => btl.send(endpoint, am, header, Payload::Bytes(&[])),
                Route::None { reasons } => {
                    self.lost(to, &reasons);
                    Err(SendError::PeerGone)
                }
            };
            match sent {
                Err(SendError::WouldBlock) => return moved,
                Err(_) => self.lost(to, "its connection has ended"),
                // If there is no connection yet, the next poll connects.
                Ok(()) => bml.attend(),
            }
            self.outbox.borrow_mut().pop_front();
            bml.handlers().end_turns();
            engine.peers().disconnect(&[to]);
            moved = true;
        }
    }

    fn pending(&self) -> bool {
        !self.outbox.borrow().is_empty() || !self.dropped.borrow().is_empty()
    }
}
