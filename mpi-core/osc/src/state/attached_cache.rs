//! The attached memory of a dynamic window as one process knows it: its own regions, and cached copies of the other members' tables.

use mpi_base::node::ShmBlock;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// An attached region; the address is that at its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub address: u64,
    pub len: u64,
    pub place: u64,
    /// Whether other members can map it although it is outside of the arenas; see [`crate::direct::mapped`].
    pub is_mappable: bool,
}

/// The attached memory that this process knows.
pub(crate) struct AttachedCache {
    /// This process's own regions by address.
    own: RefCell<BTreeMap<u64, Region>>,
    /// The published copy of the table.
    table: RefCell<Option<ShmBlock>>,
    /// The cached regions of each member, and their version.
    known: RefCell<Vec<(u64, Rc<[Region]>)>>,
}

impl AttachedCache {
    pub fn new(size: u32) -> AttachedCache {
        AttachedCache {
            own: RefCell::default(),
            table: RefCell::default(),
            known: RefCell::new(vec![(u64::MAX, Rc::from([])); size as usize]),
        }
    }

    /// Adds a region of this process. If it overlaps an attached region, returns that one as the error.
    pub fn insert(&self, region: Region) -> Result<(), Region> {
        let mut own = self.own.borrow_mut();
        let before = own
            .range(..region.address.saturating_add(region.len))
            .next_back();
        let overlapping = before.filter(|(_, other)| other.address + other.len > region.address);
        if let Some((_, other)) = overlapping {
            return Err(*other);
        }
        own.insert(region.address, region);
        Ok(())
    }

    /// Removes this process's region that begins at an address. Returns true if there was one.
    pub fn remove(&self, address: u64) -> bool {
        self.own.borrow_mut().remove(&address).is_some()
    }

    /// Returns this process's regions, sorted by address.
    pub fn all_own(&self) -> Vec<Region> {
        self.own.borrow().values().copied().collect()
    }

    /// Replaces the published copy of this process's regions.
    pub fn set_table(&self, table: Option<ShmBlock>) {
        // A rank that still reads the old copy finds a different version afterwards.
        drop(self.table.replace(table));
    }

    /// Returns the cached regions of a member, if they have this version.
    pub fn of_member(&self, rank: u32, version: u64) -> Option<Rc<[Region]>> {
        let known = self.known.borrow();
        let (at, regions) = &known[rank as usize];
        (*at == version).then(|| regions.clone())
    }

    /// Caches the regions of a member at this version.
    pub fn remember(&self, rank: u32, version: u64, regions: Rc<[Region]>) {
        self.known.borrow_mut()[rank as usize] = (version, regions);
    }

    /// Returns this process's region that holds all of `range`, or several adjacent ones joined.
    pub fn own(&self, range: &Range<u64>) -> Option<Region> {
        let own = self.own.borrow();
        let (first, _) = own.range(..=range.start).next_back()?;
        joined(own.range(first..).map(|(_, region)| *region), range)
    }
}

/// Joins the first region with adjacent ones until they hold `range`; `None` if they do not.
pub(crate) fn joined(regions: impl Iterator<Item = Region>, range: &Range<u64>) -> Option<Region> {
    let mut regions = regions;
    let mut whole = regions.next()?;
    while !whole.holds(range) {
        let next = regions.next()?;
        let adjoins = whole.address.checked_add(whole.len)? == next.address;
        let alike = match (whole.place, next.place) {
            (0, 0) => true,
            (0, _) | (_, 0) => false,
            (place, next) => place.checked_add(whole.len)? == next,
        };
        if !(adjoins && alike) {
            return None;
        }
        whole.len = whole.len.checked_add(next.len)?;
        whole.is_mappable &= next.is_mappable;
    }
    Some(whole)
}

impl Region {
    fn holds(&self, range: &Range<u64>) -> bool {
        let end = self.address.checked_add(self.len);
        range.start >= self.address && end.is_some_and(|end| range.end <= end)
    }
}
