//! The service that maps other members' memory: XPMEM, or a replacement in tests.
//!
//! The replacement makes the mapping code testable on machines without XPMEM.
//! It requires that the ranks are threads of one process:
//! then the memory of all ranks is in one address space.

use crate::engine::Engine;
#[cfg(test)]
use mpi_base::param::{Level, Param};
use mpi_base::xpmem::{self, Attachment, Device, Name, Permit};
use std::ops::Range;

/// A parameter with which tests replace XPMEM.
#[cfg(test)]
pub static REPLACED: Param<bool> = Param::new(
    "osc",
    "direct",
    "stand_in",
    "false",
    Level::DEVELOPER,
    "For tests whose ranks are threads: whether memory of other ranks is accessed without mapping it",
);

/// The service that maps other members' memory.
pub(crate) enum Mapper {
    Device(&'static Device),
    #[cfg(test)]
    Replaced,
}

/// Permission to map memory of one other member.
pub(crate) enum MapPermit {
    Device(Permit),
    #[cfg(test)]
    Replaced,
}

/// Mapped memory of another member.
pub(crate) enum Mapping {
    Device(Attachment),
    #[cfg(test)]
    Replaced(Range<u64>),
}

impl Mapper {
    /// Opens the mapping service of this machine. On failure returns the reason.
    #[cfg_attr(not(test), allow(unused_variables))]
    pub fn open(engine: &Engine) -> Result<Mapper, String> {
        #[cfg(test)]
        if engine.params().get(&REPLACED).unwrap_or(false) {
            return Ok(Mapper::Replaced);
        }
        let device = xpmem::device().map_err(|why| why.to_string())?;
        Ok(Mapper::Device(device))
    }

    /// Returns the name with which other members map this process's memory; never 0.
    pub fn name(&self) -> u64 {
        match self {
            Mapper::Device(device) => device.name().get(),
            #[cfg(test)]
            Mapper::Replaced => 1,
        }
    }

    /// Returns a permission to map memory of the process with this name.
    pub fn permit(&self, name: u64) -> Option<MapPermit> {
        match self {
            Mapper::Device(device) => {
                Some(MapPermit::Device(device.permit(Name::new(name)?).ok()?))
            }
            #[cfg(test)]
            Mapper::Replaced => (name == 1).then_some(MapPermit::Replaced),
        }
    }
}

impl MapPermit {
    /// Maps `range` of the other member's memory.
    pub fn attach(&self, range: Range<u64>) -> Option<Mapping> {
        match self {
            MapPermit::Device(permit) => permit.attach(range).ok().map(Mapping::Device),
            #[cfg(test)]
            MapPermit::Replaced => Some(Mapping::Replaced(range)),
        }
    }
}

impl Mapping {
    /// Returns the local address of the other member's `range`, if the mapping contains it.
    pub fn at(&self, range: &Range<u64>) -> Option<*mut u8> {
        match self {
            Mapping::Device(attached) => attached.at(range),
            #[cfg(test)]
            Mapping::Replaced(all) => {
                let inside = all.start <= range.start && range.end <= all.end;
                inside.then(|| std::ptr::with_exposed_provenance_mut(range.start as usize))
            }
        }
    }
}
