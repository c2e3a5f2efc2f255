//! Progress of the other lanes while a thread waits in one.
//!
//! A thread that waits in one lane must also make the progress of the others:
//! a peer may wait for a message of a lane in which no thread of this process is.
//! So each lane's engine has one more transport, which reaches no process.
//! Its poll makes progress in each other lane whose engine has not been polled since the last look,
//! at most once in [`PERIOD_NS`].
//! Each engine's transport counts the polls of its engine, so calls that do not poll are not counted.
//!
//! A thread of one lane sleeps at most [`NAP`], because messages of the other lanes do not wake it.

use super::{ALL, MOST, count, within_if_free};
use crate::params::LANES;
use crate::state::{self, state};
use mpi_base::clock::now_ns;
use mpi_base::param::Params;
use mpi_core::Engine;
use mpi_core::btl::{
    Am, Btl, Capabilities, Endpoint, Header, Info, Limits, Payload, ProcId, Reach, SendError, Sink,
    Traffic, Transport, Wakeup,
};
use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Minimum time between two polls of the other lanes, in ns.
const PERIOD_NS: u64 = 200_000;

/// Number of polls between two readings of the clock.
const POLLS: u32 = 64;

/// Number of calls that do not wait, such as `MPI_Test`, between two readings of the clock.
const QUESTIONS: u32 = 8;

/// Maximum number of polls of a lane in one look: for the announcement, the reply and the data of a message, and one more.
const STEPS: usize = 4;

/// Maximum duration of a sleep while other lanes are in use.
const NAP: Duration = Duration::from_millis(1);

thread_local! {
    /// True while this thread makes progress in another lane, whose engine then attends no further lane.
    static ATTENDS: Cell<bool> = const { Cell::new(false) };
}

/// The transport that polls the other lanes.
struct Attendance {
    lane: usize,
    info: Info,
    polls: Cell<u32>,
    looked_ns: Cell<u64>,
    /// The number of calls of [`Btl::has_work`] since the last reading of the clock.
    questions: Cell<u32>,
    /// The number of polls of each lane's engine at the last look.
    seen: [Cell<u32>; MOST],
}

/// Returns the transport that attends the other lanes for the engine of lane 0, if lanes are wanted.
pub fn prepare(params: &Params) -> Option<Transport> {
    let wanted = params.get(&LANES).unwrap_or(1);
    (wanted > 1).then(|| of_lane(0))
}

/// Returns the transport that attends the other lanes for the engine of a lane.
pub(super) fn of_lane(lane: usize) -> Transport {
    let limits = Limits {
        eager: 0,
        max_send: 0,
    };
    Box::new(Attendance {
        lane,
        // Lower than that of shared memory, higher than those of networks:
        // so its polls count as those of memory, and each poll of the engine includes them.
        info: Info::of_memory("lanes", 1000, limits),
        polls: Cell::new(0),
        questions: Cell::new(0),
        looked_ns: Cell::new(0),
        seen: [const { Cell::new(0) }; MOST],
    })
}

/// Returns the number of polls of a lane's engine so far, modulo 2^32. The lane's lock is not needed.
pub(super) fn polls_of(lane: usize) -> u32 {
    ALL[lane % MOST].polls.load(Relaxed)
}

/// Makes progress in another lane, if it is free. Returns true if there was work.
fn attend(lane: usize) -> bool {
    let mut busy = false;
    let mut poll = |engine: &Engine| {
        busy = engine.progress();
        let _ = busy && (1..STEPS).all(|_| engine.progress());
    };
    match lane {
        0 => state::locked_if_free(|| {
            let engine = state().engines().engine().try_borrow();
            let engine = engine.ok().and_then(|engine| engine.clone());
            if let Some(engine) = engine {
                poll(&engine);
            }
        }),
        lane => within_if_free(lane, |contents| {
            if let Some(engine) = contents.engine() {
                poll(engine);
            }
        }),
    };
    busy
}

impl Attendance {
    /// Makes progress in a lane whose engine has not been polled since the last look. Returns true if there was work.
    fn look_at(&self, lane: usize) -> bool {
        let seen = &self.seen[lane % MOST];
        let busy = seen.get() == polls_of(lane) && attend(lane);
        // The polls of this thread are not counted at the next look.
        seen.set(polls_of(lane));
        busy
    }

    /// Returns true if the next look is due.
    fn is_due(&self, now: u64) -> bool {
        now.saturating_sub(self.looked_ns.get()) >= PERIOD_NS && !ATTENDS.get()
    }

    #[cold]
    fn look(&self) -> usize {
        self.polls.set(0);
        let now = now_ns();
        if !self.is_due(now) {
            return 0;
        }
        self.looked_ns.set(now);
        ATTENDS.set(true);
        let others = (0..count()).filter(|lane| *lane != self.lane);
        let busy = others.filter(|lane| self.look_at(*lane)).count();
        ATTENDS.set(false);
        busy
    }
}

impl Btl for Attendance {
    fn info(&self) -> &Info {
        &self.info
    }

    fn reach(&self, _peer: ProcId) -> Reach {
        Reach::No("it only polls the other lanes of this process".into())
    }

    fn send(
        &self,
        _to: Endpoint,
        _am: Am,
        _header: Header,
        _payload: Payload<'_>,
    ) -> Result<(), SendError> {
        Err(SendError::WouldBlock)
    }

    #[inline]
    fn progress(&self, _sink: &dyn Sink) -> usize {
        let count = &ALL[self.lane % MOST].polls;
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
        let polls = self.polls.get() + 1;
        self.polls.set(polls);
        match polls < POLLS {
            true => 0,
            false => self.look(),
        }
    }

    /// Called in calls that do not wait: returns true if the other lanes are due.
    fn has_work(&self) -> bool {
        let questions = self.questions.get() + 1;
        self.questions.set(questions % QUESTIONS);
        let due = count() > 1 && questions == QUESTIONS && self.is_due(now_ns());
        if due {
            self.polls.set(POLLS);
        }
        due
    }

    /// The engine calls this before it sleeps; the next poll also polls the other lanes.
    fn pending(&self) -> bool {
        self.polls.set(POLLS);
        false
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            wakeup: Some(self),
            traffic: Traffic::InMemory,
            ..Capabilities::default()
        }
    }
}

impl Wakeup for Attendance {
    fn descriptors<'a>(&'a self, _all: &mut Vec<BorrowedFd<'a>>) {}

    fn longest_sleep(&self) -> Option<Duration> {
        (count() > 1).then_some(NAP)
    }
}
