//! Barriers that were started, in order: one at a time is on the wire.
//!
//! A started barrier has a number, its ticket, counting from 1, and all members start them in the same order.
//! Barrier n enters the wire when barrier n-1 has been released, so the hardware's n-th release is that of ticket n, everywhere.
//!
//! `released <= entered <= started`, and the first two never differ by more than one.

use crate::port::Gate;
use std::task::Poll;
use std::time::{Duration, Instant};

pub struct Queue {
    /// Gone once the hardware is left for good; dropping it makes it idle.
    wire: Option<Box<dyn Gate>>,
    started: u64,
    entered: u64,
    released: u64,
    /// No barrier enters the wire any more.
    stopped: bool,
    /// When the barrier on the wire entered it.
    since: Instant,
}

/// How a barrier ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Released,
    /// The hardware will never release it.
    Abandoned,
}

impl Queue {
    pub fn new(wire: Box<dyn Gate>) -> Queue {
        Queue {
            wire: Some(wire),
            started: 0,
            entered: 0,
            released: 0,
            stopped: false,
            since: Instant::now(),
        }
    }

    /// Starts a barrier and gives its ticket.
    pub fn start(&mut self) -> u64 {
        self.started += 1;
        self.started
    }

    /// Looks at the wire, and lets the next barrier enter when the one before has been released.
    pub fn drive(&mut self) -> Result<(), String> {
        let Some(wire) = &mut self.wire else {
            return Ok(());
        };
        loop {
            if self.released < self.entered {
                match wire.poll()? {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(()) => self.released = self.entered,
                }
            }
            if self.stopped || self.entered == self.started {
                return Ok(());
            }
            // Entered even if the port fails, for the level may have reached the wire and released the others.
            self.entered += 1;
            self.since = Instant::now();
            wire.enter()?;
        }
    }

    /// Whether the release wakes this process while it sleeps in the kernel.
    pub fn wakes_sleepers(&mut self) -> bool {
        let wire = self.wire.as_mut();
        wire.is_some_and(|wire| wire.wakes_sleepers())
    }

    /// Sleeps in the kernel until the barrier on the wire may have been released, for at most `limit`.
    pub fn sleep(&mut self, limit: Duration) -> Result<(), String> {
        if self.released < self.entered
            && let Some(wire) = &mut self.wire
            && wire.poll_asleep(limit)?.is_ready()
        {
            self.released = self.entered;
        }
        Ok(())
    }

    pub fn over(&self, ticket: u64) -> Poll<Over> {
        if ticket <= self.released {
            Poll::Ready(Over::Released)
        } else if self.wire.is_none() {
            Poll::Ready(Over::Abandoned)
        } else {
            Poll::Pending
        }
    }

    /// How often this node has entered.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// How many barriers the wire has released here.
    pub fn released(&self) -> u64 {
        self.released
    }

    /// How long the barrier on the wire has been waiting for its release.
    pub fn waiting(&self) -> Option<Duration> {
        (self.released < self.entered).then(|| self.since.elapsed())
    }

    /// From now on nothing enters the wire; what is on it may still be released.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// The hardware has released so many barriers and will release no other.
    pub fn leave(&mut self, released: u64) {
        drop(self.leave_with_wire(released));
    }

    /// The same, but the wire stays as it is and is the caller's.
    pub fn leave_with_wire(&mut self, released: u64) -> Option<Box<dyn Gate>> {
        self.released = released.min(self.entered);
        self.close()
    }

    /// Takes the wire out of use; dropping it makes it idle.
    pub fn close(&mut self) -> Option<Box<dyn Gate>> {
        self.wire.take()
    }

    /// Whether the hardware has been left.
    pub fn is_closed(&self) -> bool {
        self.wire.is_none()
    }
}
