//! The target location of an access to attached memory of a dynamic window.
//!
//! The fast path finds one region, or adjacent regions, that contain the whole extent of the access.
//! Otherwise each run of the datatype is looked up, because only accessed bytes must be attached.
#![allow(unsafe_code)]

use crate::Error;
use crate::access::attach::AttachedMemory;
use crate::access::{Part, Parts, TargetLocation};
use crate::datatype::{Datatype, Run};
use crate::direct::apply::{Memory, Reach};
use crate::error::{OscClass, OscError};
use crate::runs;
use crate::spec::Flavor;
use crate::state::attached_cache::Region;
use crate::state::known_regions::{KnownRegions, NotAttached};
use crate::state::target::{Route, Target};
use mpi_base::node::ShmOffset;
use std::ops::Range;

/// This process's memory that a received message accesses.
pub(crate) struct OwnMemory<'a> {
    pub memory: Memory<'a>,
    /// The parts of the access if its accumulates need different methods; otherwise empty.
    pub parts: Vec<Part<'a>>,
}

impl<'a> AttachedMemory<'a> {
    /// Returns the location of `count` elements at displacement `disp` of the target.
    pub(super) fn locate(
        self,
        target: &'a Target,
        disp: i64,
        count: i64,
        datatype: &Datatype,
    ) -> Result<TargetLocation<'a>, Error> {
        let address = disp as u64;
        if matches!(target.route, Route::Message) && target.here.is_none() {
            return Ok(TargetLocation::Message(address));
        }
        let span = datatype.span(count);
        let range = address.wrapping_add_signed(span.start)..address.wrapping_add_signed(span.end);
        let known = self.known(target);
        let refused = |byte| {
            let what = format!("an access of {} bytes", datatype.bytes(count));
            self.not_attached(target.rank, &what, byte)
        };
        let Some(region) = known.holding(&range) else {
            let runs = runs::of(datatype, count, datatype.bytes(count));
            let parts = self.divide(target, &known, address, runs);
            return Ok(self.joint_location(target, address, parts.map_err(refused)?));
        };
        let memory = self.memory(target, &region, address, &range);
        Ok(match memory.map_err(refused)? {
            Some(memory) => TargetLocation::Direct(memory),
            None => TargetLocation::Message(address),
        })
    }

    /// Returns the attached regions of a member on this node.
    #[inline]
    fn known(self, target: &Target) -> KnownRegions<'a> {
        if self.win().is_me(target) {
            return KnownRegions::Own(self.win().state().attached_cache());
        }
        let head = target
            .here
            .map(|index| &self.win().state().control().of(index).head);
        let regions = head.and_then(|head| self.regions(target, head));
        KnownRegions::Copied(regions.unwrap_or_default())
    }

    /// Divides runs in several regions into parts; consecutive runs that are reached by one method
    /// are one part. Fails if a byte of the runs is not attached.
    #[cold]
    fn divide(
        self,
        target: &'a Target,
        known: &KnownRegions<'_>,
        address: u64,
        runs: impl Iterator<Item = Run>,
    ) -> Result<Vec<Part<'a>>, NotAttached> {
        let mut parts: Vec<Part<'a>> = Vec::new();
        for divided in known.divide(address, runs) {
            let (region, range) = divided?;
            let memory = self.memory(target, &region, address, &range)?;
            let len = (range.end - range.start) as i64;
            match parts.last_mut() {
                Some(part) if part.is_reached_as(memory.as_ref()) => part.packed.end += len,
                last => {
                    let start = last.map_or(0, |part| part.packed.end);
                    parts.push(Part {
                        packed: start..start + len,
                        memory,
                    });
                }
            }
        }
        Ok(parts)
    }

    fn joint_location(
        self,
        target: &'a Target,
        address: u64,
        mut parts: Vec<Part<'a>>,
    ) -> TargetLocation<'a> {
        if parts.len() > 1 {
            return TargetLocation::Parts(Parts { address, parts });
        }
        match parts.pop().map(|part| part.memory) {
            Some(None) => TargetLocation::Message(address),
            Some(Some(memory)) => TargetLocation::Direct(memory),
            // An access of no bytes uses no address.
            None => TargetLocation::Direct(self.own(target, address, false)),
        }
    }

    /// Returns the memory at `address` if this process accesses it directly, and `None` if by messages.
    /// The memory may be used for the bytes `range` only, which are inside `region`.
    fn memory(
        self,
        target: &'a Target,
        region: &Region,
        address: u64,
        range: &Range<u64>,
    ) -> Result<Option<Memory<'a>>, NotAttached> {
        let locked = region.place == 0 && self.has_neighbours();
        let memory = self.own(target, address, locked);
        if self.win().is_me(target) {
            return Ok(Some(memory));
        }
        let reach = if region.place != 0 {
            let node = self.win().engine().node();
            let start = node.resolve(ShmOffset(region.place), region.len as usize);
            let start = start.ok_or(NotAttached(range.start))?;
            Reach::Here(start.wrapping_add(address.wrapping_sub(region.address) as usize))
        } else {
            match (self.mapped(target, region, range), target.route) {
                // A datatype can begin before or after the address that the displacement gives.
                (Some(first), _) => {
                    Reach::Here(first.wrapping_sub(range.start.wrapping_sub(address) as usize))
                }
                (None, Route::Process(pid)) => Reach::Process(pid),
                (None, _) => return Ok(None),
            }
        };
        Ok(Some(Memory { reach, ..memory }))
    }

    /// Returns the local address of `range` if the region is mapped through XPMEM.
    fn mapped(self, target: &Target, region: &Region, range: &Range<u64>) -> Option<*mut u8> {
        let all = region.address..region.address.checked_add(region.len)?;
        let index = target.here.filter(|_| region.is_mappable)?;
        self.win().state().mapped().region(index, all, range)
    }

    /// Returns a member's memory, reached at its own address, as in that member's process.
    fn own(self, target: &'a Target, address: u64, locked: bool) -> Memory<'a> {
        Memory {
            reach: Reach::Here(std::ptr::with_exposed_provenance_mut(address as usize)),
            address,
            stripes: self.win().memory().stripes(target),
            exclusion: self.win().memory().exclusion(target),
            node: Some(self.win().engine().node()),
            locked,
        }
    }

    /// Returns true if another member of this window shares this node's memory.
    fn has_neighbours(self) -> bool {
        self.win().state().control().count() > 1
    }

    #[cold]
    fn not_attached(self, rank: u32, what: &str, NotAttached(byte): NotAttached) -> OscError {
        let sentence = format!(
            "{what} to rank {rank} through {} includes the byte at {byte:#x}, which that rank has not attached",
            self.win().label()
        );
        OscError::new(OscClass::Range, sentence)
    }

    /// Returns this process's memory at `span`, of which a received message accesses `runs`.
    /// `span` has offsets into the window; for a dynamic window it has addresses.
    /// The offsets of the runs are relative to the start of `span`; the runs have `bytes` bytes.
    /// Fails if the window does not contain all bytes of the runs.
    pub(crate) fn own_memory(
        self,
        span: &Range<u64>,
        (runs, bytes): (impl Iterator<Item = Run>, u64),
    ) -> Result<OwnMemory<'a>, OscError> {
        let me = &self.win().state().targets()[self.win().rank() as usize];
        if self.win().flavor() == Flavor::Dynamic {
            let known = self.known(me);
            if let Some(region) = known.holding(span) {
                let locked = region.place == 0 && self.has_neighbours();
                return Ok(OwnMemory {
                    memory: self.own(me, span.start, locked),
                    parts: Vec::new(),
                });
            }
            let found = self.divide(me, &known, span.start, runs);
            let parts = found.map_err(|byte| {
                let what = format!("a message with {bytes} bytes of an access");
                self.not_attached(me.rank, &what, byte)
            })?;
            let first = parts.first().and_then(|part| part.memory.as_ref());
            return Ok(OwnMemory {
                memory: self.own(me, span.start, first.is_some_and(|memory| memory.locked)),
                parts: Some(parts)
                    .filter(|parts| parts.len() > 1)
                    .unwrap_or_default(),
            });
        }
        match me.route {
            Route::Here(base) if span.start <= span.end && span.end <= me.size => Ok(OwnMemory {
                memory: Memory {
                    reach: Reach::Here(base.wrapping_add(span.start as usize)),
                    address: me.address.wrapping_add(span.start),
                    stripes: self.win().memory().stripes(me),
                    exclusion: self.win().memory().exclusion(me),
                    node: Some(self.win().engine().node()),
                    locked: me.locked,
                },
                parts: Vec::new(),
            }),
            _ => {
                let sentence = format!(
                    "bytes {} to {} of rank {} are accessed through {}, which has {} bytes there",
                    span.start,
                    span.end,
                    me.rank,
                    self.win().label(),
                    me.size
                );
                Err(OscError::new(OscClass::Range, sentence))
            }
        }
    }
}
