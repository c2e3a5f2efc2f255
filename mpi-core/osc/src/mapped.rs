//! Neighbours' memory that the program got elsewhere, mapped through XPMEM: memory of `MPI_Win_create` and `MPI_Win_attach`.
//!
//! **Windows that are created.** Each member on the node offers its part, if that is memory that can be mapped without a fault,
//! and maps the parts that the others offer. Then all say whether they could: only if each member of the node could map all that was offered
//! are the parts used so, by all, since accumulates to a part are made by single instructions or under a lock, but by all members alike.
//!
//! **Dynamic windows.** A region is mapped at the first access to it and kept until no region lies there any more.
//! Nothing is agreed upon, so accumulates to attached memory stay under the lock, whoever makes them.
//!
//! What is not mapped is copied by the system, as if there were no device. Programs are not given pointers to what is mapped here
//! (`MPI_Win_shared_query`), since the system refuses such memory in its own copies between processes.
//! Where processes outlive others nothing is mapped: a survivor that touches memory of the dead would end too.

#[cfg(test)]
#[allow(unsafe_code)]
mod tests;
mod way;

use super::Flavor;
use crate::Error;
use crate::comm::Comm;
use crate::engine::Engine;
use mpi_base::param::{Level, Param};
use mpi_base::xpmem;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use way::{Leave, Piece, Way};

/// Whether XPMEM is used.
pub static XPMEM: Param<bool> = Param::new(
    "osc",
    "direct",
    "xpmem",
    "true",
    Level::USER,
    "Whether memory of neighbours that the program got elsewhere is mapped through /dev/xpmem, where there is one, instead of being copied by the system",
);

/// The way to neighbours' memory, or why this process does not use it.
fn way(engine: &Engine) -> Result<Way, String> {
    // A value that cannot be read is reported when the process starts.
    if !engine.params().get(&XPMEM).unwrap_or(false) {
        return Err("osc_direct_xpmem is false".into());
    }
    if engine.is_fault_tolerant() {
        return Err("a process that outlives others must not touch memory of the dead".into());
    }
    if mpi_base::valgrind::is_running() {
        return Err("valgrind does not know what is mapped so".into());
    }
    Way::open(engine)
}

/// How memory that the program got elsewhere is reached among neighbours of this process, in a sentence.
pub fn explain(engine: &Engine) -> String {
    const WHOSE: &str = "memory of MPI_Win_create and MPI_Win_attach";
    match way(engine) {
        Ok(_) => format!("{WHOSE} is mapped (/dev/xpmem), as far as it is private to its rank"),
        Err(why) => format!("{WHOSE} is copied by the system, not mapped: {why}"),
    }
}

/// What this process offers others for a window: the name of its address space, or 0. A window that is created has a `part`.
pub(super) fn offer(engine: &Engine, part: Option<Range<u64>>) -> u64 {
    if part.as_ref().is_some_and(Range::is_empty) {
        return 0;
    }
    match way(engine) {
        Ok(way) if part.is_none_or(xpmem::is_mappable) => way.name(),
        _ => 0,
    }
}

/// A member's offer.
#[derive(Clone, Copy)]
pub(super) struct Offer {
    pub name: u64,
    pub address: u64,
    pub len: u64,
}

/// What of the members on this node is mapped here, by their indices.
pub(super) struct Mapped {
    parts: Vec<Part>,
    /// Whether all members on this node map what was offered of a window that is created.
    agreed: bool,
    /// Whether others map what this process attaches.
    offers: bool,
}

enum Part {
    /// Nothing, or ourselves.
    Nothing,
    /// A part of a window that is created.
    Whole(#[allow(dead_code)] Piece, *mut u8),
    /// What is attached to a dynamic window.
    Regions(Regions),
}

impl Mapped {
    /// Maps what the members of a window offer; every member calls it. `here` are the ranks on this node, `me` is our own.
    pub async fn new(
        engine: &Engine,
        comm: &Comm,
        (flavor, here): (Flavor, &[u32]),
        offers: impl Fn(u32) -> Offer,
    ) -> Result<Mapped, Error> {
        let others = |rank: &u32| *rank != comm.rank();
        let mut mapped = Mapped {
            parts: Vec::new(),
            agreed: false,
            offers: offers(comm.rank()).name != 0,
        };
        // All members read the same words, so all come to the same here.
        if (0..comm.size()).all(|rank| offers(rank).name == 0) {
            return Ok(mapped);
        }
        if flavor == Flavor::Dynamic {
            let part = |rank: &u32| {
                let leave = others(rank).then(|| leave(engine, offers(*rank)));
                let regions = |leave| Part::Regions(Regions::new(leave));
                leave.flatten().map_or(Part::Nothing, regions)
            };
            mapped.parts = here.iter().map(part).collect();
            return Ok(mapped);
        }
        let part = |rank: &u32| match offers(*rank) {
            offer if offer.name != 0 && others(rank) => whole(engine, offer),
            _ => Some(Part::Nothing),
        };
        let parts: Option<Vec<Part>> = here.iter().map(part).collect();
        let could = comm.share(&[u64::from(parts.is_some())]).await?;
        mapped.agreed = here
            .iter()
            .all(|rank| could.get(*rank as usize) == Some(&1));
        mapped.parts = parts.filter(|_| mapped.agreed).unwrap_or_default();
        Ok(mapped)
    }

    /// Whether all members on the node reach a part that was offered by mapping it.
    pub fn is_direct(&self, name: u64) -> bool {
        self.agreed && name != 0
    }

    /// Whether neighbours can map memory of ours that is attached now.
    pub fn may_offer(&self, address: u64, len: u64) -> bool {
        let end = address.checked_add(len).filter(|_| self.offers);
        end.is_some_and(|end| xpmem::is_mappable(address..end))
    }

    /// Where the part of the member at `index` begins here.
    pub fn part(&self, index: usize) -> Option<*mut u8> {
        match self.parts.get(index)? {
            Part::Whole(_, start) => Some(*start),
            _ => None,
        }
    }

    /// Where `range` of the member at `index` is here, all of which is in `region`, which it has attached.
    pub fn region(&self, index: usize, region: Range<u64>, range: &Range<u64>) -> Option<*mut u8> {
        match self.parts.get(index)? {
            Part::Regions(regions) => regions.at(region, range),
            _ => None,
        }
    }

    /// The member at `index` has attached or detached memory; `begins` says where regions of its begin now.
    pub fn keep(&self, index: usize, begins: impl Fn(u64) -> bool) {
        if let Some(Part::Regions(regions)) = self.parts.get(index) {
            regions.keep(begins);
        }
    }
}

fn leave(engine: &Engine, offer: Offer) -> Option<Leave> {
    way(engine).ok()?.leave(offer.name)
}

fn whole(engine: &Engine, offer: Offer) -> Option<Part> {
    let range = offer.address..offer.address.checked_add(offer.len)?;
    let piece = leave(engine, offer)?.attach(range.clone())?;
    let start = piece.at(&range)?;
    Some(Part::Whole(piece, start))
}

/// Memory that one member has attached, as far as it was accessed.
struct Regions {
    leave: Leave,
    /// By their first address.
    known: RefCell<BTreeMap<u64, Piece>>,
    /// Whether something was refused; nothing more is asked for then.
    is_refused: Cell<bool>,
}

impl Regions {
    fn new(leave: Leave) -> Regions {
        Regions {
            leave,
            known: RefCell::default(),
            is_refused: Cell::new(false),
        }
    }

    fn at(&self, region: Range<u64>, range: &Range<u64>) -> Option<*mut u8> {
        let mut known = self.known.borrow_mut();
        let before = known.range(..=range.start).next_back();
        if let Some(at) = before.and_then(|(_, piece)| piece.at(range)) {
            return Some(at);
        }
        if self.is_refused.get() {
            return None;
        }
        let start = region.start;
        match self.leave.attach(region) {
            Some(piece) => {
                let at = piece.at(range);
                known.insert(start, piece);
                at
            }
            None => {
                self.is_refused.set(true);
                None
            }
        }
    }

    /// What begins where no region begins any more is given back, so that the last one before an address is the one that holds it.
    fn keep(&self, begins: impl Fn(u64) -> bool) {
        let mut known = self.known.borrow_mut();
        known.retain(|start, _| begins(*start));
    }
}
