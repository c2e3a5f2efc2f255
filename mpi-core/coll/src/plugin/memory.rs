//! Memory that the members of a communicator on one node share, handed out to plugins.
//!
//! The lowest of them takes a block out of its arena and tells the others its place.
//! The block begins with a word of the host's own, the number of members that have not left it.
//! An arena's block may go back only when nobody uses it any more, and members leave when they like;
//! so a block whose owner leaves early waits in its [`Grave`] until the word is zero.

use super::seat::Seat;
use crate::comm::Words;
use mpi_base::atomic::{AtomicU32, Ordering};
use mpi_base::mem::{Held, PAGE};
use mpi_base::node::{ShmBlock, ShmOffset};
use std::cell::RefCell;
use std::rc::Rc;

/// The host's own words in front of shared memory that it hands out.
const HEAD: usize = 64;

/// What one seat has taken.
pub(super) struct Memory {
    shares: RefCell<Vec<Share>>,
    grave: Rc<Grave>,
}

/// A share of a block of memory that several processes use.
struct Share {
    /// How many of them have not left it.
    users: Held<AtomicU32>,
    /// The block, at the one that took it out of its arena.
    block: Option<ShmBlock>,
}

/// Blocks whose owner has left before the others.
#[derive(Default)]
pub(super) struct Grave(RefCell<Vec<Share>>);

impl Grave {
    /// Returns the blocks that everybody has left meanwhile.
    fn sweep(&self) {
        // SYNC POINT memory.left
        self.0
            .borrow_mut()
            .retain(|share| share.users.load(Ordering::Acquire) != 0);
    }
}

impl Drop for Grave {
    fn drop(&mut self) {
        self.sweep();
        // Others may still be reading, and returning a block wipes it; the memory goes with the node's segment.
        for share in self.0.take() {
            std::mem::forget(share.block);
        }
    }
}

impl Memory {
    pub fn new(grave: &Rc<Grave>) -> Memory {
        Memory {
            shares: RefCell::default(),
            grave: grave.clone(),
        }
    }
}

impl Seat {
    /// Takes zeroed memory that this node's members share; every one of them calls.
    pub fn shared_memory(&self, bytes: usize, align: usize) -> Result<*mut u8, String> {
        if !align.is_power_of_two() || align > PAGE {
            return Err(format!("shared memory cannot be aligned to {align} bytes"));
        }
        self.memory.grave.sweep();
        let leader = self.node_ranks().next().unwrap_or(self.rank);
        let cx = self.waiting(leader)?;
        let skip = HEAD.max(align);
        let len = bytes
            .checked_add(skip)
            .ok_or_else(|| format!("{bytes} bytes of shared memory are too many"))?;
        let word = Words::new(1);
        const NOTHING: u64 = u64::MAX;
        let block = (self.rank == leader)
            .then(|| self.engine.node().alloc(len, skip))
            .flatten();
        if self.rank == leader {
            let place = block.as_ref().map(ShmBlock::place);
            if let Some(users) = place.and_then(|place| self.engine.node().hold::<AtomicU32>(place))
            {
                // The message that names the place carries this to the others.
                users.store(self.node_ranks().len() as u32, Ordering::Relaxed);
            }
            word.set(0, place.map_or(NOTHING, |place| place.0));
        }
        let told = self.engine.block_on(async {
            if self.rank == leader {
                let others = self.node_ranks().filter(|rank| *rank != leader);
                cx.all(
                    others
                        .map(|rank| cx.isend(&word.send(0..1), rank))
                        .collect(),
                )
                .await
            } else {
                cx.recv(&word.recv(0..1), leader).await
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
        self.memory.shares.borrow_mut().push(Share { users, block });
        Ok(memory)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for share in self.shares.take() {
            // SYNC POINT memory.left: what was written here is seen by whoever finds the block left by all.
            share.users.fetch_sub(1, Ordering::Release);
            if share.block.is_some() {
                self.grave.0.borrow_mut().push(share);
            }
        }
        self.grave.sweep();
    }
}
