//! The identity of this process: its job and rank, its node, and its startup parameters.

use crate::btl::ProcId;
use crate::group::Group;
use mpi_base::cpu::Cores;
use mpi_base::node::Node;
use mpi_base::param::Params;
use mpi_transport::universe::Universe;
use std::sync::Arc;

pub(super) struct Place {
    pub me: ProcId,
    pub size: u32,
    pub universe: Arc<Universe>,
    pub params: Params,
    pub node: Node,
    /// Job ranks of this node's processes, by rank on the node.
    pub neighbours: Vec<ProcId>,
    pub cores: Cores,
}

impl Place {
    /// Returns the members of a group that are on this node, each as its rank in the group and its rank on the node.
    pub fn members_here(&self, group: &Group) -> impl Iterator<Item = (u32, u32)> {
        let neighbours = (0..).zip(&self.neighbours);
        neighbours.filter_map(|(place, proc)| Some((group.rank_of(*proc)?, place)))
    }

    /// Returns the job rank of this node's first process.
    pub fn first_here(&self) -> ProcId {
        self.neighbours.first().copied().unwrap_or(self.me)
    }
}
