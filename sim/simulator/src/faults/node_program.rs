//! The program of a node in a campaign, with the driver as MPI uses it (crate `coll-hwbarr`).
//!
//! Open, agree, self-test, agree, barriers, agree, close.
//! A node whose barrier is not released within the limit reports it, enters no further one and keeps its wire until all agree:
//! a withdrawal by one node only could complete a barrier in which others wait.

use crate::virtual_time::{Disagreement, Host, NodeBarriers, Parameters, Protocol, Random, Time};
use barrier_driver::SelfTest;
use std::time::Duration;

/// The parameters of every node's program.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Number of barriers after the self-test.
    pub barriers: usize,
    /// Minimum computing time of a node before each barrier.
    pub compute: Time,
    /// Maximum additional random computing time.
    pub spread: Time,
    /// Additional computing time when it is the node's turn to be the last.
    pub late: Time,
    /// How long the self-test watches a barrier that must not release.
    pub hold: Time,
    /// Time limit for a release.
    pub limit: Time,
    /// Number of nodes, from the last, that are late in the self-test.
    pub late_nodes: usize,
    /// Seed of the computing times.
    pub seed: u64,
}

/// The end of a node's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramOutcome {
    /// The program passed all barriers and closed them.
    Finished,
    /// No node started, because this node reported an error.
    Refused {
        /// The node.
        node: usize,
        /// Its driver's message.
        sentence: String,
    },
    /// A barrier was not released in time.
    TimedOut {
        /// The first node that reported it.
        node: usize,
        /// Its driver's message.
        sentence: String,
    },
    /// The wire could not be made idle.
    NotClosed {
        /// The driver's message.
        sentence: String,
    },
}

impl ProgramOutcome {
    fn refused(Disagreement { node, sentence }: Disagreement) -> Self {
        Self::Refused { node, sentence }
    }
}

/// Runs the program of a node.
pub fn run_program(host: &Host<'_>, plan: &Plan, parameters: &Parameters) -> ProgramOutcome {
    let mut node_barriers = match NodeBarriers::open(host, parameters) {
        Ok(node_barriers) => node_barriers,
        Err(refusal) => return ProgramOutcome::refused(refusal),
    };
    let nanoseconds = |time: Time| Duration::from_nanos(time.ns());
    let test = SelfTest {
        me: host.node(),
        hold: nanoseconds(plan.hold),
        limit: nanoseconds(plan.limit),
    };
    let late = (0..host.nodes()).rev().take(plan.late_nodes);
    let tested = node_barriers.self_test(test, late, plan.hold);
    if let Err(refusal) = host.agree(tested) {
        return ProgramOutcome::refused(refusal);
    }
    if parameters.protocol != Protocol::Toggle
        && let Err(refusal) = host.agree(node_barriers.begin(Some(plan.limit)))
    {
        return ProgramOutcome::refused(refusal);
    }
    let mut random = Random::new(plan.seed, host.node());
    let mut passed = Ok(());
    for number in 0..plan.barriers {
        // Each node in turn is the last of a rising and of a falling barrier.
        let last = number > 0 && (number - 1) / 2 % host.nodes() == host.node();
        let late = if last { plan.late } else { Time::ZERO };
        host.compute(plan.compute + plan.spread.scaled(random.unit()) + late);
        host.enter();
        passed = node_barriers
            .enter(number)
            .and_then(|()| node_barriers.wait(number, Some(plan.limit)));
        if passed.is_err() {
            break;
        }
        host.leave();
    }
    let agreed = host.agree(passed);
    let closed = node_barriers.close();
    match (agreed, closed) {
        (Err(complaint), _) => ProgramOutcome::TimedOut {
            node: complaint.node,
            sentence: complaint.sentence,
        },
        (Ok(()), Err(sentence)) => ProgramOutcome::NotClosed { sentence },
        (Ok(()), Ok(())) => ProgramOutcome::Finished,
    }
}
