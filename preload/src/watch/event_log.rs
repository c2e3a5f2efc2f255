//! The event log of this rank, in the format of Portcullis's own ranks.
//!
//! Each pair of sender and receiver counts its messages by communicator and tag.
//! So the trace pairs each receive with its send.
//! A receive without wildcards gets its message's sequence number when it is posted,
//! since messages match receives in that order.
//! A receive with a wildcard gets the number when it completes.

use super::comms::Communicator;
use mpi_base::node::{Event, EventKind, Played};
use mpi_core::coll::CallSignature;
use mpi_core::pml::Context;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;

/// Message counts by (context, peer, tag).
type Counters = HashMap<(u64, c_int, c_int), u64>;

#[derive(Debug)]
pub struct EventLog {
    events: VecDeque<Event>,
    /// Maximum number of events in the log.
    capacity: usize,
    lost: u64,
    sent: Counters,
    received: Counters,
    /// True if the latest event is a test or probe without a result.
    is_poll: bool,
}

/// A received message.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    pub source: c_int,
    pub tag: c_int,
    pub bytes: u64,
    /// The message's sequence number, if assigned when the receive was posted.
    pub number: Option<u64>,
}

fn context(comm: &Communicator) -> u64 {
    Context::numbered(comm.number).0
}

fn next(counters: &mut Counters, key: (u64, c_int, c_int)) -> u64 {
    let count = counters.entry(key).or_default();
    *count += 1;
    *count
}

impl EventLog {
    pub fn new(capacity: usize) -> EventLog {
        EventLog {
            events: VecDeque::new(),
            capacity,
            lost: 0,
            sent: Counters::new(),
            received: Counters::new(),
            is_poll: false,
        }
    }

    fn write(&mut self, event: Event) {
        self.is_poll = false;
        if self.capacity == 0 {
            self.lost += 1;
            return;
        }
        if self.events.len() >= self.capacity {
            self.events.pop_front();
            self.lost += 1;
        }
        self.events.push_back(event);
    }

    /// Records a call that has returned.
    pub fn call(&mut self, call: u16, thread: u32, began: u64, until: u64) {
        self.write(Event {
            until,
            call,
            thread,
            ..Event::new(EventKind::Call, began)
        });
    }

    /// Records a test or probe without a result; consecutive polls are merged into one event.
    pub fn poll(&mut self, call: u16, thread: u32, began: u64, until: u64) {
        if self.is_poll
            && let Some(last) = self.events.back_mut()
            && (last.call, last.thread) == (call, thread)
        {
            last.until = until;
            return;
        }
        self.call(call, thread, began, until);
        self.is_poll = true;
    }

    /// Records a message sent to a rank of a communicator.
    pub fn sends(&mut self, comm: &Communicator, peer: c_int, tag: c_int, bytes: u64, at: u64) {
        let to = comm.in_job(peer);
        let number = next(&mut self.sent, (context(comm), to, tag));
        self.write(Event {
            peer: to,
            tag,
            comm: context(comm),
            bytes,
            number,
            extra: u64::from(comm.rank as u32),
            ..Event::new(EventKind::Sent, at)
        });
    }

    /// Counts a receive posted for this source and tag.
    /// Returns the sequence number of the matching message.
    pub fn posts(&mut self, comm: &Communicator, source: c_int, tag: c_int) -> u64 {
        next(&mut self.received, (context(comm), source, tag))
    }

    /// Withdraws a cancelled receive, so that the next receive gets the same sequence number.
    pub fn unposts(&mut self, comm: &Communicator, source: c_int, tag: c_int) {
        let count = self
            .received
            .entry((context(comm), source, tag))
            .or_default();
        *count = count.saturating_sub(1);
    }

    /// Records a received message.
    pub fn receives(&mut self, comm: &Communicator, arrived: Arrived, at: u64) {
        let Arrived {
            source, tag, bytes, ..
        } = arrived;
        let number = arrived
            .number
            .unwrap_or_else(|| self.posts(comm, source, tag));
        self.write(Event {
            peer: source,
            tag,
            comm: context(comm),
            bytes,
            number,
            ..Event::new(EventKind::Received, at)
        });
    }

    /// Records the start of a collective operation.
    pub fn rounds(&mut self, comm: &Communicator, round: u64, signature: &CallSignature, at: u64) {
        let [call, root, op, bytes] = signature.words();
        self.write(Event {
            call: call as u16,
            peer: root as c_int,
            comm: comm.number,
            bytes,
            number: round,
            extra: op,
            ..Event::new(EventKind::Round, at)
        });
    }

    /// Records the number of hardware barriers that were entered and released on a wire.
    pub fn wire(&mut self, wire: u32, entered: u64, released: u64, at: u64) {
        self.write(Event {
            peer: wire as c_int,
            number: entered,
            extra: released,
            ..Event::new(EventKind::Wire, at)
        });
    }

    /// Removes and returns all events.
    pub fn take(&mut self) -> Played {
        Played {
            events: std::mem::take(&mut self.events).into(),
            lost: self.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_drops_the_oldest_events_and_repeated_polls_are_one_event() {
        let mut event_log = EventLog::new(2);
        event_log.call(1, 7, 0, 1);
        event_log.poll(2, 7, 2, 3);
        event_log.poll(2, 7, 4, 5);
        event_log.poll(3, 7, 6, 7);
        event_log.poll(3, 8, 8, 9);
        let played = event_log.take();
        let times: Vec<_> = played
            .events
            .iter()
            .map(|e| (e.call, e.at, e.until))
            .collect();
        assert_eq!(times, [(3, 6, 7), (3, 8, 9)]);
        assert_eq!(played.lost, 2);
    }
}
