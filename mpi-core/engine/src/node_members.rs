//! Members of a communicator that share a node's memory, and their doorbells.

use crate::Engine;
use crate::group::Group;
use mpi_base::atomic::{Ordering, fence};
use mpi_base::doorbell::{ASLEEP, FENCE};
use mpi_base::fence::light;
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;

/// The members of a communicator if all of them are on one node.
pub struct NodeMembers {
    me: u32,
    /// The members' inboxes, indexed by rank.
    inboxes: Box<[Held<Inbox>]>,
    /// The members' ranks on the node, indexed by rank in the group.
    places: Box<[u32]>,
    /// True if other processes can execute memory fences on behalf of this one (`membarrier`).
    light: bool,
}

impl NodeMembers {
    /// Returns the members of a group in which this process has rank `me`; the error names a rank that is on another node.
    pub fn of(engine: &Engine, group: &Group, me: u32) -> Result<NodeMembers, String> {
        let mut here = vec![None; group.size() as usize];
        for (rank, place) in engine.place().members_here(group) {
            here[rank as usize] = Some(place);
        }
        let known = |(rank, place): (usize, Option<u32>)| {
            place.ok_or_else(|| format!("rank {rank} is on another node"))
        };
        let places: Box<[u32]> = here
            .into_iter()
            .enumerate()
            .map(known)
            .collect::<Result<_, _>>()?;
        let inbox = |place: &u32| engine.node().inbox(*place);
        let inboxes = places.iter().map(inbox).collect::<Result<_, _>>();
        Ok(NodeMembers {
            me,
            inboxes: inboxes.map_err(|e| e.to_string())?,
            places,
            light: mpi_base::fence::register(),
        })
    }

    /// Returns this process's rank.
    #[inline]
    pub fn me(&self) -> u32 {
        self.me
    }

    /// Returns the number of members.
    #[inline]
    pub fn count(&self) -> u32 {
        self.inboxes.len() as u32
    }

    /// Returns all ranks except this one.
    pub fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let me = self.me;
        (0..self.count()).filter(move |rank| *rank != me)
    }

    /// Returns the other ranks in cyclic order from the next rank on, so that not all members read from the same rank first.
    pub fn others_from_next(&self) -> impl Iterator<Item = u32> + use<> {
        let (me, count) = (self.me, self.count());
        (me + 1..count).chain(0..me)
    }

    /// Returns the members' ranks on the node, in the order of ranks in the group.
    pub fn places(&self) -> impl Iterator<Item = u32> {
        self.places.iter().copied()
    }

    /// Returns true if other processes can execute memory fences on behalf of this one (`membarrier`).
    #[inline]
    pub fn light(&self) -> bool {
        self.light
    }

    /// Wakes a member if it sleeps. The caller must already have stored what the member waits for.
    #[inline]
    pub fn ring(&self, rank: u32) {
        if let Some(inbox) = self.inboxes.get(rank as usize) {
            // SYNC POINT doorbell.sleep
            light();
            if !self.light || inbox.doorbell().wishes() != 0 {
                inbox.doorbell().ring();
            }
        }
    }

    /// Wakes every other member that sleeps, like [`NodeMembers::ring`].
    #[inline]
    pub fn ring_each(&self) {
        // SYNC POINT doorbell.sleep
        light();
        for (rank, inbox) in (0..).zip(&self.inboxes) {
            if rank != self.me && (!self.light || inbox.doorbell().wishes() != 0) {
                inbox.doorbell().ring();
            }
        }
    }

    /// Orders earlier stores before later loads, as a member that goes to sleep requires; usually without a fence instruction.
    #[inline]
    pub fn order(&self) {
        let wants_fence = |(rank, inbox): (u32, &Held<Inbox>)| {
            rank != self.me && inbox.doorbell().wishes() & FENCE != 0
        };
        light();
        if !self.light || (0..).zip(&self.inboxes).any(wants_fence) {
            fence(Ordering::SeqCst);
        }
    }

    /// Wakes all other members that sleep.
    /// The caller must already have stored what the members wait for.
    #[inline]
    pub fn ring_all(&self) {
        // SYNC POINT doorbell.sleep
        self.order();
        for (rank, inbox) in (0..).zip(&self.inboxes) {
            if rank != self.me && inbox.doorbell().wishes() & ASLEEP != 0 {
                inbox.doorbell().wake();
            }
        }
    }
}
