//! Progress of the other lanes while a thread waits in one.
//!
//! A thread that waits in one lane must also make the progress of the others:
//! a peer may wait for a message of a lane in which no thread of this process is.
//! So each lane's engine has one more transport, which reaches no process.
//! Its poll makes progress in each other lane whose engine has not been polled since the transport's last poll of it,
//! at most once in [`PERIOD_NS`].
//! Each engine's transport counts the polls of its engine, so calls that do not poll are not counted.
//!
//! Of the threads that sleep in different lanes, one is the watcher ([`crate::lock::watcher`]).
//! It watches the doorbells of the other lanes, so a message in any of them wakes it.
//! A lane whose engine another thread has polled often within the last [`NAP`] is not watched,
//! because each message for that thread would wake the watcher, too.
//! Nor is a lane that has been polled at all, if the watcher has been woken within that time.
//! The watcher then sleeps at most [`NAP`], and watches the lane after that time.

use super::{ALL, MOST, count, within_if_free};
use crate::lock::watcher;
use crate::params::LANES;
use crate::state::{self, state};
use mpi_base::clock::now_ns;
use mpi_base::doorbell::SLEEPING;
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
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
const CALLS: u32 = 8;

/// Maximum number of polls of a lane in one turn: for the announcement, the reply and the data of a message, and one more.
const STEPS: usize = 4;

/// Maximum number of polls of a lane's engine since this transport's last poll of it that do not count as those of a thread that polls.
/// A thread that sleeps polls a few times whenever it wakes.
const FEW_POLLS: u32 = 16;

/// Maximum duration of a sleep of the watcher while it does not watch all lanes.
const NAP: Duration = Duration::from_millis(1);

thread_local! {
    /// True while this thread makes progress in another lane, whose engine then polls no further lane.
    static POLLS_OTHERS: Cell<bool> = const { Cell::new(false) };
}

/// The transport that polls the other lanes.
struct OtherLanes {
    lane: usize,
    info: Info,
    polls: Cell<u32>,
    polled_ns: Cell<u64>,
    /// The number of calls of [`Btl::has_work`] since the last reading of the clock.
    calls: Cell<u32>,
    /// The number of polls of each lane's engine when this transport read it last.
    seen: [Cell<u32>; MOST],
    /// The last time at which another thread was found to have polled the lane's engine often.
    active_ns: [Cell<u64>; MOST],
    /// The time of the last sleep of the watcher.
    marked_ns: Cell<u64>,
    /// True if the last two of these sleeps began less than [`NAP`] one after the other.
    is_woken_often: Cell<bool>,
    /// The set of lanes whose doorbells wake this thread in its present sleep, one bit each.
    watched: Cell<u32>,
    /// True if messages of some lane may not wake this thread in its present sleep.
    must_nap: Cell<bool>,
}

/// The result of a poll of another lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LanePoll {
    /// There was work.
    Busy,
    /// There was none, and the next message rings the lane's doorbell.
    Idle,
    /// There was none, but the lane also waits for events that ring no doorbell.
    Silent,
    /// Another thread holds the lane's lock.
    Taken,
}

/// Returns the transport that polls the other lanes for the engine of lane 0, if lanes are wanted.
pub fn prepare(params: &Params) -> Option<Transport> {
    let wanted = params.get(&LANES).unwrap_or(1);
    (wanted > 1).then(|| of_lane(0))
}

/// Returns the transport that polls the other lanes for the engine of a lane.
pub(super) fn of_lane(lane: usize) -> Transport {
    let limits = Limits {
        eager: 0,
        max_send: 0,
    };
    Box::new(OtherLanes {
        lane,
        // The priority is lower than that of shared memory and higher than those of networks:
        // the engine polls transports of memory each time, and those of networks less often.
        info: Info::of_memory("lanes", 1000, limits),
        polls: Cell::new(0),
        calls: Cell::new(0),
        polled_ns: Cell::new(0),
        seen: [const { Cell::new(0) }; MOST],
        active_ns: [const { Cell::new(0) }; MOST],
        marked_ns: Cell::new(0),
        is_woken_often: Cell::new(false),
        watched: Cell::new(0),
        must_nap: Cell::new(false),
    })
}

/// Returns the number of polls of a lane's engine so far, modulo 2^32. The lane's lock is not needed.
pub(super) fn polls_of(lane: usize) -> u32 {
    ALL[lane % MOST].polls.load(Relaxed)
}

/// Makes progress in another lane, if no thread holds its lock.
/// With `sleeps`, also checks for work and descriptors that ring no doorbell, as an engine does before a sleep.
fn poll_lane(lane: usize, sleeps: bool) -> LanePoll {
    let mut found = LanePoll::Taken;
    let mut poll = |engine: &Engine| {
        let mut busy = engine.progress();
        let _ = busy && (1..STEPS).all(|_| engine.progress());
        busy |= sleeps && engine.pml().pending();
        found = match busy {
            true => LanePoll::Busy,
            false if sleeps && has_descriptors(engine) => LanePoll::Silent,
            false => LanePoll::Idle,
        };
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
    found
}

/// Returns true if messages to an engine may ring no doorbell of the lane, for example those of other nodes.
fn has_descriptors(engine: &Engine) -> bool {
    let bml = engine.pml().bml();
    bml.with_descriptors(|descriptors, doorbells| !(descriptors.is_empty() && doorbells.is_empty()))
}

impl OtherLanes {
    /// Makes progress in a lane if no other thread has polled its engine since the last call. Returns true if there was work.
    fn poll_if_idle(&self, lane: usize, now: u64) -> bool {
        let busy = !self.is_polled(lane, now) && poll_lane(lane, false) == LanePoll::Busy;
        // The next call does not count the polls of this thread.
        self.seen[lane % MOST].set(polls_of(lane));
        busy
    }

    /// Returns true if another thread has polled a lane's engine since the last call.
    fn is_polled(&self, lane: usize, now: u64) -> bool {
        let polls = polls_of(lane);
        let others = polls.wrapping_sub(self.seen[lane % MOST].replace(polls));
        if others > FEW_POLLS || others > 0 && self.is_woken_often.get() {
            self.active_ns[lane % MOST].set(now);
        }
        others > 0
    }

    /// Returns true if another thread has polled a lane's engine often within the last [`NAP`].
    fn is_active(&self, lane: usize, now: u64) -> bool {
        self.is_polled(lane, now);
        let since = now.saturating_sub(self.active_ns[lane % MOST].get());
        Duration::from_nanos(since) < NAP
    }

    /// Returns true if the next poll of the other lanes is due.
    fn is_due(&self, now: u64) -> bool {
        now.saturating_sub(self.polled_ns.get()) >= PERIOD_NS && !POLLS_OTHERS.get()
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        (0..count()).filter(|lane| *lane != self.lane)
    }

    /// Polls the watched lanes after their doorbells have been marked. Returns true if the thread must not sleep.
    fn poll_watched_lanes(&self) -> bool {
        let is_watched = |lane: &usize| self.watched.get() >> lane & 1 != 0;
        let mut busy = false;
        POLLS_OTHERS.set(true);
        for lane in self.others().filter(is_watched) {
            match poll_lane(lane, true) {
                LanePoll::Busy => busy = true,
                LanePoll::Idle => {}
                LanePoll::Silent => self.must_nap.set(true),
                // A thread that sleeps in its lane has polled since the last message, or its doorbell rings.
                LanePoll::Taken if is_asleep(lane) => continue,
                LanePoll::Taken => {
                    self.must_nap.set(true);
                    continue;
                }
            }
            self.seen[lane % MOST].set(polls_of(lane));
        }
        POLLS_OTHERS.set(false);
        // The next poll includes the other lanes, although they were polled a short time ago.
        self.polled_ns.set(0);
        busy
    }

    #[cold]
    fn poll_others(&self) -> usize {
        self.polls.set(0);
        let now = now_ns();
        if !self.is_due(now) {
            return 0;
        }
        self.polled_ns.set(now);
        POLLS_OTHERS.set(true);
        let busy = self
            .others()
            .filter(|lane| self.poll_if_idle(*lane, now))
            .count();
        POLLS_OTHERS.set(false);
        busy
    }
}

impl Btl for OtherLanes {
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
            false => self.poll_others(),
        }
    }

    /// Called in calls that do not wait: returns true if the other lanes are due.
    fn has_work(&self) -> bool {
        let calls = self.calls.get() + 1;
        self.calls.set(calls % CALLS);
        let due = count() > 1 && calls == CALLS && self.is_due(now_ns());
        if due {
            self.polls.set(POLLS);
        }
        due
    }

    /// The engine calls this before it sleeps, after the doorbells have been marked.
    fn pending(&self) -> bool {
        if count() == 1 || POLLS_OTHERS.get() {
            return false;
        }
        // The next poll also polls the other lanes.
        self.polls.set(POLLS);
        match watcher::role().is_of(self.lane) {
            true => self.poll_watched_lanes(),
            // A vacant role is claimed before the next sleep.
            false => watcher::role().is_vacant(),
        }
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            wakeup: Some(self),
            traffic: Traffic::InMemory,
            ..Capabilities::default()
        }
    }
}

/// Returns true if the thread in a lane sleeps there.
fn is_asleep(lane: usize) -> bool {
    watcher::inbox(lane).is_some_and(|inbox| inbox.doorbell().wishes() & SLEEPING != 0)
}

impl Wakeup for OtherLanes {
    fn descriptors<'a>(&'a self, _all: &mut Vec<BorrowedFd<'a>>) {}

    fn doorbells(&self, all: &mut Vec<Held<Inbox>>) {
        // In a poll of another lane the thread does not sleep.
        if POLLS_OTHERS.get() {
            return;
        }
        self.watched.set(0);
        self.must_nap.set(false);
        if count() == 1 || !watcher::role().claim(self.lane) {
            return;
        }
        let now = now_ns();
        let since = now.saturating_sub(self.marked_ns.replace(now));
        self.is_woken_often.set(Duration::from_nanos(since) < NAP);
        for lane in self.others() {
            match watcher::inbox(lane) {
                Some(inbox) if !self.is_active(lane, now) => {
                    self.watched.set(self.watched.get() | 1 << lane);
                    all.push(inbox.clone());
                }
                _ => self.must_nap.set(true),
            }
        }
    }

    fn longest_sleep(&self) -> Option<Duration> {
        self.must_nap.get().then_some(NAP)
    }
}
