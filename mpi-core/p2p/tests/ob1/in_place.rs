//! Tests of delivery in place, over a transport that copies from one rank's memory to another's when the test permits it.

use super::{content, scratch};
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use mpi_core::btl::{
    Am, Btl, Capabilities, Endpoint, Header, InPlace, Info, Payload, ProcId, Reach, Region,
    SendError, Sink, Transport, Wakeup,
};
use mpi_core::comm::Probed;
use mpi_core::datatype::{Datatype, Named, Scratch};
use mpi_core::engine::Engine;
use mpi_core::pml::{Mode, Sent};
use mpi_core::request::Req;
use mpi_core::testing::{Job, eventually, until_set};
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The minimum length in bytes of a message that this transport delivers in place.
const SHORTEST: usize = 100_000;
const LEN: usize = 300_007;

/// What the transport does with data for a posted place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    Deliver,
    /// The transfer fails at both ranks.
    Fail,
    /// The transport does not start the transfer, which therefore fails at the sender.
    Refuse,
    /// The transfer stays active until the test ends it.
    Hold,
}

/// The transfers of all ranks, which share one address space.
#[derive(Default)]
struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    course: Option<Course>,
    last: u64,
    /// The posted places: receiver, sender and number lead to the transfer and the place.
    posted: HashMap<(ProcId, ProcId, u64), (u64, Region)>,
    /// The outcomes of the transfers of each rank; `None` while a transfer is active.
    outcomes: HashMap<(ProcId, u64), Option<bool>>,
    held: Vec<[(ProcId, u64); 2]>,
    delivered: usize,
    withdrawn: usize,
    given_up: usize,
    /// Number of calls of `fill` that are still refused.
    refusals: usize,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no rank has panicked")
    }

    /// Ends the transfers that are held.
    fn end_held(&self, succeeded: bool) {
        let mut state = self.state();
        for id in std::mem::take(&mut state.held).as_flattened() {
            if let Some(outcome) = state.outcomes.get_mut(id) {
                *outcome = Some(succeeded);
            }
        }
    }
}

struct Placing {
    inner: Transport,
    me: ProcId,
    shared: Arc<Shared>,
}

impl Placing {
    /// Returns the other rank of the job.
    fn other(&self) -> ProcId {
        1 - self.me
    }
}

impl Btl for Placing {
    fn info(&self) -> &Info {
        self.inner.info()
    }
    fn reach(&self, peer: ProcId) -> Reach {
        self.inner.reach(peer)
    }
    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        self.inner.send(to, am, header, payload)
    }
    fn progress(&self, sink: &dyn Sink) -> usize {
        self.inner.progress(sink)
    }
    fn pending(&self) -> bool {
        let mut ended = Vec::new();
        self.ended(&mut ended);
        self.inner.pending() || !ended.is_empty()
    }
    fn has_work(&self) -> bool {
        self.inner.has_work()
    }
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            single_copy: None,
            // Messages of medium length are announced, too.
            pipeline: None,
            in_place: Some(self),
            wakeup: Some(self),
            ..self.inner.capabilities()
        }
    }
}

impl Wakeup for Placing {
    fn descriptors<'a>(&'a self, all: &mut Vec<BorrowedFd<'a>>) {
        if let Some(wakeup) = self.inner.capabilities().wakeup {
            wakeup.descriptors(all);
        }
    }
    /// The end of a transfer wakes no rank.
    fn longest_sleep(&self) -> Option<Duration> {
        Some(Duration::from_millis(1))
    }
    fn doorbells(&self, all: &mut Vec<Held<Inbox>>) {
        if let Some(wakeup) = self.inner.capabilities().wakeup {
            wakeup.doorbells(all);
        }
    }
}

impl InPlace for Placing {
    fn shortest(&self) -> usize {
        SHORTEST
    }

    unsafe fn post(&self, _: Endpoint, number: u64, place: Region) -> Option<u64> {
        let mut state = self.shared.state();
        state.last += 1;
        let id = state.last;
        state
            .posted
            .insert((self.me, self.other(), number), (id, place));
        state.outcomes.insert((self.me, id), None);
        Some(id)
    }

    unsafe fn fill(&self, _: Endpoint, number: u64, data: Region) -> Result<u64, SendError> {
        let mut state = self.shared.state();
        if state.refusals > 0 {
            state.refusals -= 1;
            return Err(SendError::WouldBlock);
        }
        state.last += 1;
        let id = state.last;
        if state.course == Some(Course::Refuse) {
            state.outcomes.insert((self.me, id), Some(false));
            return Ok(id);
        }
        let Some((receiver, place)) = state.posted.remove(&(self.other(), self.me, number)) else {
            state.outcomes.insert((self.me, id), Some(true));
            return Ok(id);
        };
        assert_eq!(place.len, data.len);
        let outcome = match state.course.unwrap_or(Course::Deliver) {
            Course::Hold => {
                state.held.push([(self.other(), receiver), (self.me, id)]);
                None
            }
            Course::Fail | Course::Refuse => Some(false),
            Course::Deliver => {
                let from = std::ptr::with_exposed_provenance::<u8>(data.address as usize);
                let place = std::ptr::with_exposed_provenance_mut::<u8>(place.address as usize);
                // SAFETY: both ranks keep their memory until the outcome is known.
                unsafe { place.copy_from_nonoverlapping(from, data.len as usize) };
                state.delivered += 1;
                Some(true)
            }
        };
        state.outcomes.insert((self.other(), receiver), outcome);
        state.outcomes.insert((self.me, id), outcome);
        Ok(id)
    }

    fn outcome(&self, transfer: u64) -> Option<bool> {
        let mut state = self.shared.state();
        let outcome = (*state.outcomes.get(&(self.me, transfer))?)?;
        state.outcomes.remove(&(self.me, transfer));
        Some(outcome)
    }

    fn ended(&self, ids: &mut Vec<u64>) {
        let state = self.shared.state();
        let all = state.outcomes.iter();
        let ended = all.filter(|((owner, _), outcome)| *owner == self.me && outcome.is_some());
        ids.extend(ended.map(|((_, id), _)| id));
    }

    fn have_moved(&self) -> bool {
        false
    }

    fn withdraw(&self, transfer: u64) -> bool {
        let mut state = self.shared.state();
        let before = state.posted.len();
        state.posted.retain(|_, (id, _)| *id != transfer);
        let withdrawn = state.posted.len() < before;
        if withdrawn {
            state.outcomes.remove(&(self.me, transfer));
            state.withdrawn += 1;
        }
        let failed = state.outcomes.get(&(self.me, transfer)) == Some(&Some(false));
        if failed {
            state.outcomes.remove(&(self.me, transfer));
        }
        withdrawn || failed
    }

    fn give_up(&self, transfer: u64) {
        if self.withdraw(transfer) {
            return;
        }
        let mut state = self.shared.state();
        if state.outcomes.remove(&(self.me, transfer)).is_some() {
            state.given_up += 1;
        }
    }
}

fn job(shared: &Arc<Shared>) -> Job {
    let shared = shared.clone();
    let wrap = move |me, inner: Transport| match inner.info().name {
        "sm" => Box::new(Placing {
            inner,
            me,
            shared: shared.clone(),
        }) as Transport,
        _ => inner,
    };
    Job {
        wrap: Box::new(wrap),
        ..Job::of(2)
    }
}

fn isend(engine: &Engine, data: &Scratch, to: i32, tag: i32) -> Req {
    let world = engine.world().expect("a world");
    let sent = (world.p2p()).isend(data.all().as_send(), to, tag, Mode::Standard);
    match sent.expect("sent") {
        Sent::Pending(req) => req,
        Sent::Done => panic!("a long message was sent at once"),
    }
}

fn filled(at: usize, len: usize) -> Scratch {
    let data = scratch(len);
    data.all().unpack_at(0, &content(at, len));
    data
}

#[track_caller]
fn holds(buffer: &Scratch, at: usize, len: usize) {
    let received = buffer.all().as_send().to_vec();
    assert!(received[..len] == content(at, len)[..]);
    assert!(received[len..].iter().all(|byte| *byte == 0));
}

/// Messages of each form: received before and after they are sent, after a matched probe, into longer and shorter buffers, and short ones.
#[test]
fn long_messages_are_delivered_in_place_however_they_are_received() {
    let shared = Arc::new(Shared::default());
    shared.state().refusals = 5;
    job(&shared).run(|engine| {
        let world = engine.world().expect("a world");
        if engine.me() == 1 {
            for tag in 0..4 {
                engine
                    .wait(&isend(engine, &filled(tag, LEN), 0, tag as i32))
                    .expect("sent");
            }
            let short = filled(4, SHORTEST - 1);
            (world.p2p())
                .send(short.all().as_send(), 0, 4, Mode::Standard)
                .expect("sent");
            return;
        }
        let posted = scratch(LEN);
        let req = world.p2p().irecv(posted.all(), 1, 0).expect("posted");
        engine.wait(&req).expect("received");
        holds(&posted, 0, LEN);
        eventually(engine, "the message", || {
            world.probes().iprobe(1, 1).is_ok_and(|m| m.is_some())
        });
        let longer = scratch(LEN + 100);
        world.p2p().recv(longer.all(), 1, 1).expect("received");
        holds(&longer, 1, LEN);
        let Ok(Probed::Message(message)) = world.probes().mprobe(1, 2) else {
            panic!("MPI_PROC_NULL");
        };
        let probed = scratch(LEN);
        engine
            .wait(&world.p2p().imrecv(message, probed.all()))
            .expect("received");
        holds(&probed, 2, LEN);
        let shorter = scratch(LEN / 2);
        let error = world.p2p().recv(shorter.all(), 1, 3).expect_err("no room");
        assert!(
            error.to_string().contains("but the receive buffer has"),
            "{error}"
        );
        holds(&shorter, 3, LEN / 2);
        let short = scratch(SHORTEST);
        world.p2p().recv(short.all(), 1, 4).expect("received");
        holds(&short, 4, SHORTEST - 1);
        assert_eq!(engine.pml().protocol_errors(), 0);
    });
    let state = shared.state();
    assert_eq!(
        (state.delivered, state.withdrawn, state.given_up),
        (4, 0, 0)
    );
    assert!(state.outcomes.is_empty() && state.posted.is_empty());
}

/// Two ranks post 60 long receives each and send to each other at once.
#[test]
fn two_ranks_that_send_sixty_long_messages_to_each_other_end() {
    let shared = Arc::new(Shared::default());
    shared.state().refusals = 200;
    job(&shared).run(|engine| {
        let other = 1 - engine.me() as i32;
        let world = engine.world().expect("a world");
        let buffers: Vec<_> = (0..60).map(|_| scratch(SHORTEST)).collect();
        let mut reqs: Vec<Req> = (buffers.iter().zip(0..))
            .map(|(buffer, tag)| world.p2p().irecv(buffer.all(), other, tag).expect("posted"))
            .collect();
        let datas: Vec<_> = (0..60).map(|at| filled(at, SHORTEST)).collect();
        reqs.extend((datas.iter().zip(0..)).map(|(data, tag)| isend(engine, data, other, tag)));
        for req in &reqs {
            engine.wait(req).expect("ended");
        }
        for (at, buffer) in buffers.iter().enumerate() {
            holds(buffer, at, SHORTEST);
        }
    });
    assert_eq!(shared.state().delivered, 120);
}

#[test]
fn after_a_failed_transfer_the_data_go_in_fragments() {
    for (course, withdrawn) in [(Course::Fail, 0), (Course::Refuse, 1)] {
        let shared = Arc::new(Shared::default());
        shared.state().course = Some(course);
        job(&shared).run(|engine| {
            if engine.me() == 1 {
                engine
                    .wait(&isend(engine, &filled(0, LEN), 0, 0))
                    .expect("sent");
                return;
            }
            let buffer = scratch(LEN);
            let world = engine.world().expect("a world");
            world.p2p().recv(buffer.all(), 1, 0).expect("received");
            holds(&buffer, 0, LEN);
            assert_eq!(engine.pml().protocol_errors(), 0);
            eventually(engine, "no open transfer", || {
                mpi_core::pml::is_idle(engine.pml())
            });
        });
        let state = shared.state();
        assert_eq!((state.delivered, state.withdrawn), (0, withdrawn));
        assert!(state.outcomes.is_empty() && state.posted.is_empty());
    }
}

/// The sender's data are not contiguous, so it sends fragments although the receiver has posted its buffer.
#[test]
fn a_posted_buffer_is_withdrawn_when_fragments_arrive() {
    const HALF: i64 = 100_000;
    let shared = Arc::new(Shared::default());
    job(&shared).run(|engine| {
        let world = engine.world().expect("a world");
        if engine.me() == 1 {
            let halves = Datatype::vector(2, HALF, 2 * HALF, &Named::BYTE.into());
            let data = Scratch::new(1, &halves.expect("a type")).expect("memory");
            data.all().unpack_at(0, &content(0, 2 * HALF as usize));
            (world.p2p())
                .send(data.all().as_send(), 0, 0, Mode::Standard)
                .expect("sent");
            return;
        }
        let buffer = scratch(LEN);
        world.p2p().recv(buffer.all(), 1, 0).expect("received");
        holds(&buffer, 0, 2 * HALF as usize);
        assert_eq!(engine.pml().protocol_errors(), 0);
        eventually(engine, "no open transfer", || {
            mpi_core::pml::is_idle(engine.pml())
        });
    });
    let state = shared.state();
    assert_eq!((state.delivered, state.withdrawn), (0, 1));
}

/// The transport may access both buffers after one rank has declared the other lost.
/// The operations complete, with errors, only after the transfer has ended.
#[test]
fn an_operation_with_a_lost_peer_keeps_its_buffer_until_the_transfer_has_ended() {
    let shared = Arc::new(Shared::default());
    shared.state().course = Some(Course::Hold);
    let [begun, polled] = [(); 2].map(|()| [false; 2].map(AtomicBool::new));
    let ended = AtomicBool::new(false);
    job(&shared).run(|engine| {
        let me = engine.me();
        let other = 1 - me;
        let (data, buffer) = (filled(0, LEN), scratch(LEN));
        let world = engine.world().expect("a world");
        let req = match me {
            0 => world.p2p().irecv(buffer.all(), 1, 0).expect("posted"),
            _ => isend(engine, &data, 0, 0),
        };
        eventually(engine, "the transfer", || !shared.state().held.is_empty());
        // Each rank still needs the messages of the other until both transfers have begun.
        begun[me as usize].store(true, Ordering::Release);
        until_set(&begun[other as usize]);
        engine.pml().lost(other, "it is gone");
        for _ in 0..100 {
            engine.progress();
            assert!(!req.is_complete(), "the transfer is active");
        }
        polled[me as usize].store(true, Ordering::Release);
        if me == 0 {
            until_set(&polled[1]);
            shared.end_held(false);
            ended.store(true, Ordering::Release);
        }
        until_set(&ended);
        let error = engine.wait(&req).expect_err("the other rank is lost");
        assert!(error.to_string().contains("it is gone"), "{error}");
    });
    assert_eq!(shared.state().given_up, 0);
}

/// The sender is lost after the receiver has posted its buffer and before data have arrived.
#[test]
fn a_receive_whose_sender_is_lost_before_the_transfer_fails_at_once() {
    let shared = Arc::new(Shared::default());
    shared.state().refusals = usize::MAX;
    let over = AtomicBool::new(false);
    job(&shared).run(|engine| {
        let world = engine.world().expect("a world");
        if engine.me() == 1 {
            let data = filled(0, LEN);
            let req = isend(engine, &data, 0, 0);
            eventually(engine, "the end of the receive", || {
                over.load(Ordering::Acquire)
            });
            engine.pml().termination().abandon(&req);
            return;
        }
        let buffer = scratch(LEN);
        let req = world.p2p().irecv(buffer.all(), 1, 0).expect("posted");
        eventually(engine, "the match", || !shared.state().posted.is_empty());
        engine.pml().lost(1, "it is gone");
        engine.progress();
        assert!(req.is_complete());
        let error = engine.wait(&req).expect_err("the sender is lost");
        assert!(error.to_string().contains("it is gone"), "{error}");
        over.store(true, Ordering::Release);
    });
    assert_eq!(shared.state().withdrawn, 1);
}

#[test]
fn abandoned_operations_end_their_transfers() {
    let shared = Arc::new(Shared::default());
    shared.state().course = Some(Course::Hold);
    job(&shared).run(|engine| {
        let world = engine.world().expect("a world");
        let (data, buffer) = (filled(0, LEN), scratch(LEN));
        let req = match engine.me() {
            0 => world.p2p().irecv(buffer.all(), 1, 0).expect("posted"),
            _ => isend(engine, &data, 0, 0),
        };
        eventually(engine, "the transfer", || !shared.state().held.is_empty());
        engine.pml().termination().abandon(&req);
    });
    let state = shared.state();
    assert_eq!(state.given_up, 2);
    assert!(state.outcomes.is_empty());
}
