//! Memory attached to dynamic windows, of any size and number of regions (MPI 5.0, section 12.2.4).
//!
//! Each member has a map of its own regions by address. It publishes them in a table in its arena
//! for the other members on the node: 4 words for each region, not sorted.
//! [`Head`] in the member's control words has the table's offset, its length and a version.
//! The version is odd while the owner changes the table.
//! A reader copies the table, reads the version again (a seqlock) and sorts its copy by address.
//! So attach and detach wait for no other member, and readers take no lock.
//! An attach writes one entry after the last one. A detach moves the last entry into the gap.
//! A table of twice the size replaces a full table, so n attachments write at most 3n entries.
//! A reader checks all values before use, since another process wrote them.
#![allow(unsafe_code)]

use crate::Error;
use crate::access::TargetLocation;
use crate::direct::apply::{Memory, Reach};
use crate::error::{OscClass, OscError};
use crate::spec::Flavor;
use crate::state::attached_cache::{Entry, Region, joined};
use crate::state::control::Head;
use crate::state::target::{Route, Target};
use crate::win::Win;
use mpi_base::atomic::{AtomicU64, Ordering, fence};
use mpi_base::node::ShmOffset;
use mpi_base::yield_now::Backoff;
use std::ops::Range;
use std::rc::Rc;

/// The capacity of a member's first table, in regions.
const FIRST_CAPACITY: usize = 16;

/// The number of words per region in the table: address, length, offset in the node's memory
/// (0 if outside of the arenas), and 1 if other members can map the region.
const EACH: usize = 4;

impl Win {
    /// Returns the operations on memory attached to this window.
    #[inline(always)]
    pub fn attached(&self) -> AttachedMemory<'_> {
        AttachedMemory { win: self }
    }
}

/// The operations on memory attached to a dynamic window.
#[derive(Clone, Copy)]
pub struct AttachedMemory<'a> {
    win: &'a Win,
}

impl<'a> AttachedMemory<'a> {
    fn only_dynamic(self, call: &str) -> Result<(), Error> {
        match self.win.flavor() {
            Flavor::Dynamic => Ok(()),
            _ => {
                let sentence = format!(
                    "{call} needs a window that MPI_Win_create_dynamic has made, which {} is not",
                    self.win.label()
                );
                Err(OscError::new(OscClass::Flavor, sentence).into())
            }
        }
    }

    /// Implements `MPI_Win_attach`.
    pub fn attach(self, base: *mut u8, size: u64) -> Result<(), Error> {
        self.only_dynamic("MPI_Win_attach")?;
        let address = base.expose_provenance() as u64;
        let bad = |why: String| -> Error {
            let sentence = format!(
                "rank {} attaches {size} bytes at {address:#x} to {}, but {why}",
                self.win.rank(),
                self.win.label()
            );
            OscError::new(OscClass::Attach, sentence).into()
        };
        if address.checked_add(size).is_none() {
            return Err(bad("no memory is as long".into()));
        }
        if size == 0 {
            return Ok(());
        }
        let node = self.win.engine().node();
        let place = node.place_of(address as usize, size as usize);
        let inserted = self.win.state().attached_cache().insert(Region {
            address,
            len: size,
            place: place.map_or(0, |place| place.0),
            is_mappable: place.is_none() && self.win.state().mapped().may_offer(address, size),
        });
        let entry = match inserted {
            Ok(entry) => entry,
            Err(other) => {
                let (len, at) = (other.len, other.address);
                return Err(bad(format!("{len} bytes at {at:#x} are attached already")));
            }
        };
        if !self.publish(entry) {
            // The new region is the last entry, so its removal moves no other entry.
            // The published number of regions never included the new region.
            self.win.state().attached_cache().remove(address);
            return Err(bad("this rank's part of the node's memory is full".into()));
        }
        Ok(())
    }

    /// Implements `MPI_Win_detach`.
    pub fn detach(self, base: *const u8) -> Result<(), Error> {
        self.only_dynamic("MPI_Win_detach")?;
        let address = base.expose_provenance() as u64;
        let Some(entry) = self.win.state().attached_cache().remove(address) else {
            let sentence = format!(
                "rank {} detaches {address:#x} from {}, where no attached memory begins",
                self.win.rank(),
                self.win.label()
            );
            return Err(OscError::new(OscClass::Attach, sentence).into());
        };
        // A removal never needs a larger table, so `publish` succeeds.
        self.publish(entry);
        Ok(())
    }

    /// Publishes a changed entry and the number of regions to the other members on the node.
    /// Returns false if the arena has no memory for a larger table.
    fn publish(self, entry: Entry) -> bool {
        let count = self.win.state().attached_cache().count_own();
        let (mut place, mut capacity) = self.win.state().attached_cache().table();
        let full = count > capacity;
        let node = self.win.engine().node();
        let larger = match full {
            false => None,
            true => {
                capacity = count.next_power_of_two().max(FIRST_CAPACITY);
                let block = node.alloc_large(capacity * EACH * size_of::<u64>(), 64);
                let Some(block) = block else { return false };
                place = block.place();
                Some(block)
            }
        };
        let Some(words) = node.shared::<AtomicU64>(place, capacity * EACH) else {
            return false;
        };
        let write = |index: usize, region: &Region| {
            let words = &words[index * EACH..][..EACH];
            words[0].store(region.address, Ordering::Relaxed);
            words[1].store(region.len, Ordering::Relaxed);
            words[2].store(region.place, Ordering::Relaxed);
            words[3].store(region.is_mappable.into(), Ordering::Relaxed);
        };
        let head = &self.win.state().control().mine().head;
        let version = head.version.load(Ordering::Relaxed);
        head.version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if full {
            let all = self.win.state().attached_cache().all_own();
            all.iter().enumerate().for_each(|(i, r)| write(i, r));
        } else if let Some(region) = &entry.region {
            write(entry.index, region);
        }
        head.place.store(place.0, Ordering::Relaxed);
        head.count.store(count as u64, Ordering::Relaxed);
        head.version
            .store(version.wrapping_add(2), Ordering::Release);
        if let Some(block) = larger {
            self.win.state().attached_cache().set_table(block, capacity);
        }
        true
    }

    /// Returns the attached regions of another member on this node, sorted by address.
    fn regions(self, target: &Target, head: &Head) -> Option<Rc<[Region]>> {
        let mut backoff = Backoff::new();
        loop {
            let version = head.version.load(Ordering::Acquire);
            if version % 2 == 1 {
                // The version stays odd if the member has died while it changed its table.
                if self.win.is_broken() {
                    return None;
                }
                self.win.engine().poll_once();
                backoff.pause();
                continue;
            }
            let known = self
                .win
                .state()
                .attached_cache()
                .of_member(target.rank, version);
            if known.is_some() {
                return known;
            }
            let place = ShmOffset(head.place.load(Ordering::Relaxed));
            let count = usize::try_from(head.count.load(Ordering::Relaxed)).ok()?;
            let read = || {
                let words = self
                    .win
                    .engine()
                    .node()
                    .shared::<AtomicU64>(place, count.checked_mul(EACH)?)?;
                let region = |words: &[AtomicU64]| Region {
                    address: words[0].load(Ordering::Relaxed),
                    len: words[1].load(Ordering::Relaxed),
                    place: words[2].load(Ordering::Relaxed),
                    is_mappable: words[3].load(Ordering::Relaxed) == 1,
                };
                Some(words.chunks_exact(EACH).map(region).collect())
            };
            let regions: Option<Vec<Region>> = match count {
                0 => Some(Vec::new()),
                _ => read(),
            };
            fence(Ordering::SeqCst);
            if head.version.load(Ordering::Relaxed) == version {
                let mut regions = regions?;
                regions.sort_unstable_by_key(|region| region.address);
                let regions: Rc<[Region]> = regions.into();
                if let Some(index) = target.here {
                    let begins = |address| {
                        let found = regions.binary_search_by_key(&address, |r| r.address);
                        found.is_ok()
                    };
                    self.win.state().mapped().keep(index, begins);
                }
                let kept = regions.clone();
                self.win
                    .state()
                    .attached_cache()
                    .remember(target.rank, version, kept);
                return Some(regions);
            }
        }
    }

    /// Returns the location of an access to attached memory at the target.
    pub(crate) fn locate(
        self,
        target: &'a Target,
        disp: i64,
        span: Range<i64>,
    ) -> Result<TargetLocation<'a>, Error> {
        let address = disp as u64;
        let range = address.wrapping_add_signed(span.start)..address.wrapping_add_signed(span.end);
        if matches!(target.route, Route::Message) && target.here.is_none() {
            return Ok(TargetLocation::Message(address));
        }
        let region = match self.win.is_me(target) {
            true => self.win.state().attached_cache().own(&range),
            false => {
                let head = target
                    .here
                    .map(|index| &self.win.state().control().of(index).head);
                let regions = head.and_then(|head| self.regions(target, head));
                let regions = regions.unwrap_or_default();
                let after = regions.partition_point(|region| region.address <= range.start);
                let from = after.checked_sub(1).and_then(|at| regions.get(at..));
                from.and_then(|from| joined(from.iter().copied(), &range))
            }
        };
        let empty = Region {
            address,
            len: 0,
            place: 0,
            is_mappable: false,
        };
        let region = match region {
            Some(region) => region,
            None if span.is_empty() => empty,
            None => return Err(self.not_attached(target.rank, &range).into()),
        };
        let node = self.win.engine().node();
        let mapped = || node.resolve(ShmOffset(region.place), region.len as usize);
        let attached = || {
            let all = region.address..region.address.checked_add(region.len)?;
            let index = target.here.filter(|_| region.is_mappable)?;
            let first = self.win.state().mapped().region(index, all, &range)?;
            // A datatype can begin before or after the address that the displacement gives.
            Some(first.wrapping_offset((span.start as isize).wrapping_neg()))
        };
        let reach = match target.route {
            _ if self.win.is_me(target) => {
                Reach::Here(std::ptr::with_exposed_provenance_mut(address as usize))
            }
            _ if region.place != 0 => match mapped() {
                Some(start) => {
                    Reach::Here(start.wrapping_add(address.wrapping_sub(region.address) as usize))
                }
                None => return Err(self.not_attached(target.rank, &range).into()),
            },
            route => match (attached(), route) {
                (Some(start), _) => Reach::Here(start),
                (None, Route::Process(pid)) => Reach::Process(pid),
                (None, _) => return Ok(TargetLocation::Message(address)),
            },
        };
        Ok(TargetLocation::Direct(Memory {
            reach,
            address,
            stripes: self.win.memory().stripes(target),
            exclusion: self.win.memory().exclusion(target),
            node: Some(self.win.engine().node()),
            locked: region.place == 0 && self.has_neighbours(),
        }))
    }

    /// Returns true if another member of this window shares this node's memory.
    fn has_neighbours(self) -> bool {
        let me = self.win.rank();
        let mut all = self.win.state().targets().iter();
        all.any(|target| target.here.is_some() && target.rank != me)
    }

    #[cold]
    pub(crate) fn not_attached(self, rank: u32, range: &Range<u64>) -> OscError {
        let (start, len) = (range.start, range.end.wrapping_sub(range.start));
        let sentence = format!(
            "{len} bytes at {start:#x} of rank {rank} are accessed through {}, but no attached memory of that rank holds all of them",
            self.win.label()
        );
        OscError::new(OscClass::Attach, sentence)
    }

    /// Returns this process's memory at `range`, which a received message requests.
    /// `range` has offsets into the window; for a dynamic window it has addresses.
    /// Fails if the window does not contain all of `range`.
    pub(crate) fn own_memory(self, range: &Range<u64>) -> Result<Memory<'a>, OscError> {
        let me = &self.win.state().targets()[self.win.rank() as usize];
        if self.win.flavor() == Flavor::Dynamic {
            let found = self.win.state().attached_cache().own(range);
            let region = found.ok_or_else(|| self.not_attached(me.rank, range))?;
            return Ok(Memory {
                reach: Reach::Here(std::ptr::with_exposed_provenance_mut(range.start as usize)),
                address: range.start,
                stripes: self.win.memory().stripes(me),
                exclusion: self.win.memory().exclusion(me),
                node: Some(self.win.engine().node()),
                locked: region.place == 0 && self.has_neighbours(),
            });
        }
        match me.route {
            Route::Here(base) if range.start <= range.end && range.end <= me.size => Ok(Memory {
                reach: Reach::Here(base.wrapping_add(range.start as usize)),
                address: me.address.wrapping_add(range.start),
                stripes: self.win.memory().stripes(me),
                exclusion: self.win.memory().exclusion(me),
                node: Some(self.win.engine().node()),
                locked: me.locked,
            }),
            _ => {
                let sentence = format!(
                    "bytes {} to {} of rank {} are accessed through {}, which has {} bytes there",
                    range.start,
                    range.end,
                    me.rank,
                    self.win.label(),
                    me.size
                );
                Err(OscError::new(OscClass::Range, sentence))
            }
        }
    }
}
