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
pub static STAND_IN: Param<bool> = Param::new(
    "osc",
    "direct",
    "stand_in",
    "false",
    Level::DEVELOPER,
    "Whether ranks that are threads take each other's memory as it is",
);

/// The service that maps other members' memory.
pub(super) enum Way {
    Device(&'static Device),
    #[cfg(test)]
    StandIn,
}

/// Permission to map memory of one other member.
pub(super) enum Leave {
    Device(Permit),
    #[cfg(test)]
    StandIn,
}

/// Mapped memory of another member.
pub(super) enum Piece {
    Device(Attachment),
    #[cfg(test)]
    StandIn(Range<u64>),
}

impl Way {
    /// Opens the service of this machine, or returns why there is none.
    #[cfg_attr(not(test), allow(unused_variables))]
    pub fn open(engine: &Engine) -> Result<Way, String> {
        #[cfg(test)]
        if engine.params().get(&STAND_IN).unwrap_or(false) {
            return Ok(Way::StandIn);
        }
        let device = xpmem::device().map_err(|why| why.to_string())?;
        Ok(Way::Device(device))
    }

    /// Returns the name under which others map this process's memory; not 0.
    pub fn name(&self) -> u64 {
        match self {
            Way::Device(device) => device.name().get(),
            #[cfg(test)]
            Way::StandIn => 1,
        }
    }

    /// Returns the permission to map memory of the process with this name.
    pub fn leave(&self, name: u64) -> Option<Leave> {
        match self {
            Way::Device(device) => Some(Leave::Device(device.permit(Name::new(name)?).ok()?)),
            #[cfg(test)]
            Way::StandIn => (name == 1).then_some(Leave::StandIn),
        }
    }
}

impl Leave {
    /// Maps `range` of the other member.
    pub fn attach(&self, range: Range<u64>) -> Option<Piece> {
        match self {
            Leave::Device(permit) => permit.attach(range).ok().map(Piece::Device),
            #[cfg(test)]
            Leave::StandIn => Some(Piece::StandIn(range)),
        }
    }
}

impl Piece {
    /// Returns the local address of `range` of the other member, if it is mapped.
    pub fn at(&self, range: &Range<u64>) -> Option<*mut u8> {
        match self {
            Piece::Device(attached) => attached.at(range),
            #[cfg(test)]
            Piece::StandIn(all) => {
                let inside = all.start <= range.start && range.end <= all.end;
                inside.then(|| std::ptr::with_exposed_provenance_mut(range.start as usize))
            }
        }
    }
}
