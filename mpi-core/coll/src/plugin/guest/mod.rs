//! The plugin side of the tables: writing a plugin in safe Rust.
//!
//! A component implements [`Guest`] and its modules [`Module`]; [`BuiltIn::of`] makes its C table at compile time.
//! The same table is built into the library and returned by the function that a plugin file exports, which has a manifest besides:
//! [`portcullis_plugin!`](crate::portcullis_plugin) makes both.
//!
//! A panic in a component does not cross the ABI; it becomes a failure with an error text.
//! A [`Comm`] may be stored anywhere; its services fail once its module has been freed.

mod comm;
mod common;
mod tables;

pub use comm::{Comm, Message, SharedMemory};
pub use common::Common;
pub use mpi_base::plugin_file::manifest::Note;
pub use tables::BuiltIn;

use super::abi;
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

/// A component's functions for one communicator.
///
/// Methods take `&self`: a blocking barrier progresses MPI, and progress tests barriers that were started before.
pub trait Module: 'static {
    /// Collective set-up; may use blocking services.
    fn enable(&self) -> Result<(), String>;

    /// `MPI_Barrier`; may use blocking services.
    fn barrier(&self) -> Result<Served, String>;

    /// Starts `MPI_Ibarrier`.
    fn start(&self) -> Result<Started, String>;

    /// Tests a started barrier until it is complete.
    fn test(&self, ticket: u64) -> Result<Poll<Served>, String>;

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
    fn disable(&self);
}

/// Makes a plugin file of a component: its manifest and the one function that it exports.
#[macro_export]
macro_rules! portcullis_plugin {
    ($component:ty) => {
        /// The manifest, which is read before the file is opened.
        #[used]
        #[allow(unsafe_code)]
        // SAFETY: the section is that of plugins' manifests, and contains notes only.
        #[unsafe(link_section = ".note.portcullis")]
        static PORTCULLIS_MANIFEST: $crate::plugin::guest::Note =
            $crate::plugin::guest::manifest::<$component>();

        /// The one exported function.
        #[allow(unsafe_code)]
        // SAFETY: the name belongs to the plugin interface, and no other symbol of this file has it.
        #[unsafe(no_mangle)]
        pub extern "C" fn portcullis_component() -> *const $crate::plugin::abi::ComponentTable {
            const TABLE: $crate::plugin::guest::BuiltIn =
                $crate::plugin::guest::BuiltIn::of::<$component>();
            TABLE.as_ptr()
        }
    };
}

/// Makes the manifest of a component; see [`portcullis_plugin!`](crate::portcullis_plugin).
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
