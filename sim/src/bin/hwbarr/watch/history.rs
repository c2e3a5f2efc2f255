//! What is made of the looks at a board.
//!
//! The board's own clock dates each look, so a slow screen does not make a fast barrier slow.
//! Which node is late is what the looks show: a node that is out while others are in keeps them waiting at that moment.

use sim::live::Snapshot;
use std::collections::VecDeque;

/// One look at a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight {
    pub nodes: usize,
    pub board: Snapshot,
    /// The nodes that a process drives.
    pub connected: u64,
}

/// What a node does, as its wires show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Out of the barrier, as all others are.
    Out,
    /// In the barrier, waiting for the others.
    In,
    /// Out of the barrier, while others are in it.
    Awaited,
    /// No process drives its wire.
    Nobody,
}

/// All looks so far, as far as they are still of interest.
#[derive(Debug)]
pub struct History {
    /// What the board is called.
    pub title: String,
    last: Sight,
    /// When and how many releases, for as long as the rate is averaged.
    recent: VecDeque<(u64, u64)>,
    /// Barriers per second from look to look.
    rates: VecDeque<u64>,
    /// When a node was first seen in the present barrier.
    since_ns: Option<u64>,
    /// At how many looks some were in the barrier and others not, and at how many of them each node was not.
    looks: u64,
    awaited: Vec<u64>,
}

/// The rate is an average of so long.
const AVERAGE_NS: u64 = 2_000_000_000;
/// So many rates are kept for a picture of them.
const RATES: usize = 256;

impl Sight {
    /// The wires that exist, as a mask.
    fn wires(&self) -> u64 {
        u64::MAX >> (64 - self.nodes.clamp(1, 64))
    }

    /// The nodes that are in the barrier.
    pub fn entered(&self) -> u64 {
        self.board.arrived() & self.wires()
    }

    /// The nodes that others wait for; none while none waits.
    pub fn missing(&self) -> u64 {
        match self.entered() {
            0 => 0,
            entered => self.wires() & !entered,
        }
    }

    pub fn phase(&self, node: usize) -> Phase {
        let has = |mask: u64| mask >> node & 1 == 1;
        if has(self.entered()) {
            Phase::In
        } else if !has(self.connected) {
            Phase::Nobody
        } else if has(self.missing()) {
            Phase::Awaited
        } else {
            Phase::Out
        }
    }

    /// The level of this node's wire.
    pub fn wire(&self, node: usize) -> bool {
        self.board.inputs >> node & 1 == 1
    }

    /// The level of the barrier's wires.
    pub fn output(&self) -> bool {
        self.board.outputs != 0
    }
}

impl History {
    pub fn new(title: String, first: Sight) -> Self {
        let mut history = Self {
            title,
            last: first,
            recent: VecDeque::new(),
            rates: VecDeque::new(),
            since_ns: None,
            looks: 0,
            awaited: vec![0; first.nodes],
        };
        history.note(first);
        history
    }

    /// The next look.
    pub fn see(&mut self, sight: Sight) {
        let (was, is) = (self.last.board, sight.board);
        let passed = is.at_ns.saturating_sub(was.at_ns).max(1);
        let releases = is.releases.saturating_sub(was.releases);
        let rate = u128::from(releases) * 1_000_000_000 / u128::from(passed);
        self.rates
            .push_back(u64::try_from(rate).unwrap_or(u64::MAX));
        if self.rates.len() > RATES {
            self.rates.pop_front();
        }
        if releases != 0 || sight.entered() == 0 {
            self.since_ns = None;
        }
        self.last = sight;
        self.note(sight);
    }

    fn note(&mut self, sight: Sight) {
        let now = sight.board.at_ns;
        self.recent.push_back((now, sight.board.releases));
        // One look older than the average is kept, for the average to begin at.
        while matches!(self.recent.get(1), Some((at, _)) if now.saturating_sub(*at) >= AVERAGE_NS) {
            self.recent.pop_front();
        }
        if sight.entered() != 0 {
            self.since_ns.get_or_insert(now);
        }
        if sight.missing() != 0 {
            self.looks += 1;
            for (node, awaited) in self.awaited.iter_mut().enumerate() {
                *awaited += sight.missing() >> node & 1;
            }
        }
    }

    pub fn last(&self) -> &Sight {
        &self.last
    }

    /// Barriers per second, on average over the last two; `None` before the second look.
    pub fn rate(&self) -> Option<f64> {
        let ((from, before), (to, after)) = self.recent.front().zip(self.recent.back())?;
        let seconds = to.checked_sub(*from).filter(|ns| *ns > 0)? as f64 / 1e9;
        Some(after.saturating_sub(*before) as f64 / seconds)
    }

    /// Barriers per second from look to look, the newest last.
    pub fn rates(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
        self.rates.iter().copied()
    }

    /// For how many seconds a node has been seen in the present barrier.
    pub fn waited(&self) -> Option<f64> {
        let since = self.since_ns?;
        Some(self.last.board.at_ns.saturating_sub(since) as f64 / 1e9)
    }

    /// The nodes that were awaited, with the part of the looks at which they were; the most awaited first.
    pub fn laggards(&self) -> Vec<(usize, f64)> {
        let part = |awaited: u64| awaited as f64 / self.looks.max(1) as f64;
        let awaited = self.awaited.iter().enumerate().filter(|(_, a)| **a > 0);
        let mut laggards: Vec<_> = awaited.map(|(node, a)| (node, part(*a))).collect();
        laggards.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        laggards
    }
}

/// The numbers in a mask, as people write them: 0-3, 7 and 9.
pub fn spelled(mask: u64) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for node in (0..64).filter(|node| mask >> node & 1 == 1) {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == node => *end = node,
            _ => runs.push((node, node)),
        }
    }
    let spelled: Vec<_> = runs
        .iter()
        .map(|(from, to)| match to - from {
            0 => from.to_string(),
            1 => format!("{from}, {to}"),
            _ => format!("{from}-{to}"),
        })
        .collect();
    match spelled.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        all => all.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(at_ms: u64, inputs: u64, outputs: u64, releases: u64) -> Sight {
        Sight {
            nodes: 4,
            board: Snapshot {
                at_ns: at_ms * 1_000_000,
                inputs,
                outputs,
                releases,
            },
            connected: 0b0111,
        }
    }

    fn phases(sight: Sight) -> Vec<Phase> {
        (0..4).map(|node| sight.phase(node)).collect()
    }

    #[test]
    fn wires_show_what_a_node_does_in_either_direction() {
        use Phase::{Awaited, In, Nobody, Out};
        assert_eq!(phases(sight(0, 0, 0, 0)), [Out, Out, Out, Nobody]);
        assert_eq!(
            phases(sight(0, 0b0001, 0, 0)),
            [In, Awaited, Awaited, Nobody]
        );
        assert_eq!(
            phases(sight(0, 0b1110, 0b1111, 1)),
            [In, Awaited, Awaited, Nobody]
        );
        assert_eq!(sight(0, 0b0001, 0, 0).missing(), 0b1110);
    }

    #[test]
    fn the_rate_is_an_average_by_the_boards_clock() {
        let mut history = History::new(String::new(), sight(1000, 0, 0, 0));
        assert_eq!(history.rate(), None);
        for look in 1..=50u64 {
            history.see(sight(1000 + look * 100, 0, 0, look * 5));
        }
        assert_eq!(history.rate(), Some(50.0));
        assert!(history.rates().all(|rate| rate == 50));
        // A stop is seen at once from look to look, and at last in the average.
        for look in 51..=71 {
            history.see(sight(1000 + look * 100, 0, 0, 250));
        }
        assert_eq!(history.rates().next_back(), Some(0));
        assert_eq!(history.rate(), Some(0.0));
    }

    #[test]
    fn waiting_is_counted_from_the_first_look_at_this_barrier() {
        let mut history = History::new(String::new(), sight(0, 0, 0, 0));
        assert_eq!(history.waited(), None);
        history.see(sight(500, 0b0001, 0, 0));
        history.see(sight(1500, 0b0011, 0, 0));
        assert_eq!(history.waited(), Some(1.0));
        // Released, and a node is in the next one already.
        history.see(sight(2000, 0b1110, 0b1111, 1));
        assert_eq!(history.waited(), Some(0.0));
        history.see(sight(2500, 0b1111, 0b1111, 1));
        assert_eq!(history.waited(), None);
    }

    #[test]
    fn the_most_awaited_come_first() {
        let mut history = History::new(String::new(), sight(0, 0, 0, 0));
        for (at, inputs) in [(1, 0b0001), (2, 0b0011), (3, 0b1011), (4, 0b1011)] {
            history.see(sight(at, inputs, 0, 0));
        }
        assert_eq!(history.laggards(), [(2, 1.0), (3, 0.5), (1, 0.25)]);
    }

    #[test]
    fn numbers_are_spelled_with_runs() {
        assert_eq!(spelled(0), "");
        assert_eq!(spelled(0b1000), "3");
        assert_eq!(spelled(0b1001), "0 and 3");
        assert_eq!(spelled(0b1011), "0, 1 and 3");
        assert_eq!(spelled(0b1_0000_1111_0110), "1, 2, 4-7 and 12");
        assert_eq!(spelled(u64::MAX), "0-63");
    }
}
