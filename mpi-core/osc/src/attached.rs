//! What one process knows of memory that is attached to a dynamic window: its own regions, and what it has read of those of others.

use mpi_base::node::ShmBlock;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// A region at its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub address: u64,
    pub len: u64,
    pub place: u64,
    /// Whether it is memory that neighbours can map, though it lies elsewhere; see [`super::mapped`].
    pub is_mappable: bool,
}

/// What this process knows of attached memory.
pub(super) struct Attached {
    /// Our own regions by address.
    own: RefCell<BTreeMap<u64, Region>>,
    /// Where the copy lies that neighbours read.
    table: RefCell<Option<ShmBlock>>,
    /// What was read of each member, and at which version.
    known: RefCell<Vec<(u64, Rc<[Region]>)>>,
}

impl Attached {
    pub fn new(size: u32) -> Attached {
        Attached {
            own: RefCell::default(),
            table: RefCell::default(),
            known: RefCell::new(vec![(u64::MAX, Rc::from([])); size as usize]),
        }
    }

    /// Adds a region of our own, unless memory of it is attached already: the region which holds that.
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

    /// Takes the region of our own out that begins at an address; whether there was one.
    pub fn remove(&self, address: u64) -> bool {
        self.own.borrow_mut().remove(&address).is_some()
    }

    /// All regions of our own, sorted by address.
    pub fn all_own(&self) -> Vec<Region> {
        self.own.borrow().values().copied().collect()
    }

    /// The copy of our regions that neighbours read lies here from now on.
    pub fn set_table(&self, table: Option<ShmBlock>) {
        // A rank that still reads the old one finds another version afterwards.
        drop(self.table.replace(table));
    }

    /// The regions of a member, if they were read at this version.
    pub fn of_member(&self, rank: u32, version: u64) -> Option<Rc<[Region]>> {
        let known = self.known.borrow();
        let (at, regions) = &known[rank as usize];
        (*at == version).then(|| regions.clone())
    }

    /// What was read of a member at this version.
    pub fn remember(&self, rank: u32, version: u64, regions: Rc<[Region]>) {
        self.known.borrow_mut()[rank as usize] = (version, regions);
    }

    /// The region of our own that holds all of `range`, or several that adjoin.
    pub fn own(&self, range: &Range<u64>) -> Option<Region> {
        let own = self.own.borrow();
        let (first, _) = own.range(..=range.start).next_back()?;
        joined(own.range(first..).map(|(_, region)| *region), range)
    }
}

/// The first region together with those that adjoin it, as far as `range` needs them; nothing if that is not enough.
pub(super) fn joined(regions: impl Iterator<Item = Region>, range: &Range<u64>) -> Option<Region> {
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
