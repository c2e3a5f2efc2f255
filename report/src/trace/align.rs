//! Alignment of the clocks of several hosts, so that no message is received before it was sent.
//!
//! Two clocks that were compared as in [`super::clock`]
//! may still differ by more than a message's latency.
//! First the times of each host are shifted by the minimum that the messages require.
//! Each message from host A to host B is a lower bound for shift(B) - shift(A);
//! the least solution is found like longest paths (R. Bellman, 1958).
//! If this does not suffice, because a clock ran unevenly, receives are moved after their sends,
//! and later events of the receiving rank are moved, too, if necessary.
//! Source: R. Rabenseifner, "The controlled logical clock", 1997, without its second pass.

use super::{Arrow, Trace};
use mpi_base::node::{Event, EventKind};
use std::collections::{BTreeMap, HashMap};

impl Trace {
    /// Moves every receive after its send.
    pub fn align(&mut self) {
        let arrows = self.arrows();
        self.move_hosts(&arrows);
        if arrows.iter().any(|arrow| self.early(arrow) > 0) {
            self.move_receives(&arrows);
        }
    }

    /// Returns the time in nanoseconds by which a receive precedes its send, or 0 if it does not.
    fn early(&self, arrow: &Arrow) -> u64 {
        let (sent, received) = (self.event(arrow.from).at, self.event(arrow.to).at);
        sent.saturating_sub(received)
    }

    fn move_hosts(&mut self, arrows: &[Arrow]) {
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut hosts = Vec::with_capacity(self.lanes.len());
        for lane in &self.lanes {
            let next = numbers.len();
            hosts.push(*numbers.entry(&lane.host).or_insert(next));
        }
        let count = numbers.len();
        // The minimum of shift(second) - shift(first) for each pair of hosts; may be negative.
        let mut demands: BTreeMap<(usize, usize), i128> = BTreeMap::new();
        for arrow in arrows {
            let between = (hosts[arrow.from.0], hosts[arrow.to.0]);
            let sent = i128::from(self.event(arrow.from).at);
            let demand = sent - i128::from(self.event(arrow.to).at);
            if between.0 != between.1 {
                let most = demands.entry(between).or_insert(demand);
                *most = demand.max(*most);
            }
        }
        let mut later = vec![0i128; count];
        // In a solvable system one pass per host suffices;
        // the limit ends the loop if there is no solution.
        for _ in 0..count {
            for (&(from, to), demand) in &demands {
                later[to] = later[to].max(later[from] + demand);
            }
        }
        for (lane, host) in self.lanes.iter_mut().zip(hosts) {
            let by = u64::try_from(later[host]).unwrap_or(u64::MAX);
            if by > 0 {
                let events = lane.played.events.iter_mut();
                events.for_each(|event| change(event, |time| time.saturating_add(by)));
            }
        }
    }

    /// Processes the event rings in an order in which each send precedes its receive.
    fn move_receives(&mut self, arrows: &[Arrow]) {
        let senders: HashMap<(usize, usize), (usize, usize)> =
            arrows.iter().map(|arrow| (arrow.to, arrow.from)).collect();
        let mut seen = vec![0usize; self.lanes.len()];
        let mut moved: Vec<Moved> = vec![Moved::default(); self.lanes.len()];
        let mut any = true;
        while std::mem::take(&mut any) {
            for lane in 0..self.lanes.len() {
                while seen[lane] < self.lanes[lane].played.events.len() {
                    let place = seen[lane];
                    let sender = senders.get(&(lane, place)).copied();
                    if sender.is_some_and(|(other, at)| seen[other] <= at) {
                        break;
                    }
                    let sent = sender.map(|sender| self.event(sender).at);
                    let event = &mut self.lanes[lane].played.events[place];
                    change(event, |time| moved[lane].apply(time));
                    if let Some(sent) = sent
                        && event.kind == EventKind::Received
                        && event.at < sent
                    {
                        moved[lane].add(event.at, sent);
                        event.at = sent;
                    }
                    seen[lane] += 1;
                    any = true;
                }
            }
        }
    }
}

fn change(event: &mut Event, mut to: impl FnMut(u64) -> u64) {
    event.at = to(event.at);
    if event.until > 0 {
        event.until = to(event.until);
    }
}

/// The moved times of a rank: after a pair `(from, to)`, times from `from` on become at least `to`.
#[derive(Clone, Debug, Default)]
struct Moved(Vec<(u64, u64)>);

impl Moved {
    fn add(&mut self, from: u64, to: u64) {
        self.0.push((from, to));
    }

    /// Returns the moved time;
    /// the start of a call that began before the moved event stays unchanged.
    fn apply(&self, time: u64) -> u64 {
        let last = self.0.iter().rev().find(|(from, _)| *from <= time);
        last.map_or(time, |(_, to)| time.max(*to))
    }
}
