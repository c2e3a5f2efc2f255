//! The queue of started barriers, of which at most one at a time is on the wire.
//!
//! Each started barrier has a ticket, its number from 1; all members start barriers in the same order.
//! Barrier n enters the wire after the release of barrier n-1,
//! so the n-th release of the hardware belongs to ticket n at every member.
//!
//! Invariant: `released <= entered <= started` and `entered - released <= 1`.

use crate::port::Barrier;
use std::task::Poll;
use std::time::{Duration, Instant};

pub struct Queue {
    /// The wire, which is idle when dropped; `None` after the members have stopped using the hardware.
    wire: Option<Box<dyn Barrier>>,
    started: u64,
    entered: u64,
    released: u64,
    /// True if no further barrier may enter the wire.
    stopped: bool,
    /// Time at which the current barrier entered the wire.
    since: Instant,
}

/// The result of a barrier that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    Released,
    /// The hardware will never release this barrier; it is performed in software.
    Abandoned,
}

impl Queue {
    pub fn new(wire: Box<dyn Barrier>) -> Queue {
        Queue {
            wire: Some(wire),
            started: 0,
            entered: 0,
            released: 0,
            stopped: false,
            since: Instant::now(),
        }
    }

    /// Starts a barrier and returns its ticket.
    pub fn start(&mut self) -> u64 {
        self.started += 1;
        self.started
    }

    /// Polls the wire, and enters the next barrier if the previous one was released.
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
            // The barrier counts as entered even if the port reports an error:
            // the new level may have reached the wire and released the other nodes.
            self.entered += 1;
            self.since = Instant::now();
            wire.enter()?;
        }
    }

    /// Returns true if a release can wake this process while it sleeps in the kernel.
    pub fn wakes_sleepers(&mut self) -> bool {
        let wire = self.wire.as_mut();
        wire.is_some_and(|wire| wire.wakes_sleepers())
    }

    /// Sleeps in the kernel until a possible release of the barrier on the wire, at most `limit`.
    pub fn sleep(&mut self, limit: Duration) -> Result<(), String> {
        if self.released < self.entered
            && let Some(wire) = &mut self.wire
            && wire.poll_asleep(limit)?.is_ready()
        {
            self.released = self.entered;
        }
        Ok(())
    }

    pub fn over(&self, ticket: u64) -> Poll<Completion> {
        if ticket <= self.released {
            Poll::Ready(Completion::Released)
        } else if self.wire.is_none() {
            Poll::Ready(Completion::Abandoned)
        } else {
            Poll::Pending
        }
    }

    /// Returns the number of barriers that this node has entered on the wire.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// Returns the number of barriers whose release this node has seen.
    pub fn released(&self) -> u64 {
        self.released
    }

    /// Returns the time since the barrier on the wire entered; `None` if no barrier is on the wire.
    pub fn waiting(&self) -> Option<Duration> {
        (self.released < self.entered).then(|| self.since.elapsed())
    }

    /// Prevents further entries; the barrier on the wire may still be released.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Stops using the hardware, which has released `released` barriers and will release no others.
    pub fn leave(&mut self, released: u64) {
        drop(self.leave_with_wire(released));
    }

    /// As [`leave`](Self::leave), but returns the wire without setting it to idle.
    pub fn leave_with_wire(&mut self, released: u64) -> Option<Box<dyn Barrier>> {
        self.released = released.min(self.entered);
        self.close()
    }

    /// Removes and returns the wire; dropping the result sets the wire to idle.
    pub fn close(&mut self) -> Option<Box<dyn Barrier>> {
        self.wire.take()
    }

    /// Returns true if the members have stopped using the hardware.
    pub fn is_closed(&self) -> bool {
        self.wire.is_none()
    }
}
