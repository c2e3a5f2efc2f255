//! The slow path of a wait that has spun without success: checks the launcher, publishes the wait, and sleeps.

use super::{Engine, Occasion, Threads};
use mpi_base::clock::now_ns;
use mpi_base::state::Quiet;
use mpi_base::wait::Waiter;
use std::time::Duration;

/// Maximum sleep if the process also waits for descriptors and the operating system cannot wait
/// for these and the doorbell at the same time.
const SHORT_NAP: Duration = Duration::from_micros(100);

/// Maximum sleep if the process watches the doorbells of its other lanes, and has no socket to sleep on.
const LANE_NAP: Duration = Duration::from_millis(1);

/// A wait that is about to sleep.
#[derive(Clone, Copy)]
pub(super) struct LongWait<'a> {
    engine: &'a Engine,
}

impl<'a> LongWait<'a> {
    pub fn of(engine: &'a Engine) -> Self {
        LongWait { engine }
    }

    /// Called before every sleep: publishes the start time of the wait, and calls the watch function (see [`Waiting::set_watch`](super::Waiting::set_watch))
    /// and the progress hooks.
    #[cold]
    pub fn begin(self, waiter: &mut Waiter) {
        let now = now_ns();
        self.engine.0.state.waits_since(now);
        self.engine
            .0
            .waiting
            .begins_check(now, waiter.begins_to_sleep());
        self.engine.0.waiting.sleeps();
        self.engine.0.waiting.call_watch();
        self.engine.operations().ask_attendants(Occasion::Time);
    }

    /// Publishes that a poll of all sources has found nothing,
    /// and whether an event from outside the job could end the wait.
    #[cold]
    pub fn publish_quiet(self, threads: Option<&Threads>) {
        let ((sent, received), is_open) = self.engine.published().outside();
        let is_open = is_open || threads.is_some_and(|threads| !(threads.is_alone)());
        let (waits, since_ns, checked_ns) = self.engine.0.waiting.check();
        self.engine.0.state.is_quiet(&Quiet {
            waits,
            since_ns,
            checked_ns,
            sent,
            received,
            thread: mpi_base::cpu::this_thread(),
            is_open,
        });
    }

    /// Sleeps until the doorbell rings, at most for `nap`.
    /// If a transport waits for descriptors or for other doorbells, these wake the process too.
    ///
    /// Returns true if only the time limit has ended the sleep, and no transport has required a shorter one.
    pub fn sleep(self, nap: Duration, news: impl FnOnce() -> bool) -> bool {
        let bml = self.engine.0.pml.bml();
        let doorbell = self.engine.node().my_inbox().doorbell();
        let limit = || bml.longest_sleep().map_or(nap, |longest| nap.min(longest));
        let timed_out = bml.with_descriptors(|descriptors, others| {
            if descriptors.is_empty() && others.is_empty() {
                return doorbell.sleep(limit(), news);
            }
            let watched: Vec<_> = others.iter().map(|inbox| inbox.doorbell()).collect();
            match self.engine.0.waiting.descriptors() {
                Some(sleeper) => sleeper.sleep(doorbell, &watched, limit, descriptors, news),
                // The operating system cannot wait for both at the same time,
                // so short sleeps alternate with polls of the descriptors.
                None => {
                    let short = match descriptors.is_empty() {
                        true => LANE_NAP,
                        false => SHORT_NAP,
                    };
                    doorbell.sleep(nap.min(short), news);
                    false
                }
            }
        });
        timed_out && bml.longest_sleep().is_none()
    }

    /// Returns true if there is work, so that the process must not sleep.
    pub fn pending(self) -> bool {
        self.engine.0.pml.pending()
            || (self.engine.0.operations.need_polling() && self.engine.progress())
    }
}
