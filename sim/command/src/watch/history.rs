//! The history of a watched board, built from samples.
//!
//! The rate is computed from the board's own clock, so a slow terminal does not distort it.
//! A sample shows a late (*awaited*) node if the node
//! is outside the barrier while others are inside.

use barrier_board::live::Look;
use std::collections::VecDeque;

/// A node's state according to its wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The node is outside the barrier, and no node waits for it.
    Out,
    /// The node is in the barrier and waits for other nodes.
    In,
    /// The node is outside the barrier, while other nodes wait in it.
    Awaited,
    /// No process drives the node's wire.
    Undriven,
}

/// The history of a board: the latest samples, and sums over all samples.
#[derive(Debug)]
pub struct History {
    /// The board's name on the screen.
    pub title: String,
    last: Look,
    /// Time in ns and number of releases of the samples in the averaging period of the rate.
    recent: VecDeque<(u64, u64)>,
    /// Barriers per second between successive samples.
    rates: VecDeque<u64>,
    /// For each barrier of the board, the time in ns at which a node was
    /// first seen in the barrier in progress; `None` if no node is in it.
    since_ns: Vec<Option<u64>>,
    /// Number of samples with some nodes in the barrier and others outside;
    /// `awaited` has, for each node, the number of these samples in which the node was outside.
    looks: u64,
    awaited: Vec<u64>,
}

/// The averaging period of the rate, in nanoseconds.
const AVERAGE_NS: u64 = 2_000_000_000;
/// Maximum number of rates kept for the chart.
const RATES: usize = 256;

/// The nodes of a sample, selected by state.
pub trait Nodes {
    /// Returns the nodes that are in the barrier.
    fn entered(&self) -> Vec<usize>;
    /// Returns the nodes for which other nodes wait; empty if no node waits.
    fn missing(&self) -> Vec<usize>;
    /// Returns the nodes that a process drives.
    fn connected(&self) -> Vec<usize>;
    /// Returns the nodes whose wire is high.
    fn high(&self) -> Vec<usize>;
    /// Returns the state of each node, in the order of their numbers.
    fn phases(&self) -> Vec<Phase>;
}

impl Nodes for Look {
    fn entered(&self) -> Vec<usize> {
        if !self.channels.is_empty() {
            return of_mask(self.channels.iter().fold(0, |all, c| all | c.arrived));
        }
        numbers(self, |(level, _)| level != self.output)
    }

    fn missing(&self) -> Vec<usize> {
        if !self.channels.is_empty() {
            return of_mask(self.channels.iter().fold(0, |all, c| all | c.missing()));
        }
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
        if !self.channels.is_empty() {
            return channel_phases(self);
        }
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

/// Returns the state of each node of a version 2 board.
/// A node is `Awaited` if a channel waits for it, and otherwise `In` if it waits in a channel.
fn channel_phases(look: &Look) -> Vec<Phase> {
    let (entered, missing) = (look.entered(), look.missing());
    let phase = |(node, (_, driven)): (usize, &(bool, bool))| match (
        missing.contains(&node),
        entered.contains(&node),
        *driven,
    ) {
        (true, _, true) => Phase::Awaited,
        (_, true, _) => Phase::In,
        (_, _, true) => Phase::Out,
        (_, _, false) => Phase::Undriven,
    };
    look.nodes.iter().enumerate().map(phase).collect()
}

/// Returns for each barrier of the board whether a node is in it, and its number of releases.
fn barriers(look: &Look) -> Vec<(bool, u64)> {
    if look.channels.is_empty() {
        return vec![(!look.entered().is_empty(), look.releases)];
    }
    let each = look.channels.iter();
    each.map(|channel| (channel.arrived != 0, channel.releases))
        .collect()
}

/// Returns the indices of the set bits.
pub fn of_mask(mask: u64) -> Vec<usize> {
    (0..64).filter(|node| mask >> node & 1 == 1).collect()
}

/// Returns the numbers of the nodes whose wire level and drive flag satisfy `is_meant`.
fn numbers(look: &Look, is_meant: impl Fn((bool, bool)) -> bool) -> Vec<usize> {
    let nodes = look.nodes.iter().enumerate();
    let meant = nodes.filter(|(_, node)| is_meant(**node));
    meant.map(|(number, _)| number).collect()
}

impl History {
    pub fn new(title: String, first: Look) -> Self {
        let mut history = Self {
            title,
            recent: VecDeque::new(),
            rates: VecDeque::new(),
            since_ns: vec![None; barriers(&first).len()],
            looks: 0,
            awaited: vec![0; first.nodes.len()],
            last: first,
        };
        history.note();
        history
    }

    /// Adds the next sample to the history.
    pub fn observe(&mut self, is: Look) {
        let was = &self.last;
        let passed = is.at_ns.saturating_sub(was.at_ns).max(1);
        let releases = is.releases.saturating_sub(was.releases);
        let rate = u128::from(releases) * 1_000_000_000 / u128::from(passed);
        self.rates
            .push_back(u64::try_from(rate).unwrap_or(u64::MAX));
        if self.rates.len() > RATES {
            self.rates.pop_front();
        }
        let each = barriers(was).into_iter().zip(barriers(&is));
        for (since, ((_, before), (entered, after))) in self.since_ns.iter_mut().zip(each) {
            if before != after || !entered {
                *since = None;
            }
        }
        self.last = is;
        self.note();
    }

    fn note(&mut self) {
        let now = self.last.at_ns;
        self.recent.push_back((now, self.last.releases));
        // The latest sample that is older than the period is kept, as the start of the average.
        while matches!(self.recent.get(1), Some((at, _)) if now.saturating_sub(*at) >= AVERAGE_NS) {
            self.recent.pop_front();
        }
        for (since, (entered, _)) in self.since_ns.iter_mut().zip(barriers(&self.last)) {
            if entered {
                since.get_or_insert(now);
            }
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

    /// Returns the barriers per second, averaged over the last two seconds;
    /// `None` if there is only one sample.
    pub fn rate(&self) -> Option<f64> {
        let ((from, before), (to, after)) = self.recent.front().zip(self.recent.back())?;
        let seconds = to.checked_sub(*from).filter(|ns| *ns > 0)? as f64 / 1e9;
        Some(after.saturating_sub(*before) as f64 / seconds)
    }

    /// Returns the barriers per second between successive samples, oldest first.
    pub fn rates(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
        self.rates.iter().copied()
    }

    /// Returns true for a board of version 2.
    pub fn has_channels(&self) -> bool {
        !self.last.channels.is_empty()
    }

    /// Returns the seconds since a node was first seen in the barrier in progress;
    /// `None` if no node is.
    /// On a board with several barriers, returns the longest of these times.
    pub fn waited(&self) -> Option<f64> {
        let since = self.since_ns.iter().flatten().min()?;
        Some(self.last.at_ns.saturating_sub(*since) as f64 / 1e9)
    }

    /// Returns the nodes that were awaited, most frequently awaited nodes first.
    /// Each has its fraction of the samples in which some node was awaited.
    pub fn laggards(&self) -> Vec<(usize, f64)> {
        let part = |awaited: u64| awaited as f64 / self.looks.max(1) as f64;
        let awaited = self.awaited.iter().enumerate().filter(|(_, a)| **a > 0);
        let mut laggards: Vec<_> = awaited.map(|(node, a)| (node, part(*a))).collect();
        laggards.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        laggards
    }
}

/// Formats ascending node numbers as text, such as `0-3, 7 and 9`.
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
    use barrier_board::live::{ChannelLook, Snapshot};

    fn observation(at_ms: u64, inputs: u64, outputs: u64, releases: u64) -> Look {
        let board = Snapshot {
            at_ns: at_ms * 1_000_000,
            inputs,
            outputs,
            releases,
        };
        Look::at(&board, 4, 0b0111)
    }

    fn phases(observation: Look) -> Vec<Phase> {
        observation.phases()
    }

    #[test]
    fn wires_show_what_a_node_does_in_either_direction() {
        use Phase::{Awaited, In, Out, Undriven};
        assert_eq!(phases(observation(0, 0, 0, 0)), [Out, Out, Out, Undriven]);
        assert_eq!(
            phases(observation(0, 0b0001, 0, 0)),
            [In, Awaited, Awaited, Undriven]
        );
        assert_eq!(
            phases(observation(0, 0b1110, 0b1111, 1)),
            [In, Awaited, Awaited, Undriven]
        );
        assert_eq!(observation(0, 0b0001, 0, 0).missing(), [1, 2, 3]);
    }

    #[test]
    fn the_rate_is_an_average_by_the_boards_clock() {
        let mut history = History::new(String::new(), observation(1000, 0, 0, 0));
        assert_eq!(history.rate(), None);
        for look in 1..=50u64 {
            history.observe(observation(1000 + look * 100, 0, 0, look * 5));
        }
        assert_eq!(history.rate(), Some(50.0));
        assert!(history.rates().all(|rate| rate == 50));
        // When the barriers stop,
        // the rate between samples drops immediately, and the average later.
        for look in 51..=71 {
            history.observe(observation(1000 + look * 100, 0, 0, 250));
        }
        assert_eq!(history.rates().next_back(), Some(0));
        assert_eq!(history.rate(), Some(0.0));
    }

    #[test]
    fn waiting_is_counted_from_the_first_sample_of_this_barrier() {
        let mut history = History::new(String::new(), observation(0, 0, 0, 0));
        assert_eq!(history.waited(), None);
        history.observe(observation(500, 0b0001, 0, 0));
        history.observe(observation(1500, 0b0011, 0, 0));
        assert_eq!(history.waited(), Some(1.0));
        // The barrier has released once, and one node has already entered the next barrier.
        history.observe(observation(2000, 0b1110, 0b1111, 1));
        assert_eq!(history.waited(), Some(0.0));
        history.observe(observation(2500, 0b1111, 0b1111, 1));
        assert_eq!(history.waited(), None);
    }

    /// One channel releases in every sample;
    /// the waiting time of another channel is counted from the entry into that channel.
    #[test]
    fn waiting_in_a_channel_does_not_end_by_the_release_of_another_one() {
        let look = |at_ms: u64, releases| {
            let busy = ChannelLook {
                members: 0b0110,
                releases,
                ..ChannelLook::default()
            };
            let waiting = ChannelLook {
                members: 0b0011,
                arrived: 0b0001,
                ..ChannelLook::default()
            };
            observation(at_ms, 0, 0, releases).with_channels(vec![busy, waiting])
        };
        let mut history = History::new(String::new(), look(0, 0));
        history.observe(look(500, 3));
        history.observe(look(1500, 9));
        assert_eq!(history.waited(), Some(1.5));
        assert_eq!(history.last().missing(), [1]);
        assert_eq!(history.laggards(), [(1, 1.0)]);
        use Phase::{Awaited, In, Out, Undriven};
        assert_eq!(history.last().phases(), [In, Awaited, Out, Undriven]);
    }

    #[test]
    fn the_most_awaited_come_first() {
        let mut history = History::new(String::new(), observation(0, 0, 0, 0));
        for (at, inputs) in [(1, 0b0001), (2, 0b0011), (3, 0b1011), (4, 0b1011)] {
            history.observe(observation(at, inputs, 0, 0));
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
