//! Collective components in safe Rust, and the C functions over them.
//!
//! A component implements [`Guest`], its modules [`Module`]; [`BuiltIn::of`] creates its C table.
//! The library contains the tables of its own components.
//! A plugin has a manifest and exports a function that returns the table of its component;
//! [`portcullis_component!`](crate::portcullis_component) creates both.
//!
//! A panic in a component does not cross the ABI; the call fails with an error text instead.
//! A component may store a [`Comm`] anywhere; its services fail after its module has been freed.

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

/// A collective component.
pub trait Guest: 'static {
    /// The component's name in `--mca coll` and in its parameters.
    const NAME: &'static CStr;
    /// The version in `mpi-info`; the compatibility check uses [`abi::ABI_VERSION`] instead.
    const VERSION: &'static CStr;
    /// The default value of the component's priority parameter.
    const PRIORITY: i32;
    /// The parameters besides the priority; [`Comm::param`] returns their values.
    const PARAMS: &'static [abi::Param] = &[];
    /// The parameter by which a user requests this component: with any value except the default.
    const ASKED_BY: Option<&'static CStr> = None;
    /// The component's module for one communicator.
    type Module: Module;

    /// Creates a module, or returns the reason why this process cannot serve the communicator.
    /// This function must not communicate.
    fn query(comm: Comm) -> Result<Self::Module, String>;
}

/// The component that serves a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    Here,
    /// The component with the next lower priority serves the call.
    /// All members must return this for the same call.
    Next,
}

/// The result of starting a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    Ticket(u64),
    /// The next lower component serves the barrier, as with [`Served::Next`].
    Next,
}

/// The result of starting a nonblocking operation.
pub enum Begun<'c> {
    /// The operation has started; the library tests it until it is complete.
    Here(Box<dyn InProgress + 'c>),
    /// The next lower component serves the operation, as with [`Served::Next`].
    Next,
}

/// An operation in progress. The library drops it after it is complete or has failed.
pub trait InProgress {
    /// Tests the operation. Must not use blocking services.
    fn test(&mut self) -> Result<Poll<()>, String>;
}

/// The functions of a component for one communicator.
///
/// Methods take `&self`: MPI's progress in a blocking barrier may test earlier barriers.
pub trait Module: 'static {
    /// False if the module serves no barriers; its barrier methods are then never called.
    const BARRIER: bool = true;

    /// The operations that the module serves, created by [`operation`] or [`nonblocking`].
    const OPERATIONS: &'static [abi::Operation] = &[];

    /// Collective setup of the module. May use blocking services.
    fn enable(&self) -> Result<(), String> {
        Ok(())
    }

    /// Executes a blocking call of one of the operations. May use blocking services.
    /// [`Served::Next`] is allowed before the first message, at all members for the same call.
    fn run(&self, _: &Call<'_>) -> Result<Served, String> {
        Ok(Served::Next)
    }

    /// Starts a call of one of the operations. Must not use blocking services.
    /// [`Begun::Next`] is allowed before the first message, at all members for the same call.
    fn begin<'c>(&'c self, _: Call<'c>) -> Result<Begun<'c>, String> {
        Ok(Begun::Next)
    }

    /// Executes `MPI_Barrier`. May use blocking services.
    fn barrier(&self) -> Result<Served, String> {
        Ok(Served::Next)
    }

    /// Starts `MPI_Ibarrier`.
    fn start(&self) -> Result<Started, String> {
        Ok(Started::Next)
    }

    /// Tests a started barrier; the library repeats the call until the barrier is complete.
    fn test(&self, _: u64) -> Result<Poll<Served>, String> {
        Err("no barrier was started".into())
    }

    /// Called on completion of a message of [`Comm::start_recv`] or [`Comm::start_send`], and
    /// periodically during any wait of this process. Must not use blocking services.
    fn attend(&self) {}

    /// Starts a round of the eureka line, ordered with barriers. May use blocking services.
    /// To decline, all members return [`Served::Next`]. During a round, no barrier lowers the line.
    fn eureka_begin(&self) -> Result<Served, String> {
        Ok(Served::Next)
    }

    /// Raises the line, which is high on return.
    /// Returns true at the member that raises the line first in this round.
    fn eureka_raise(&self) -> Result<bool, String> {
        Err("this component has no eureka line".into())
    }

    /// Returns true if a member has raised the line in this round.
    fn eureka_test(&self) -> Result<bool, String> {
        Err("this component has no eureka line".into())
    }

    /// Ends the round; returns after every member has called this function.
    /// May use blocking services.
    fn eureka_end(&self) -> Result<(), String> {
        Ok(())
    }

    /// Restores the initial state before the communicator is freed. Not a collective call.
    fn disable(&self) {}
}

/// Returns the manifest of a component, for `portcullis_component!`.
pub const fn manifest<G: Guest>() -> Note {
    Note::of(&abi::INTERFACE, c"coll", G::NAME, G::VERSION)
}

/// Creates a parameter of a component; `kind` names its type, as listed in `plugin.h`.
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
