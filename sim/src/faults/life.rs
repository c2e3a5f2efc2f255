//! The life of a node in a campaign, with the driver as MPI uses it (crate `coll-hwbarr`).
//!
//! Open, agree, self-test, agree, barriers, agree, close.
//! A node whose barrier is not released within the limit says so, enters no more and keeps its wire as it is until all agree:
//! withdrawing alone could complete a barrier that others wait in.

use crate::virtual_time::{Disagreement, Gate, Host, Parameters, Protocol, Random, Time};
use barrier_driver::SelfTest;
use std::time::Duration;

/// What every node does.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// How many barriers the nodes pass after the self-test.
    pub barriers: usize,
    /// A node computes at least this long before each,
    pub compute: Time,
    /// up to this much longer,
    pub spread: Time,
    /// and when it is the node's turn to be the last, this much longer.
    pub late: Time,
    /// For how long the self-test looks at a barrier that must not open.
    pub hold: Time,
    /// How long a release may take.
    pub limit: Time,
    /// How many nodes, from the last, are late in the self-test.
    pub late_nodes: usize,
    /// Which of the possible computing times.
    pub seed: u64,
}

/// How a node's life ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// All went well.
    Finished,
    /// No node began, because this node complained.
    Refused {
        /// Which node.
        node: usize,
        /// What its driver said.
        sentence: String,
    },
    /// A barrier was not released in time.
    TimedOut {
        /// The first that said so.
        node: usize,
        /// What its driver said.
        sentence: String,
    },
    /// The wire could not be left idle.
    NotClosed {
        /// What the driver said.
        sentence: String,
    },
}

impl Fate {
    fn refused(Disagreement { node, sentence }: Disagreement) -> Self {
        Self::Refused { node, sentence }
    }
}

/// The program.
pub fn live(host: &Host<'_>, plan: &Plan, parameters: &Parameters) -> Fate {
    let mut gate = match Gate::open(host, parameters) {
        Ok(gate) => gate,
        Err(refusal) => return Fate::refused(refusal),
    };
    let nanoseconds = |time: Time| Duration::from_nanos(time.ns());
    let test = SelfTest {
        me: host.node(),
        hold: nanoseconds(plan.hold),
        limit: nanoseconds(plan.limit),
    };
    let late = (0..host.nodes()).rev().take(plan.late_nodes);
    let tested = gate.self_test(test, late, plan.hold);
    if let Err(refusal) = host.agree(tested) {
        return Fate::refused(refusal);
    }
    if parameters.protocol != Protocol::Toggle
        && let Err(refusal) = host.agree(gate.begin(Some(plan.limit)))
    {
        return Fate::refused(refusal);
    }
    let mut random = Random::new(plan.seed, host.node());
    let mut passed = Ok(());
    for number in 0..plan.barriers {
        // Each node in turn is the last of a barrier down and of a barrier up.
        let last = number > 0 && (number - 1) / 2 % host.nodes() == host.node();
        let late = if last { plan.late } else { Time::ZERO };
        host.compute(plan.compute + plan.spread.scaled(random.unit()) + late);
        host.enter();
        passed = gate
            .enter(number)
            .and_then(|()| gate.wait(number, Some(plan.limit)));
        if passed.is_err() {
            break;
        }
        host.leave();
    }
    let agreed = host.agree(passed);
    let closed = gate.close();
    match (agreed, closed) {
        (Err(complaint), _) => Fate::TimedOut {
            node: complaint.node,
            sentence: complaint.sentence,
        },
        (Ok(()), Err(sentence)) => Fate::NotClosed { sentence },
        (Ok(()), Ok(())) => Fate::Finished,
    }
}
