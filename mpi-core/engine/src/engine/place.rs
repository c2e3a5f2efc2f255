//! The location of this process: its job and rank, its node and cores, and its parameters.

use super::EXPLAIN;
use crate::btl::ProcId;
use crate::group::Group;
use mpi_base::cpu::Cores;
use mpi_base::node::Node;
use mpi_base::param::Params;
use mpi_transport::universe::{Name, Universe};
use std::sync::Arc;

/// The location of this process: its job, its node and its cores.
pub struct Place {
    me: ProcId,
    size: u32,
    universe: Arc<Universe>,
    params: Params,
    node: Node,
    neighbours: Vec<ProcId>,
    cores: Cores,
}

impl Place {
    pub(super) fn of(
        universe: Universe,
        (me, size): (ProcId, u32),
        params: Params,
        node: Node,
        neighbours: Vec<ProcId>,
        cores: Cores,
    ) -> Place {
        Place {
            me,
            size,
            universe: Arc::new(universe),
            params,
            node,
            neighbours,
            cores,
        }
    }

    /// Returns this process's rank in the job.
    #[inline]
    pub fn me(&self) -> ProcId {
        self.me
    }

    /// Returns the number of processes in the job.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the processes that this one knows, including those of other jobs.
    #[inline]
    pub fn universe(&self) -> &Arc<Universe> {
        &self.universe
    }

    /// Returns the user's parameters, as read when the engine was created.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the shared memory of this node.
    #[inline]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the job ranks of the processes on this node, indexed by rank on the node.
    pub fn neighbours(&self) -> &[ProcId] {
        &self.neighbours
    }

    /// Returns the cores on which this process may run.
    pub fn cores(&self) -> Cores {
        self.cores
    }

    /// Returns true if the user requested an explanation of the selection (`mpirun --explain`).
    pub fn explains(&self) -> bool {
        self.params.get(&EXPLAIN).unwrap_or(false)
    }

    /// Returns the members of a group that are on this node: for each, its rank in the group and its rank on the node.
    pub fn members_here(&self, group: &Group) -> impl Iterator<Item = (u32, u32)> {
        let neighbours = (0..).zip(&self.neighbours);
        neighbours.filter_map(|(place, proc)| Some((group.rank_of(*proc)?, place)))
    }

    /// Returns true if some members of a group are in other jobs.
    pub fn is_mixed(&self, group: &Group) -> bool {
        group.iter().any(|proc| self.universe.is_foreign(proc))
    }

    /// Returns a number for this node: the same for all processes of this job on it,
    /// and another for all other processes.
    pub fn node_id(&self) -> u64 {
        let first_here = self.neighbours.first().copied().unwrap_or(self.me);
        let name = self.universe.name(first_here);
        name.map_or(u64::MAX, |Name(name)| name)
    }
}
