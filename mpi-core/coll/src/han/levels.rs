//! The two levels of a communicator (the members of a node; the leaders of all nodes), and the steps of a call on these levels.

use super::node_ranks::{NodeRank, NodeRanks};
use crate::Error;
use crate::comm::Comm;
use crate::tickets::Ticket;
use crate::{Call, Invocation, Pending};

/// The two communicators of the levels: this node's members (`local`), and all leaders.
pub struct Levels {
    pub local: Comm,
    /// The communicator of all leaders; `Some` only on leaders.
    pub leaders: Option<Comm>,
    pub node_ranks: NodeRanks,
}

/// A call in progress on the two levels.
pub struct Way<'a> {
    pub levels: &'a Levels,
    pub invocation: &'a Invocation,
    pub ticket: Ticket,
    /// True for blocking calls: their steps may block, and may use protocols that components support only for blocking calls.
    pub blocking: bool,
}

impl Way<'_> {
    pub fn me(&self) -> u32 {
        self.invocation.rank()
    }

    pub fn node_rank(&self, rank: u32) -> NodeRank {
        self.levels.node_ranks.of(rank)
    }

    /// Returns this rank's node and its local rank on the node.
    pub fn here(&self) -> NodeRank {
        self.node_rank(self.me())
    }

    pub fn leads(&self) -> bool {
        self.levels.leaders.is_some()
    }

    /// Runs a step of the call, a collective call among the members of this node.
    pub async fn local(&self, call: Call) -> Result<(), Error> {
        self.step(&self.levels.local, call, false).await
    }

    /// Runs this rank's last step of the call, among the members of this node.
    /// As soon as this step has begun, the steps of later calls may begin.
    pub async fn local_last(&self, call: Call) -> Result<(), Error> {
        self.step(&self.levels.local, call, true).await
    }

    /// Runs a step of the call among the leaders, if this rank is a leader.
    pub async fn among_leaders(&self, call: impl FnOnce() -> Call) -> Result<(), Error> {
        match &self.levels.leaders {
            Some(leaders) => self.step(leaders, call(), false).await,
            None => Ok(()),
        }
    }

    /// Runs one step of the call. After a length mismatch the remaining steps still run,
    /// since other ranks wait for this rank in these steps.
    async fn step(&self, on: &Comm, call: Call, last: bool) -> Result<(), Error> {
        if self.blocking {
            return self
                .invocation
                .note_length_mismatch(self.invocation.run_step(on, &call));
        }
        let running = self.invocation.begin_step(on, call)?;
        if last {
            self.ticket.pass();
        }
        self.invocation.note_length_mismatch(running.await)
    }

    /// Waits for a message between two ranks that belongs to this call itself and not to one of its steps.
    pub async fn message(&self, pending: Pending) -> Result<(), Error> {
        match self.blocking {
            true => self.invocation.engine().block_on(pending),
            false => pending.await,
        }
    }
}
