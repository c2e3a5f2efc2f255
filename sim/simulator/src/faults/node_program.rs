//! The program of a node in a campaign;
//! it uses the driver like the MPI library (crate `coll-hwbarr`).
//!
//! The sequence is: open, agree, self-test, agree, barriers, agree, close.
//! A node whose barrier is not released within the limit reports the time-out and enters no further
//! barrier.
//! It leaves its wire unchanged until all nodes agree:
//! a single withdrawal could complete a barrier in which other nodes wait.

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
    /// Additional computing time of the node that is the last in a barrier.
    pub late: Time,
    /// Time for which the self-test checks that an incomplete barrier does not release.
    pub hold: Time,
    /// Time limit for the release of a barrier.
    pub limit: Time,
    /// Number of nodes that are late once in the self-test; they have the highest numbers.
    pub late_nodes: usize,
    /// Seed of the random computing times.
    pub seed: u64,
}

/// The result of a node's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramOutcome {
    /// The program completed all barriers and closed the driver.
    Finished,
    /// No node starts its barriers, because a node reported an error before.
    Refused {
        /// The node that reported the error.
        node: usize,
        /// The message of that node's driver.
        sentence: String,
    },
    /// A barrier was not released within the limit.
    TimedOut {
        /// The first node that reported the timeout.
        node: usize,
        /// The message of that node's driver.
        sentence: String,
    },
    /// The driver could not set the wire to the idle level.
    NotClosed {
        /// The message of the driver.
        sentence: String,
    },
}

impl ProgramOutcome {
    fn refused(Disagreement { node, sentence }: Disagreement) -> Self {
        Self::Refused { node, sentence }
    }
}

/// Runs the program of a node; returns its result.
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
        // Each node in turn is the last in one rising and one falling barrier.
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
