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
use crate::error::{OscClass, OscError};
use crate::spec::Flavor;
use crate::state::attached_cache::{Entry, Region};
use crate::state::control::Head;
use crate::state::target::Target;
use crate::win::Win;
use mpi_base::atomic::{AtomicU64, Ordering, fence};
use mpi_base::node::ShmOffset;
use mpi_base::yield_now::Backoff;
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
    pub(super) fn win(self) -> &'a Win {
        self.win
    }

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
            // `MPI_ERR_RMA_ATTACH` is defined for memory that cannot be attached only.
            return Err(OscError::new(OscClass::Base, sentence).into());
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
    pub(super) fn regions(self, target: &Target, head: &Head) -> Option<Rc<[Region]>> {
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
}
