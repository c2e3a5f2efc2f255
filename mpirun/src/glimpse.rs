//! What a rank was seen doing, as launchers tell each other and as reports are made of.
//!
//! It is a rank's state page ([`mpi_base::state`]) with two things changed so that it means the same on every host:
//! a time since when is a time for how long, and a call's number is the call's name.

use crate::node;
use mpi_base::state::{NO_PEER, NO_TAG, Phase, State};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How far a rank has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It has not reached `MPI_Init`, or is no MPI program.
    Before,
    Starting,
    Running,
    Finalized,
}

/// The latest collective operation of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    pub comm: u32,
    pub call: String,
    /// Counted on each communicator from 1.
    pub number: u64,
    pub fingerprint: u64,
}

/// A rank at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glimpse {
    pub stage: Stage,
    /// The call it is in.
    pub call: Option<String>,
    /// The call before.
    pub last_call: Option<String>,
    /// Calls entered plus calls left.
    pub calls: u64,
    pub comm: u32,
    /// `None` where there is none, or any.
    pub peer: Option<u32>,
    pub tag: Option<i32>,
    pub bytes: u64,
    /// For how long it has waited in this call; `None` while it does not.
    pub waited: Option<Duration>,
    pub round: Option<Round>,
    /// Counts what the rank's engine has moved.
    pub progress: u64,
}

impl Glimpse {
    /// What a state page says; `now_ns` is the page's clock, `name` turns a call's number into its name.
    pub fn of(state: &State, now_ns: u64, name: impl Fn(u16) -> String) -> Glimpse {
        let call = |number: u16| (number != 0).then(|| name(number));
        let round = &state.collective;
        Glimpse {
            stage: match state.phase {
                Phase::Absent => Stage::Before,
                Phase::Starting => Stage::Starting,
                Phase::Running => Stage::Running,
                Phase::Finalized => Stage::Finalized,
            },
            call: call(state.call),
            last_call: call(state.last_call),
            calls: state.calls,
            comm: state.comm,
            peer: (state.peer != NO_PEER).then_some(state.peer as u32),
            tag: (state.tag != NO_TAG).then_some(state.tag),
            bytes: state.bytes,
            waited: (state.since_ns > 0)
                .then(|| Duration::from_nanos(now_ns.saturating_sub(state.since_ns))),
            round: (round.seq > 0).then(|| Round {
                comm: round.comm,
                call: name(round.call),
                number: round.seq,
                fingerprint: round.fingerprint,
            }),
            progress: state.progress,
        }
    }

    /// Of a rank of this host, now.
    pub fn of_local(node: &node::Node, local_rank: u32) -> Option<Glimpse> {
        let state = node.state_of(local_rank)?;
        Some(Glimpse::of(&state, node::now_ns(), node::call_name))
    }
}
