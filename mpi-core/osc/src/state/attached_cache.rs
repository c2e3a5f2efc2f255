//! The attached memory of a dynamic window that is known to one process:
//! the process's own regions, and cached copies of the other members' tables.

use mpi_base::node::{ShmBlock, ShmOffset};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// An attached region; `address` is valid in the owner's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub address: u64,
    pub len: u64,
    pub place: u64,
    /// True if other members can map the region through XPMEM ([`crate::direct::mapped`]).
    pub is_mappable: bool,
}

/// The attached memory known to this process.
pub(crate) struct AttachedCache {
    own: RefCell<Own>,
    /// The published table of this process's regions, and its capacity in regions.
    table: RefCell<(Option<ShmBlock>, usize)>,
    /// For each member: the version of its table, and its cached regions.
    known: RefCell<Vec<(u64, Rc<[Region]>)>>,
}

/// This process's own regions.
#[derive(Default)]
struct Own {
    /// The regions by address, each with the index of its entry in the published table.
    regions: BTreeMap<u64, (Region, usize)>,
    /// The address of the region in each entry of the published table.
    entries: Vec<u64>,
}

/// The entry of the published table that an insertion or a removal changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub index: usize,
    /// The new region in the entry; `None` if the last entry has been removed.
    pub region: Option<Region>,
}

impl AttachedCache {
    pub fn new(size: u32) -> AttachedCache {
        AttachedCache {
            own: RefCell::default(),
            table: RefCell::default(),
            known: RefCell::new(vec![(u64::MAX, Rc::from([])); size as usize]),
        }
    }

    /// Adds a region as the last entry. If a known region overlaps it, fails with the known region.
    pub fn insert(&self, region: Region) -> Result<Entry, Region> {
        let mut own = self.own.borrow_mut();
        let before = own
            .regions
            .range(..region.address.saturating_add(region.len))
            .next_back();
        let overlapping =
            before.filter(|(_, (other, _))| other.address + other.len > region.address);
        if let Some((_, (other, _))) = overlapping {
            return Err(*other);
        }
        let index = own.entries.len();
        own.entries.push(region.address);
        own.regions.insert(region.address, (region, index));
        Ok(Entry {
            index,
            region: Some(region),
        })
    }

    /// Removes this process's region that begins at an address,
    /// and moves the last entry into the free entry. Returns the changed entry.
    pub fn remove(&self, address: u64) -> Option<Entry> {
        let mut own = self.own.borrow_mut();
        let (_, index) = own.regions.remove(&address)?;
        own.entries.swap_remove(index);
        let moved = own.entries.get(index).copied();
        let moved = moved.and_then(|address| own.regions.get_mut(&address));
        let region = moved.map(|(region, at)| {
            *at = index;
            *region
        });
        Some(Entry { index, region })
    }

    /// Returns the number of this process's regions.
    pub fn count_own(&self) -> usize {
        self.own.borrow().entries.len()
    }

    /// Returns this process's regions in the order of the published table.
    pub fn all_own(&self) -> Vec<Region> {
        let own = self.own.borrow();
        let region = |address| own.regions.get(address).map(|(region, _)| *region);
        own.entries.iter().filter_map(region).collect()
    }

    /// Returns the offset of the published table and its capacity in regions.
    pub fn table(&self) -> (ShmOffset, usize) {
        let table = self.table.borrow();
        let place = table.0.as_ref().map_or(ShmOffset(0), ShmBlock::place);
        (place, table.1)
    }

    /// Replaces the published table of this process's regions by one with this capacity in regions.
    pub fn set_table(&self, table: ShmBlock, capacity: usize) {
        // The old table is freed. A rank that still reads it finds a different version and retries.
        drop(self.table.replace((Some(table), capacity)));
    }

    /// Returns the cached regions of a member if their version is `version`.
    pub fn of_member(&self, rank: u32, version: u64) -> Option<Rc<[Region]>> {
        let known = self.known.borrow();
        let (at, regions) = &known[rank as usize];
        (*at == version).then(|| regions.clone())
    }

    /// Stores the regions of a member with their version in the cache.
    pub fn remember(&self, rank: u32, version: u64, regions: Rc<[Region]>) {
        self.known.borrow_mut()[rank as usize] = (version, regions);
    }

    /// Returns this process's last region that begins at or before an address.
    pub fn own_before(&self, address: u64) -> Option<Region> {
        let own = self.own.borrow();
        let (_, (region, _)) = own.regions.range(..=address).next_back()?;
        Some(*region)
    }

    /// Returns this process's region, or union of adjacent regions, that contains `range`.
    pub fn own(&self, range: &Range<u64>) -> Option<Region> {
        let own = self.own.borrow();
        let (first, _) = own.regions.range(..=range.start).next_back()?;
        joined(
            own.regions.range(first..).map(|(_, (region, _))| *region),
            range,
        )
    }
}

/// Joins the first region with adjacent regions until the union contains `range`.
/// Returns `None` if no such union exists.
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
    /// Returns the end of the region if it contains the byte at an address.
    pub fn end_after(&self, address: u64) -> Option<u64> {
        let end = self.address.checked_add(self.len)?;
        (self.address <= address && address < end).then_some(end)
    }

    fn holds(&self, range: &Range<u64>) -> bool {
        let end = self.address.checked_add(self.len);
        // The end of an access that leaves the address space is below its start.
        range.start >= self.address
            && range.start <= range.end
            && end.is_some_and(|end| range.end <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn region(number: u64) -> Region {
        Region {
            address: number * 16,
            len: 16,
            place: 0,
            is_mappable: false,
        }
    }

    proptest! {
        /// A reader that copies each changed entry and the entry count has each region exactly once.
        #[test]
        fn the_changed_entries_alone_keep_a_copy_complete(
            steps in proptest::collection::vec((any::<bool>(), 0..40_u64), 0..200),
        ) {
            let attached = AttachedCache::new(1);
            let mut copy: Vec<Region> = Vec::new();
            let mut wanted = std::collections::BTreeSet::new();
            for (attach, number) in steps {
                let entry = match attach {
                    true => attached.insert(region(number)).ok(),
                    false => attached.remove(region(number).address),
                };
                let changes = match attach {
                    true => wanted.insert(number),
                    false => wanted.remove(&number),
                };
                prop_assert_eq!(entry.is_some(), changes);
                if let Some(entry) = entry {
                    copy.resize(attached.count_own().max(copy.len()), region(99));
                    if let Some(region) = entry.region {
                        copy[entry.index] = region;
                    }
                    copy.truncate(attached.count_own());
                }
                prop_assert_eq!(&copy, &attached.all_own());
                let mut sorted: Vec<u64> = copy.iter().map(|region| region.address / 16).collect();
                sorted.sort_unstable();
                prop_assert!(sorted.iter().eq(wanted.iter()));
            }
        }
    }
}
