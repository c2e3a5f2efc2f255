//! A collective component in safe Rust, and the C functions over it.
//!
//! A component implements [`Guest`] and its modules [`Module`]; [`BuiltIn::of`] makes its C table at compile time.
//! The same table is built into the library and returned by the function that a plugin file exports, which has a manifest besides:
//! [`portcullis_component!`](crate::portcullis_component) makes both.
//!
//! A panic in a component does not cross the ABI; it becomes a failure with an error text.
//! A [`Comm`] may be stored anywhere; its services fail once its module has been freed.

pub mod abi;
mod call;
pub mod caught;
mod comm;
mod common;
mod functions;
#[rustfmt::skip]
pub(crate) mod table;

pub use call::{Buffer, Call, Data, Message as CallMessage};
pub use comm::{Comm, Message, SharedMemory};
pub use common::Common;
pub use functions::{BuiltIn, nonblocking, operation};

use crate::manifest::Note;
use std::ffi::CStr;
use std::task::Poll;

/// A component.
pub trait Guest: 'static {
    /// The component's name in `--mca coll` and in its parameters.
    const NAME: &'static CStr;
    /// Shown by `mpi-info`; the compatibility check uses [`abi::ABI_VERSION`] instead.
    const VERSION: &'static CStr;
    /// Default of the priority parameter.
    const PRIORITY: i32;
    /// Parameters besides the priority; [`Comm::param`] reads them.
    const PARAMS: &'static [abi::Param] = &[];
    /// The parameter with which the user asks for the component, by giving it a value other than the default.
    const ASKED_BY: Option<&'static CStr> = None;
    /// The component's module for one communicator.
    type Module: Module;

    /// Creates a module if this process can serve the communicator; the error is the reason if not. Must not communicate.
    fn query(comm: Comm) -> Result<Self::Module, String>;
}

/// Which component serves a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    Here,
    /// The next lower component serves it; every member returns the same for the same call.
    Next,
}

/// Result of starting a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    Ticket(u64),
    /// The next lower component serves it, as [`Served::Next`].
    Next,
}

/// Result of beginning an operation without waiting for it.
pub enum Begun<'c> {
    /// It is tested until it is complete.
    Here(Box<dyn InProgress + 'c>),
    /// The next lower component serves it, as [`Served::Next`].
    Next,
}

/// An operation in progress; it is dropped when it is complete or has failed.
pub trait InProgress {
    /// Tests it; must not use blocking services.
    fn test(&mut self) -> Result<Poll<()>, String>;
}

/// A component's functions for one communicator.
///
/// Methods take `&self`: a blocking barrier progresses MPI, and progress tests barriers that were started before.
pub trait Module: 'static {
    /// False if it serves no barrier; then the three methods for barriers are not called.
    const BARRIER: bool = true;

    /// The operations that it serves: by [`Module::run`] if made by [`operation`], by [`Module::begin`] if made by [`nonblocking`].
    const OPERATIONS: &'static [abi::Operation] = &[];

    /// Collective set-up; may use blocking services.
    fn enable(&self) -> Result<(), String> {
        Ok(())
    }

    /// Carries out a blocking call of one of the operations; may use blocking services.
    /// [`Served::Next`] is allowed before it has sent anything, at all members for the same call.
    fn run(&self, _: &Call<'_>) -> Result<Served, String> {
        Ok(Served::Next)
    }

    /// Begins a call of one of the operations without waiting for it; must not use blocking services.
    /// [`Begun::Next`] is allowed before it has sent anything, at all members for the same call.
    fn begin<'c>(&'c self, _: Call<'c>) -> Result<Begun<'c>, String> {
        Ok(Begun::Next)
    }

    /// `MPI_Barrier`; may use blocking services.
    fn barrier(&self) -> Result<Served, String> {
        Ok(Served::Next)
    }

    /// Starts `MPI_Ibarrier`.
    fn start(&self) -> Result<Started, String> {
        Ok(Started::Next)
    }

    /// Tests a started barrier until it is complete.
    fn test(&self, _: u64) -> Result<Poll<Served>, String> {
        Err("no barrier was started".into())
    }

    /// Called when a message of [`Comm::start_recv`] or [`Comm::start_send`] completes, and periodically,
    /// whatever this process waits for; must not use blocking services.
    fn attend(&self) {}

    /// Opens a round of the eureka line, ordered with barriers on all members; may use blocking services.
    /// [`Served::Next`], on all members, if the component does not serve the round. Until the round ends, no barrier lowers the line.
    fn eureka_begin(&self) -> Result<Served, String> {
        Ok(Served::Next)
    }

    /// Raises the line: it is high on return. Returns true if this member is the first in the round.
    fn eureka_raise(&self) -> Result<bool, String> {
        Err("this component has no eureka line".into())
    }

    /// Returns true if a member has raised the line in this round.
    fn eureka_test(&self) -> Result<bool, String> {
        Err("this component has no eureka line".into())
    }

    /// Ends the round; returns after every member has called it. May use blocking services.
    fn eureka_end(&self) -> Result<(), String> {
        Ok(())
    }

    /// The communicator is being freed: restore the initial state. Not a collective call.
    fn disable(&self) {}
}

/// Makes the manifest of a component; see [`portcullis_component!`](crate::portcullis_component).
pub const fn manifest<G: Guest>() -> Note {
    Note::of(&abi::INTERFACE, c"coll", G::NAME, G::VERSION)
}

/// A parameter of the component; `kind` as in `plugin.h`.
pub const fn param(
    name: &'static CStr,
    default: &'static CStr,
    kind: &'static CStr,
    help: &'static CStr,
) -> abi::Param {
    abi::Param {
        name: name.as_ptr(),
        default_value: default.as_ptr(),
        help: help.as_ptr(),
        kind: kind.as_ptr(),
    }
}
