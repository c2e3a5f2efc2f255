//! Memory of other members outside of the arenas, mapped through XPMEM.
//! This is memory of `MPI_Win_create` and `MPI_Win_attach`.
//!
//! **`MPI_Win_create`.** Each member on the node offers its memory if a mapping of it cannot fault.
//! Each member maps the offers of the other members and reports whether it succeeded.
//! The mappings are used only if every member of the node has mapped every offer,
//! since all members must agree whether accumulates use atomic instructions or a lock.
//!
//! **Dynamic windows.** A region is mapped at the first access.
//! The mapping is kept until no attached region begins at its address.
//! The members do not agree on these mappings, so accumulates to attached memory take a lock.
//!
//! The kernel copies memory that is not mapped, also on machines without XPMEM.
//! `MPI_Win_shared_query` returns no pointers to mapped memory,
//! since `process_vm_readv` and `process_vm_writev` fail on such mappings.
//! Fault-tolerant jobs map nothing: an access to a dead process's memory would kill the survivor.

mod mapper;
#[cfg(test)]
#[allow(unsafe_code)]
mod tests;

use crate::Error;
use crate::comm::Comm;
use crate::engine::Engine;
use crate::spec::Flavor;
use mapper::{MapPermit, Mapper, Mapping};
use mpi_base::param::{Level, Param};
use mpi_base::xpmem;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

/// Parameter `osc_direct_xpmem`: enables XPMEM for window memory.
pub static XPMEM: Param<bool> = Param::new(
    "osc",
    "direct",
    "xpmem",
    "true",
    Level::USER,
    "Whether window memory that was not allocated by MPI is mapped by the other ranks of the node through /dev/xpmem if that exists; otherwise the kernel copies",
);

/// Returns the mapping service, or the reason why this process does not use it.
fn mapper(engine: &Engine) -> Result<Mapper, String> {
    // Startup has already reported an invalid value.
    if !engine.params().get(&XPMEM).unwrap_or(false) {
        return Err("osc_direct_xpmem is false".into());
    }
    if engine.is_fault_tolerant() {
        return Err("a process that outlives others must not touch memory of the dead".into());
    }
    if mpi_base::valgrind::is_running() {
        return Err("valgrind does not know what is mapped so".into());
    }
    Mapper::open(engine)
}

/// Describes in a sentence how this process reaches other members' memory outside of the arenas.
pub fn explain(engine: &Engine) -> String {
    const WHOSE: &str = "memory of MPI_Win_create and MPI_Win_attach";
    match mapper(engine) {
        Ok(_) => format!("{WHOSE} is mapped (/dev/xpmem), as far as it is private to its rank"),
        Err(why) => format!("{WHOSE} is copied by the system, not mapped: {why}"),
    }
}

/// Returns this process's offer for a window: its XPMEM name, or 0 for no offer.
/// `part` is the memory of `MPI_Win_create`; `None` for a dynamic window.
pub(crate) fn offer(engine: &Engine, part: Option<Range<u64>>) -> u64 {
    if part.as_ref().is_some_and(Range::is_empty) {
        return 0;
    }
    match mapper(engine) {
        Ok(mapper) if part.is_none_or(xpmem::is_mappable) => mapper.name(),
        _ => 0,
    }
}

/// A member's offer: its XPMEM name, and the address and length of its memory.
#[derive(Clone, Copy)]
pub(crate) struct Offer {
    pub name: u64,
    pub address: u64,
    pub len: u64,
}

/// The mappings of the memory of members on this node, in the order of these members.
pub(crate) struct Mapped {
    parts: Vec<Part>,
    /// True if all members on this node have mapped all offers of a created window.
    agreed: bool,
    /// True if other members can map memory that this process attaches.
    offers: bool,
}

enum Part {
    /// No mapping: the member offered nothing, or it is this process.
    Nothing,
    /// A mapping of the member's memory of `MPI_Win_create`.
    Whole(#[allow(dead_code)] Mapping, *mut u8),
    /// Mappings of the member's memory attached to a dynamic window.
    Regions(Regions),
}

impl Mapped {
    /// Maps the offers of the members of a window; collective. `here` lists the ranks on this node.
    pub fn new(
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
        // All members have received the same offers, so all take the same branch.
        if (0..comm.size()).all(|rank| offers(rank).name == 0) {
            return Ok(mapped);
        }
        if flavor == Flavor::Dynamic {
            let part = |rank: &u32| {
                let permit = others(rank).then(|| permit(engine, offers(*rank)));
                let regions = |permit| Part::Regions(Regions::new(permit));
                permit.flatten().map_or(Part::Nothing, regions)
            };
            mapped.parts = here.iter().map(part).collect();
            return Ok(mapped);
        }
        let part = |rank: &u32| match offers(*rank) {
            offer if offer.name != 0 && others(rank) => whole(engine, offer),
            _ => Some(Part::Nothing),
        };
        let parts: Option<Vec<Part>> = here.iter().map(part).collect();
        let could = comm.internal().share_now(&[u64::from(parts.is_some())])?;
        mapped.agreed = here
            .iter()
            .all(|rank| could.get(*rank as usize) == Some(&1));
        mapped.parts = parts.filter(|_| mapped.agreed).unwrap_or_default();
        Ok(mapped)
    }

    /// Returns true if all members on the node have mapped the memory offered under this name.
    pub fn is_direct(&self, name: u64) -> bool {
        self.agreed && name != 0
    }

    /// Returns true if other members can map this newly attached memory of this process.
    pub fn may_offer(&self, address: u64, len: u64) -> bool {
        let end = address.checked_add(len).filter(|_| self.offers);
        end.is_some_and(|end| xpmem::is_mappable(address..end))
    }

    /// Returns the start of the mapped memory of the member at `index`.
    pub fn part(&self, index: usize) -> Option<*mut u8> {
        match self.parts.get(index)? {
            Part::Whole(_, start) => Some(*start),
            _ => None,
        }
    }

    /// Returns the local address of `range` of the member at `index`.
    /// The first access maps the region.
    /// `range` must be inside `region`, an attached region of that member.
    pub fn region(&self, index: usize, region: Range<u64>, range: &Range<u64>) -> Option<*mut u8> {
        match self.parts.get(index)? {
            Part::Regions(regions) => regions.at(region, range),
            _ => None,
        }
    }

    /// Unmaps the regions of the member at `index` whose start address is no longer attached.
    /// `begins` returns true if an attached region begins at the address.
    pub fn keep(&self, index: usize, begins: impl Fn(u64) -> bool) {
        if let Some(Part::Regions(regions)) = self.parts.get(index) {
            regions.keep(begins);
        }
    }
}

fn permit(engine: &Engine, offer: Offer) -> Option<MapPermit> {
    mapper(engine).ok()?.permit(offer.name)
}

fn whole(engine: &Engine, offer: Offer) -> Option<Part> {
    let range = offer.address..offer.address.checked_add(offer.len)?;
    let piece = permit(engine, offer)?.attach(range.clone())?;
    let start = piece.at(&range)?;
    Some(Part::Whole(piece, start))
}

/// The mappings of one member's attached memory. The first access to a region maps it.
struct Regions {
    permit: MapPermit,
    /// The mappings by start address.
    known: RefCell<BTreeMap<u64, Mapping>>,
    /// True after a mapping was refused; then no further mapping is tried.
    is_refused: Cell<bool>,
}

impl Regions {
    fn new(permit: MapPermit) -> Regions {
        Regions {
            permit,
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
        match self.permit.attach(region) {
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

    /// Unmaps the regions at whose start address no attached region begins any more:
    /// `begins` returns true for the start address of an attached region.
    ///
    /// Attached regions do not overlap. So no remaining mapping begins inside another attached region,
    /// and `at` looks only at the last mapping that begins at or before the accessed address.
    fn keep(&self, begins: impl Fn(u64) -> bool) {
        let mut known = self.known.borrow_mut();
        known.retain(|start, _| begins(*start));
    }
}
