//! The shared memory service: allocation by the members of a communicator on one node.

use super::host::Services as _;
use super::memory::HEAD;
use super::module_comm::ModuleComm;
use crate::comm::U64Buf;
use mpi_base::atomic::{AtomicU32, Ordering};
use mpi_base::mem::PAGE;
use mpi_base::node::{ShmBlock, ShmOffset};

impl ModuleComm {
    /// Allocates zeroed memory shared by the members on this node; all of them must call this function.
    pub(super) fn allocate_shared(&self, bytes: usize, align: usize) -> Result<*mut u8, String> {
        if !align.is_power_of_two() || align > PAGE {
            return Err(format!("shared memory cannot be aligned to {align} bytes"));
        }
        self.memory.sweep();
        let leader = self.node_ranks().next().unwrap_or(self.rank);
        let invocation = self.waiting(leader)?;
        let skip = HEAD.max(align);
        let len = bytes
            .checked_add(skip)
            .ok_or_else(|| format!("{bytes} bytes of shared memory are too many"))?;
        let word = U64Buf::new(1);
        const NOTHING: u64 = u64::MAX;
        let block = (self.rank == leader)
            .then(|| self.engine.node().alloc(len, skip))
            .flatten();
        if self.rank == leader {
            let place = block.as_ref().map(ShmBlock::place);
            if let Some(users) = place.and_then(|place| self.engine.node().hold::<AtomicU32>(place))
            {
                // The message with the offset orders this store before the other members' accesses.
                users.store(self.node_ranks().len() as u32, Ordering::Relaxed);
            }
            word.set(0, place.map_or(NOTHING, |place| place.0));
        }
        let told = self.engine.block_on(async {
            if self.rank == leader {
                let others = self.node_ranks().filter(|rank| *rank != leader);
                invocation
                    .all(
                        others
                            .map(|rank| invocation.isend(&word.send(0..1), rank))
                            .collect(),
                    )
                    .await
            } else {
                invocation.recv(&word.recv(0..1), leader).await
            }
        });
        told.map_err(|e| e.to_string())?;
        let place = word.get(0);
        if place == NOTHING {
            return Err(format!(
                "rank {leader} has no {len} bytes of shared memory left for its node"
            ));
        }
        let node = self.engine.node();
        let outside =
            || format!("the {len} bytes that rank {leader} named are not in this node's memory");
        let users = node
            .hold::<AtomicU32>(ShmOffset(place))
            .ok_or_else(outside)?;
        let memory = node
            .resolve(ShmOffset(place + skip as u64), bytes)
            .ok_or_else(outside)?;
        self.memory.holds(users, block);
        Ok(memory)
    }
}
