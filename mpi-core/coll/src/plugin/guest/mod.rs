//! Writing a plugin in safe Rust: the other side of the tables.
//!
//! A component implements [`Guest`] and its modules [`Module`]; [`BuiltIn::of`] makes the C table of it, once, at compile time.
//! The same table is built into the library and returned by the plugin file's one symbol:
//!
//! ```ignore
//! static TABLE: BuiltIn = BuiltIn::of::<Mine>();
//!
//! #[unsafe(no_mangle)]
//! pub extern "C" fn portcullis_component() -> *const abi::ComponentTable {
//!     TABLE.as_ptr()
//! }
//! ```
//!
//! A panic in a component ends here and becomes a failure with a sentence.
//! A [`Comm`] may be kept anywhere; once its module is gone its services fail.

mod comm;
mod common;
mod tables;

pub use comm::{Comm, Message, SharedMemory};
pub use common::Common;
pub use tables::BuiltIn;

use super::abi;
use std::ffi::CStr;
use std::task::Poll;

/// A component.
pub trait Guest: 'static {
    /// The user's word for it in `--mca coll` and in its parameters.
    const NAME: &'static CStr;
    /// Shown by `mpi-info`; the library compares [`abi::ABI_VERSION`], and not this.
    const VERSION: &'static CStr;
    /// The default of its priority parameter.
    const PRIORITY: i32;
    /// What the user can set besides the priority; each is read by [`Comm::param`].
    const PARAMS: &'static [abi::Param] = &[];
    /// The parameter by which the user asks for the component: its value is not the default then.
    const ASKED_BY: Option<&'static CStr> = None;
    /// What one communicator is served by.
    type Module: Module;

    /// Whether this process can serve the communicator; the error is the reason why not. No communication here.
    fn query(comm: Comm) -> Result<Self::Module, String>;
}

/// Which component serves a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    Here,
    /// The next component down shall do it; every member says so for the same call.
    Next,
}

/// What a started barrier is asked for by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    Ticket(u64),
    /// As [`Served::Next`].
    Next,
}

/// What a component does for one communicator.
///
/// Methods take `&self`, because a barrier that waits lets MPI progress, and progress tests barriers that were started before.
pub trait Module: 'static {
    /// Sets up what all members set up together; blocking services may be used.
    fn enable(&self) -> Result<(), String>;

    /// `MPI_Barrier`; blocking services may be used.
    fn barrier(&self) -> Result<Served, String>;

    /// The first half of `MPI_Ibarrier`.
    fn start(&self) -> Result<Started, String>;

    /// The second half, until it is ready.
    fn test(&self, ticket: u64) -> Result<Poll<Served>, String>;

    /// A message that was started with [`Comm::start_recv`] or [`Comm::start_send`] is through, or some time has passed,
    /// whatever this process waits for; no blocking services.
    fn attend(&self) {}

    /// Opens a round of a eureka line, in one order with barriers at all members; blocking services may be used.
    /// [`Served::Next`], at all members alike, if the round has to go another way. Until its end no barrier lowers the line.
    fn eureka_begin(&self) -> Result<Served, String> {
        Ok(Served::Next)
    }

    /// This member has found it: the line is high when this returns; true if it is the first of the round.
    fn eureka_raise(&self) -> Result<bool, String> {
        Err("this component has no eureka line".into())
    }

    /// Whether a member has found it in this round.
    fn eureka_test(&self) -> Result<bool, String> {
        Err("this component has no eureka line".into())
    }

    /// Ends the round, returning after every member has called it; blocking services may be used.
    fn eureka_end(&self) -> Result<(), String> {
        Ok(())
    }

    /// The communicator goes away: leave everything as it was. Members do not call it together.
    fn disable(&self);
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
