//! The service that maps other members' memory: XPMEM, and in tests a replacement, so that mapped memory is tested on every machine.
//!
//! The replacement is for ranks that are threads of one process: the memory of the other rank is already in this address space.

use crate::engine::Engine;
#[cfg(test)]
use mpi_base::param::{Level, Param};
use mpi_base::xpmem::{self, Attachment, Device, Name, Permit};
use std::ops::Range;

/// Whether the replacement is used.
#[cfg(test)]
pub static REPLACED: Param<bool> = Param::new(
    "osc",
    "direct",
    "stand_in",
    "false",
    Level::DEVELOPER,
    "Whether ranks that are threads take each other's memory as it is",
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
    /// Opens the service of this machine, or returns why there is none.
    #[cfg_attr(not(test), allow(unused_variables))]
    pub fn open(engine: &Engine) -> Result<Mapper, String> {
        #[cfg(test)]
        if engine.params().get(&REPLACED).unwrap_or(false) {
            return Ok(Mapper::Replaced);
        }
        let device = xpmem::device().map_err(|why| why.to_string())?;
        Ok(Mapper::Device(device))
    }

    /// Returns the name under which others map this process's memory; not 0.
    pub fn name(&self) -> u64 {
        match self {
            Mapper::Device(device) => device.name().get(),
            #[cfg(test)]
            Mapper::Replaced => 1,
        }
    }

    /// Returns the permission to map memory of the process with this name.
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
    /// Maps `range` of the other member.
    pub fn attach(&self, range: Range<u64>) -> Option<Mapping> {
        match self {
            MapPermit::Device(permit) => permit.attach(range).ok().map(Mapping::Device),
            #[cfg(test)]
            MapPermit::Replaced => Some(Mapping::Replaced(range)),
        }
    }
}

impl Mapping {
    /// Returns the local address of `range` of the other member, if it is mapped.
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
