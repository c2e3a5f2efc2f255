//! The event registrations of a process, and the queue of raised events.
//!
//! One mutex guards registrations and events. The mutex is not held while a callback runs.

use super::registration::{Callback, DroppedHandler, FreeCallback, Registration};
use super::table::MOST_ELEMENTS;
use crate::abi::*;
use crate::error::Failure;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of queued events: about a millisecond of short messages.
const LONGEST: usize = 4096;

/// A raised event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The index of the event type.
    pub event: usize,
    pub time_ns: u64,
    pub elements: [i64; MOST_ELEMENTS],
}

/// The registrations by id, and the queued events with the ids of their registrations.
/// Ids are not reused.
#[derive(Default)]
pub(super) struct Queue {
    last: usize,
    pub(super) registrations: BTreeMap<usize, Registration>,
    waiting: VecDeque<(usize, Instance)>,
    /// The registration whose callback runs,
    /// and its free callback if the registration was freed during the callback.
    running: Option<usize>,
    freed: Option<FreeCallback>,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    last: 0,
    registrations: BTreeMap::new(),
    waiting: VecDeque::new(),
    running: None,
    freed: None,
});

/// True after a tool has registered its first callback.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Returns true if a tool has registered a callback.
pub(super) fn has_begun() -> bool {
    BEGUN.load(Relaxed)
}

/// Records that a tool has registered a callback.
pub(super) fn set_begun() {
    BEGUN.store(true, Relaxed);
}

pub(super) fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next callback to run.
pub(super) enum Next {
    Callback(usize, Callback, Instance),
    Dropped(usize, DroppedHandler, Callback, u64),
}

impl Queue {
    /// Adds a registration and returns its id.
    pub(super) fn add(&mut self, registration: Registration) -> usize {
        self.last += 1;
        self.registrations.insert(self.last, registration);
        self.last
    }

    /// Returns the registration of a handle, or an error.
    pub(super) fn get(
        &mut self,
        handle: MPI_T_event_registration,
    ) -> Result<&mut Registration, Failure> {
        let found = self.registrations.get_mut(&handle.0);
        found.ok_or_else(|| no_registration(handle))
    }

    /// Removes a registration and its queued events. Returns the callback to run immediately.
    /// Returns `None` while a callback of the registration runs in some thread.
    pub(super) fn remove(
        &mut self,
        handle: MPI_T_event_registration,
        at_end: FreeCallback,
    ) -> Result<Option<FreeCallback>, Failure> {
        let removed = self.registrations.remove(&handle.0);
        removed.ok_or_else(|| no_registration(handle))?;
        self.waiting.retain(|(number, _)| *number != handle.0);
        if self.running == Some(handle.0) {
            self.freed = Some(at_end);
            return Ok(None);
        }
        Ok(Some(at_end))
    }

    /// Queues an event for each registration that has a callback for it.
    pub(super) fn raise(&mut self, comm: Option<u64>, instance: Instance) {
        let Queue {
            registrations,
            waiting,
            ..
        } = self;
        for (number, registration) in registrations.iter_mut() {
            if !registration.wants(instance.event, comm) {
                continue;
            }
            match waiting.len() < LONGEST {
                true => waiting.push_back((*number, instance)),
                false => registration.drops(),
            }
        }
    }

    /// Takes the next event whose callback is allowed at the safety level `safety`.
    ///
    /// Returns `None` while another thread runs a callback, so that callbacks run in event order.
    pub(super) fn take(&mut self, safety: MPI_T_cb_safety) -> Option<Next> {
        if self.running.is_some() {
            return None;
        }
        for (number, registration) in &mut self.registrations {
            if let Some((handler, callback, count)) = registration.take_dropped(safety) {
                self.running = Some(*number);
                return Some(Next::Dropped(*number, handler, callback, count));
            }
        }
        let callback_of = |number: &usize| self.registrations.get(number)?.callback(safety);
        let at = self
            .waiting
            .iter()
            .position(|(number, _)| callback_of(number).is_some())?;
        let callback = callback_of(&self.waiting.get(at)?.0)?;
        let (number, instance) = self.waiting.remove(at)?;
        self.running = Some(number);
        Some(Next::Callback(number, callback, instance))
    }

    /// Ends the callback that [`Queue::take`] has started.
    /// Returns the free callback if the registration was freed while the callback ran.
    pub(super) fn has_run(&mut self) -> Option<FreeCallback> {
        self.running = None;
        self.freed.take()
    }

    /// Returns true if an event or a report of dropped events is queued.
    #[cfg(test)]
    fn has_work(&self) -> bool {
        !self.waiting.is_empty() || self.registrations.values().any(Registration::has_dropped)
    }
}

/// Returns the failure for a handle that is not a registration.
#[cold]
fn no_registration(handle: MPI_T_event_registration) -> Failure {
    let sentence = format!("{:#x} is not the registration of an event", handle.0);
    Failure::new(MPI_T_ERR_INVALID_HANDLE, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::c_void;

    extern "C-unwind" fn sees(
        _: MPI_T_event_instance,
        _: MPI_T_event_registration,
        _: MPI_T_cb_safety,
        _: *mut c_void,
    ) {
    }

    extern "C-unwind" fn loses(
        _: MPI_Count,
        _: MPI_T_event_registration,
        _: std::ffi::c_int,
        _: MPI_T_cb_safety,
        _: *mut c_void,
    ) {
    }

    fn instance(first: i64) -> Instance {
        Instance {
            event: 0,
            time_ns: first as u64,
            elements: [first, 0, 0, 0],
        }
    }

    fn watching(queue: &mut Queue, safety: MPI_T_cb_safety) -> usize {
        let mut registration = Registration::new(0, None);
        registration.set_callback(safety, Some(Callback::new(sees, std::ptr::null_mut())));
        queue.add(registration)
    }

    #[test]
    fn events_come_in_order_and_only_where_their_callback_is_safe() {
        let mut queue = Queue::default();
        watching(&mut queue, MPI_T_CB_REQUIRE_NONE);
        queue.raise(None, instance(1));
        queue.raise(None, instance(2));
        assert!(queue.take(MPI_T_CB_REQUIRE_MPI_RESTRICTED).is_none());
        for expected in [1, 2] {
            let Some(Next::Callback(_, _, found)) = queue.take(MPI_T_CB_REQUIRE_NONE) else {
                panic!("no event");
            };
            assert_eq!(found, instance(expected));
            assert!(queue.take(MPI_T_CB_REQUIRE_NONE).is_none(), "two at once");
            assert!(queue.has_run().is_none());
        }
        assert!(!queue.has_work());
    }

    #[test]
    fn events_beyond_the_limit_are_counted_and_reported_first() {
        let mut queue = Queue::default();
        let number = watching(&mut queue, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
        let registration = queue.get(MPI_T_event_registration(number));
        registration
            .expect("a registration")
            .set_dropped_handler(Some(loses));
        for at in 0..LONGEST + 3 {
            queue.raise(None, instance(at as i64));
        }
        match queue.take(MPI_T_CB_REQUIRE_MPI_RESTRICTED) {
            Some(Next::Dropped(of, _, _, 3)) => assert_eq!(of, number),
            _ => panic!("no report of dropped events"),
        }
        queue.has_run();
        let next = queue.take(MPI_T_CB_REQUIRE_MPI_RESTRICTED);
        assert!(matches!(next, Some(Next::Callback(_, _, found)) if found == instance(0)));
    }

    #[test]
    fn a_registration_that_is_freed_in_its_callback_ends_after_it() {
        let mut queue = Queue::default();
        let number = watching(&mut queue, MPI_T_CB_REQUIRE_NONE);
        queue.raise(None, instance(1));
        queue.raise(None, instance(2));
        assert!(queue.take(MPI_T_CB_REQUIRE_NONE).is_some());
        let freed = queue.remove(MPI_T_event_registration(number), FreeCallback::default());
        assert!(matches!(freed, Ok(None)));
        assert!(queue.has_run().is_some());
        assert!(!queue.has_work());
    }
}
