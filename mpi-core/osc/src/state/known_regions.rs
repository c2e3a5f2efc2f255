//! The attached regions of one member, as known to this process.
//!
//! Only the bytes that an access reads or writes must be attached (MPI 5.0, section 12.2.4).
//! An access whose whole extent is inside one region, or inside adjacent regions, needs one lookup.
//! Any other access is divided at the boundaries of its runs and of the regions.

use crate::datatype::Run;
use crate::state::attached_cache::{AttachedCache, Region, joined};
use std::ops::Range;
use std::rc::Rc;

/// The attached regions of one member.
pub(crate) enum KnownRegions<'a> {
    Own(&'a AttachedCache),
    /// A copy of another member's table, sorted by address.
    Copied(Rc<[Region]>),
}

/// The address of the first byte of an access, in packed order, that is not attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotAttached(pub u64);

impl KnownRegions<'_> {
    /// Returns the region, or the union of adjacent regions, that contains `range`.
    #[inline]
    pub fn holding(&self, range: &Range<u64>) -> Option<Region> {
        match self {
            KnownRegions::Own(own) => own.own(range),
            KnownRegions::Copied(regions) => {
                let after = regions.partition_point(|region| region.address <= range.start);
                let from = regions.get(after.checked_sub(1)?..)?;
                joined(from.iter().copied(), range)
            }
        }
    }

    /// Returns the region that contains the byte at an address, and the region's end.
    fn at(&self, address: u64) -> Option<(Region, u64)> {
        let before = match self {
            KnownRegions::Own(own) => own.own_before(address),
            KnownRegions::Copied(regions) => {
                let after = regions.partition_point(|region| region.address <= address);
                regions.get(after.checked_sub(1)?).copied()
            }
        };
        let region = before?;
        Some((region, region.end_after(address)?))
    }

    /// Divides the bytes of `runs`, whose offsets are relative to `address`, in packed order.
    /// Each item is a range of addresses and the region, or union of regions, that contains it.
    /// The caller stops at the first byte that is not attached.
    pub fn divide(
        &self,
        address: u64,
        mut runs: impl Iterator<Item = Run>,
    ) -> impl Iterator<Item = Result<(Region, Range<u64>), NotAttached>> {
        let mut rest = 0..0;
        std::iter::from_fn(move || {
            while rest.is_empty() {
                let run = runs.next()?;
                let start = address.wrapping_add_signed(run.offset);
                match start.checked_add(run.len as u64) {
                    Some(end) => rest = start..end,
                    // No region contains the last address.
                    None => return Some(Err(NotAttached(u64::MAX))),
                }
            }
            if let Some(region) = self.holding(&rest) {
                return Some(Ok((region, std::mem::replace(&mut rest, 0..0))));
            }
            let Some((region, end)) = self.at(rest.start) else {
                return Some(Err(NotAttached(rest.start)));
            };
            let inside = rest.start..end.min(rest.end);
            rest.start = inside.end;
            Some(Ok((region, inside)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::{Datatype, Named};
    use crate::runs;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The address of displacement 0 in these tests.
    const ADDRESS: u64 = 1000;

    /// Regions from lengths and gaps: a gap of 0 makes adjacent regions.
    fn regions(parts: &[(u64, u64, bool)]) -> Vec<Region> {
        let mut address = ADDRESS;
        let mut region = |(gap, len, is_shared): &(u64, u64, bool)| {
            address += gap;
            let region = Region {
                address,
                len: *len,
                place: if *is_shared { address + 5000 } else { 0 },
                is_mappable: false,
            };
            address += len;
            region
        };
        parts.iter().map(&mut region).collect()
    }

    /// A type of blocks of bytes at random displacements, also before displacement 0.
    fn blocks(parts: &[(i64, i64)]) -> Datatype {
        let (lens, offsets): (Vec<i64>, Vec<i64>) = parts.iter().copied().unzip();
        let byte = Datatype::from(Named::BYTE);
        let blocks = Datatype::hindexed(&lens, &offsets, &byte).expect("a type");
        blocks.commit().expect("committed");
        blocks
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Both the own regions and a copied table agree with a set of all attached bytes.
        #[test]
        fn an_access_is_divided_exactly_if_all_its_bytes_are_attached(
            parts in proptest::collection::vec((0..3_u64, 1..12_u64, any::<bool>()), 0..12),
            accessed in proptest::collection::vec((0..4_i64, -4..60_i64), 1..5),
            count in 1..3_i64,
        ) {
            let all = regions(&parts);
            let attached: BTreeSet<u64> = all.iter().flat_map(|r| r.address..r.address + r.len).collect();
            let datatype = blocks(&accessed);
            let bytes = datatype.bytes(count);
            let needed: Vec<u64> = runs::of(&datatype, count, bytes)
                .flat_map(|run| run.offset..run.offset + run.len)
                .map(|offset| ADDRESS.wrapping_add_signed(offset))
                .collect();
            prop_assert_eq!(needed.len() as i64, bytes);
            let missing = needed.iter().find(|byte| !attached.contains(byte));
            let cache = AttachedCache::new(1);
            for region in &all {
                prop_assert!(cache.insert(*region).is_ok());
            }
            for known in [KnownRegions::Own(&cache), KnownRegions::Copied(all.clone().into())] {
                let runs = runs::of(&datatype, count, bytes);
                let divided: Result<Vec<_>, NotAttached> = known.divide(ADDRESS, runs).collect();
                match (divided, missing) {
                    (Err(NotAttached(byte)), Some(missing)) => prop_assert_eq!(byte, *missing),
                    (Ok(divided), None) => {
                        let visited: Vec<u64> = divided.iter().flat_map(|(_, range)| range.clone()).collect();
                        prop_assert_eq!(&visited, &needed);
                        for (region, range) in divided {
                            prop_assert!(region.address <= range.start);
                            prop_assert!(range.end <= region.address + region.len);
                            // All bytes of a part are of one kind of memory.
                            let mut kinds = all.iter().filter(|r| r.address < range.end && range.start < r.address + r.len);
                            prop_assert!(kinds.all(|r| (r.place == 0) == (region.place == 0)));
                        }
                    }
                    (divided, missing) => prop_assert!(false, "{:?}, but {:?} is missing", divided, missing),
                }
            }
        }
    }

    #[test]
    fn a_run_that_leaves_the_address_space_is_not_attached() {
        let all = vec![Region {
            address: u64::MAX - 10,
            len: 10,
            place: 0,
            is_mappable: false,
        }];
        let known = KnownRegions::Copied(all.into());
        let divide = |len| {
            let runs = std::iter::once(Run::new(-5, len));
            known.divide(u64::MAX, runs).collect::<Result<Vec<_>, _>>()
        };
        assert_eq!(divide(5).map(|parts| parts.len()), Ok(1));
        assert_eq!(divide(6), Err(NotAttached(u64::MAX)));
        let start = u64::MAX - 3;
        assert_eq!(known.holding(&(start..start.wrapping_add(8))), None);
    }
}
