//! OSC, one-sided communication: windows, and access to the memory of others without their help (MPI 5.0, chapter 12).
//!
//! One state machine of epochs ([`epoch`]) serves two components, which are chosen for each window and each target:
//! * **direct**: the target shares this node's memory. Its control words are there ([`control`]); its window is mapped if it lies in an arena
//!   of the node, as memory of `MPI_Win_allocate`, `MPI_Win_allocate_shared` and `MPI_Alloc_mem` does, or if the kernel maps other memory ([`mapped`]),
//!   else the system copies (`process_vm_writev`).
//!   Nothing waits for the target.
//! * **am**: active messages over whatever transport reaches the target ([`am`]), which answers whenever it is inside any MPI call.
//!
//! Promise: accumulates of one basic type to one element are atomic whichever routes they take ([`apply`]).
//!
//! | file | subject |
//! |---|---|
//! | [`win`] | a window's state, and what can be asked of it |
//! | [`target`], [`epoch`], [`control`], [`attached`], [`accesses`], [`turns`] | parts of that state: what is known of each member, which accesses are allowed, the words that members on one node share, attached memory, accesses that are not complete, the order of a run that is recorded |
//! | [`make`] | making and freeing windows |
//! | [`active`] | fence, post, start, complete, wait |
//! | [`passive`] | locks and flushes |
//! | [`access`] | what an access is about, and what it does |
//! | [`spot`] | where it goes, and the checks of every access |
//! | [`transfer`] | put and get |
//! | [`accumulate`] | accumulate and its relatives |
//! | [`runs`] | where the bytes of an access lie |
//! | [`apply`] | one operator on elements in memory |
//! | [`word`] | the same on one word by one instruction |
//! | [`attach`] | attaching memory to dynamic windows, and finding it |
//! | [`mapped`] | memory that the program got elsewhere, mapped where the kernel can |
//! | [`check`] | finding accesses that conflict |
//! | [`neighbours`] | what others access at the same time |
//! | [`wait`] | waiting for another member |
//! | [`traced`] | what a trace is told |
//! | [`recorded`] | the order of all this in a run that is recorded |
//! | [`am`] | the same by messages |
//!
//! The state imports no operation; operations add methods to [`Win`], each file for itself.

#![deny(unsafe_code)]

mod access;
mod accesses;
mod accumulate;
mod active;
mod am;
mod apply;
mod attach;
mod attached;
mod check;
mod control;
mod epoch;
mod error;
mod make;
mod mapped;
mod neighbours;
mod passive;
mod recorded;
mod runs;
mod spot;
mod target;
#[cfg(test)]
mod tests;
mod traced;
mod transfer;
mod turns;
mod wait;
mod win;
mod word;

pub use access::There;
pub use accesses::CHECK;
pub use am::Service;
pub use epoch::Assert;
pub use error::{OscClass, OscError};
pub use mapped::{XPMEM, explain};
pub use mpi_base::window::Mode as LockMode;
pub use win::Win;

// What is below, by the names that the files here use.
use mpi_coll as coll;
use mpi_engine::{comm, engine, record, trace};
use mpi_p2p::request;
use mpi_transport::{bml, btl};
use mpi_types::error::{Error, Failure};
use mpi_types::{datatype, group, op};

use mpi_base::param::{Param, Params, Selection};

/// Which components may serve, `--mca osc am`.
pub static SELECTION: Param<Selection> = Param::selection(
    "osc",
    "",
    "Components of one-sided communication that may be used besides am, which always may; both, if empty",
);

/// Whether neighbours may be reached through memory; a selection that cannot be read is reported elsewhere.
pub fn is_direct_allowed(params: &Params) -> bool {
    params
        .get(&SELECTION)
        .map_or(true, |selection| selection.allows("direct"))
}

/// How a window gets its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// The program's.
    Create,
    Allocate,
    /// Allocated, and mapped by all members.
    Shared,
    /// What is attached to it later.
    Dynamic,
}

/// What is asserted or asked for when a window is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    /// There are no passive epochs.
    pub no_locks: bool,
    /// Parts of a shared window need not follow each other.
    pub noncontiguous: bool,
    /// Where memory begins, a power of two.
    pub alignment: usize,
}

impl Default for Hints {
    fn default() -> Hints {
        Hints {
            no_locks: false,
            noncontiguous: false,
            alignment: 64,
        }
    }
}

/// What a window is made of.
#[derive(Clone, Debug)]
pub struct Spec {
    pub flavor: Flavor,
    /// The program's memory; not looked at where the window brings its own.
    pub base: *mut u8,
    pub size: u64,
    pub unit: u64,
    pub hints: Hints,
}

/// A part of a window that can be loaded from and stored to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedSegment {
    pub base: *mut u8,
    pub size: u64,
    pub unit: u64,
}
