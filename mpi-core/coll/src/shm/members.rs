//! Which ranks meet in shared memory, how they wake each other, and how far one of them has come in a barrier.

use crate::Refusal;
use crate::comm::Comm;
use mpi_base::atomic::{Ordering, fence};
use mpi_base::doorbell::{FENCE, SLEEPING};
use mpi_base::fence::light;
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;

pub use mpi_base::cells::LINE;

/// How far a rank has come in a barrier; zero is in front of the gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    pub round: u32,
    /// Whether the others have been told about this round.
    pub told: bool,
}

/// The members of a communicator as processes of one node.
pub struct Members {
    pub me: u32,
    /// By rank.
    inboxes: Box<[Held<Inbox>]>,
    /// By rank, the ranks on the node.
    places: Box<[u32]>,
    /// Whether others may execute this process's fences.
    light: bool,
}

impl Members {
    /// The members, unless one of them is on another node.
    pub fn of(comm: &Comm) -> Result<Members, Refusal> {
        let engine = comm.engine();
        let mut here = vec![None; comm.size() as usize];
        for (rank, place) in engine.members_here(comm.group()) {
            here[rank as usize] = Some(place);
        }
        let elsewhere = |rank| Refusal(format!("rank {rank} is on another node"));
        let known = |(rank, place): (usize, Option<u32>)| place.ok_or_else(|| elsewhere(rank));
        let places: Box<[u32]> = here
            .into_iter()
            .enumerate()
            .map(known)
            .collect::<Result<_, _>>()?;
        let inbox = |place: &u32| engine.node().inbox(*place);
        let inboxes = places.iter().map(inbox).collect::<Result<_, _>>();
        Ok(Members {
            me: comm.rank(),
            inboxes: inboxes.map_err(|e| Refusal(e.to_string()))?,
            places,
            light: mpi_base::fence::register(),
        })
    }

    pub fn count(&self) -> u32 {
        self.inboxes.len() as u32
    }

    /// All ranks but this one.
    pub fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let me = self.me;
        (0..self.count()).filter(move |rank| *rank != me)
    }

    /// The members' ranks on the node, by rank.
    pub fn places(&self) -> impl Iterator<Item = u32> {
        self.places.iter().copied()
    }

    /// Whether others may execute this process's fences.
    #[inline]
    pub fn light(&self) -> bool {
        self.light
    }

    /// Wakes one member if it sleeps; what it is woken for has been published.
    #[inline]
    pub fn ring(&self, rank: u32) {
        if let Some(inbox) = self.inboxes.get(rank as usize) {
            // SYNC POINT bell.sleep
            light();
            if !self.light || inbox.bell().wishes() != 0 {
                inbox.bell().ring();
            }
        }
    }

    /// Wakes each other member that sleeps, as [`Members::ring`] does.
    #[inline]
    pub fn ring_each(&self) {
        // SYNC POINT bell.sleep
        light();
        for (rank, inbox) in (0..).zip(&self.inboxes) {
            if rank != self.me && (!self.light || inbox.bell().wishes() != 0) {
                inbox.bell().ring();
            }
        }
    }

    /// Orders what was stored before against what is loaded after, as a sleeper expects it of us: usually without an instruction.
    #[inline]
    pub fn order(&self) {
        let wants_fence = |(rank, inbox): (u32, &Held<Inbox>)| {
            rank != self.me && inbox.bell().wishes() & FENCE != 0
        };
        light();
        if !self.light || (0..).zip(&self.inboxes).any(wants_fence) {
            fence(Ordering::SeqCst);
        }
    }

    /// Wakes all other members that sleep; what they are woken for has been published.
    #[inline]
    pub fn ring_all(&self) {
        // SYNC POINT bell.sleep
        self.order();
        for (rank, inbox) in (0..).zip(&self.inboxes) {
            if rank != self.me && inbox.bell().wishes() & SLEEPING != 0 {
                inbox.bell().wake();
            }
        }
    }
}
