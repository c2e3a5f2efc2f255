//! What is made of the looks at a board.
//!
//! The board's own clock dates each look, so a slow screen does not make a fast barrier slow.
//! Which node is late is what the looks show: a node that is out while others are in keeps them waiting at that moment.

use sim::live::Look;
use std::collections::VecDeque;

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
    Undriven,
}

/// All looks so far, as far as they are still of interest.
#[derive(Debug)]
pub struct History {
    /// What the board is called.
    pub title: String,
    /// Whether it is a board of version 2, which shows an onlooker its nodes and releases, and no wires.
    pub has_channels: bool,
    last: Look,
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

/// What a look shows of the nodes.
pub trait Nodes {
    /// The nodes that are in the barrier.
    fn entered(&self) -> Vec<usize>;
    /// The nodes that others wait for; none while none waits.
    fn missing(&self) -> Vec<usize>;
    /// The nodes that a process drives.
    fn connected(&self) -> Vec<usize>;
    /// The nodes whose wire is high.
    fn high(&self) -> Vec<usize>;
    /// What each node does, in order.
    fn phases(&self) -> Vec<Phase>;
}

impl Nodes for Look {
    fn entered(&self) -> Vec<usize> {
        numbers(self, |(level, _)| level != self.output)
    }

    fn missing(&self) -> Vec<usize> {
        match self.nodes.iter().any(|(level, _)| *level != self.output) {
            true => numbers(self, |(level, _)| level == self.output),
            false => Vec::new(),
        }
    }

    fn connected(&self) -> Vec<usize> {
        numbers(self, |(_, driven)| driven)
    }

    fn high(&self) -> Vec<usize> {
        numbers(self, |(level, _)| level)
    }

    fn phases(&self) -> Vec<Phase> {
        let others_wait = self.nodes.iter().any(|(level, _)| *level != self.output);
        let phase = |(level, driven): &(bool, bool)| match (*level != self.output, *driven) {
            (true, _) => Phase::In,
            (false, false) => Phase::Undriven,
            (false, true) if others_wait => Phase::Awaited,
            (false, true) => Phase::Out,
        };
        self.nodes.iter().map(phase).collect()
    }
}

/// The numbers of the nodes of which this is true.
fn numbers(look: &Look, is_meant: impl Fn((bool, bool)) -> bool) -> Vec<usize> {
    let nodes = look.nodes.iter().enumerate();
    let meant = nodes.filter(|(_, node)| is_meant(**node));
    meant.map(|(number, _)| number).collect()
}

impl History {
    pub fn new(title: String, first: Look) -> Self {
        let mut history = Self {
            title,
            has_channels: false,
            recent: VecDeque::new(),
            rates: VecDeque::new(),
            since_ns: None,
            looks: 0,
            awaited: vec![0; first.nodes.len()],
            last: first,
        };
        history.note();
        history
    }

    /// The next look.
    pub fn see(&mut self, is: Look) {
        let was = &self.last;
        let passed = is.at_ns.saturating_sub(was.at_ns).max(1);
        let releases = is.releases.saturating_sub(was.releases);
        let rate = u128::from(releases) * 1_000_000_000 / u128::from(passed);
        self.rates
            .push_back(u64::try_from(rate).unwrap_or(u64::MAX));
        if self.rates.len() > RATES {
            self.rates.pop_front();
        }
        if releases != 0 || is.entered().is_empty() {
            self.since_ns = None;
        }
        self.last = is;
        self.note();
    }

    fn note(&mut self) {
        let now = self.last.at_ns;
        self.recent.push_back((now, self.last.releases));
        // One look older than the average is kept, for the average to begin at.
        while matches!(self.recent.get(1), Some((at, _)) if now.saturating_sub(*at) >= AVERAGE_NS) {
            self.recent.pop_front();
        }
        if !self.last.entered().is_empty() {
            self.since_ns.get_or_insert(now);
        }
        let missing = self.last.missing();
        self.looks += u64::from(!missing.is_empty());
        for node in missing {
            if let Some(awaited) = self.awaited.get_mut(node) {
                *awaited += 1;
            }
        }
    }

    pub fn last(&self) -> &Look {
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
        Some(self.last.at_ns.saturating_sub(since) as f64 / 1e9)
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

/// Growing numbers, as people write them: 0-3, 7 and 9.
pub fn spelled(nodes: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &node in nodes {
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
    use sim::live::Snapshot;

    fn sight(at_ms: u64, inputs: u64, outputs: u64, releases: u64) -> Look {
        let board = Snapshot {
            at_ns: at_ms * 1_000_000,
            inputs,
            outputs,
            releases,
        };
        Look::at(&board, 4, 0b0111)
    }

    fn phases(sight: Look) -> Vec<Phase> {
        sight.phases()
    }

    #[test]
    fn wires_show_what_a_node_does_in_either_direction() {
        use Phase::{Awaited, In, Out, Undriven};
        assert_eq!(phases(sight(0, 0, 0, 0)), [Out, Out, Out, Undriven]);
        assert_eq!(
            phases(sight(0, 0b0001, 0, 0)),
            [In, Awaited, Awaited, Undriven]
        );
        assert_eq!(
            phases(sight(0, 0b1110, 0b1111, 1)),
            [In, Awaited, Awaited, Undriven]
        );
        assert_eq!(sight(0, 0b0001, 0, 0).missing(), [1, 2, 3]);
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
        assert_eq!(spelled(&[]), "");
        assert_eq!(spelled(&[3]), "3");
        assert_eq!(spelled(&[0, 3]), "0 and 3");
        assert_eq!(spelled(&[0, 1, 3]), "0, 1 and 3");
        assert_eq!(spelled(&[1, 2, 4, 5, 6, 7, 12]), "1, 2, 4-7 and 12");
        let all: Vec<_> = (0..960).collect();
        assert_eq!(spelled(&all), "0-959");
    }
}
