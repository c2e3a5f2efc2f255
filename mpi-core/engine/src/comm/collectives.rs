//! Traits by which the engine uses the collective components of a communicator.
//!
//! A process has one [`Framework`], which is passed to its engine at the start ([`Engine::serve_collectives_by`](crate::Engine::serve_collectives_by)).
//! When a communicator is created, the framework returns a [`Proposal`] for it. After the members have agreed, the communicator has [`Collectives`].
#![allow(unsafe_code)]

use super::{Comm, Conversation, EurekaLine};
use crate::coll::{Call, CallId, FastCall, Running};
use crate::datatype::RecvBuf;
use crate::{Error, Failure};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// A future of an operation in which all members of a communicator take part.
pub type Joint<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + 'a>>;

/// The collective components of a process.
pub trait Framework {
    /// Returns the components that this process could use for a communicator. Local: must not communicate.
    fn propose(&self, comm: &Comm) -> Result<Box<dyn Proposal>, Error>;

    /// Returns the collectives of an intercommunicator, which need no agreement.
    fn between_groups(&self) -> Box<dyn Collectives>;

    /// Allgather in an internal conversation.
    ///
    /// `first` is rank 0's block; the other ranks' blocks follow it in memory. Each member has written its own block before the call.
    fn allgather<'a>(&self, conversation: &'a Conversation, first: &'a RecvBuf) -> Joint<'a, ()>;

    /// Broadcast of `buf` from the member `root`.
    fn bcast<'a>(
        &self,
        conversation: &'a Conversation,
        buf: &'a RecvBuf,
        root: u32,
    ) -> Joint<'a, ()>;

    /// Barrier in an internal conversation.
    fn barrier<'a>(&self, conversation: &'a Conversation) -> Joint<'a, ()>;
}

/// The components that a process could use for a communicator, before the members have agreed.
pub trait Proposal {
    /// Appends rank 0's offers of components to `to`; called on rank 0, one time per communicator.
    fn invite(&self, comm: &Comm, to: &mut Vec<u8>);

    /// Agrees with all members of `comm`.
    /// `invitation` contains rank 0's offers of components; each member has received them.
    fn agree<'a>(
        self: Box<Self>,
        comm: &'a Comm,
        invitation: &'a [u8],
    ) -> Joint<'a, Box<dyn Collectives>>;

    /// Selects components without communication, if a member has died before the agreement:
    /// only components that need no set-up are used.
    /// The members' selections may differ, because every operation on the communicator then fails anyway.
    fn choose_alone(self: Box<Self>) -> Box<dyn Collectives>;
}

/// The collective operations of one communicator.
///
/// `number` is the number of the call on its communicator, the same on all members.
pub trait Collectives: Any {
    /// Carries out a blocking call.
    fn carry_out(&self, comm: &Comm, number: i32, call: &Call) -> Result<(), Error>;

    /// Starts a nonblocking call.
    fn begin(&self, comm: &Comm, number: i32, call: Call) -> Result<Running, Error>;

    /// Creates state that a persistent operation keeps between its starts;
    /// `None` if it needs no such state.
    fn plan(&self, _call: &Call) -> Option<Rc<dyn Any>> {
        None
    }

    /// Starts a persistent operation with the state from [`Collectives::plan`].
    fn begin_planned(
        &self,
        comm: &Comm,
        number: i32,
        call: Call,
        _plan: &Rc<dyn Any>,
    ) -> Result<Running, Error> {
        self.begin(comm, number, call)
    }

    /// Returns the carrier of a collective's fast calls; `None` if there are none. Called once per [`CallId`], when the components are stored.
    /// The carrier gets fast calls of this collective only.
    fn fast_slot(&self, call: CallId) -> Option<FastSlot>;

    /// Carries out a few operations without user data, which load code and memory into the caches. All members call it.
    fn rehearse(&self, _comm: &Comm) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the eureka line of the first component that has one for this communicator.
    fn eureka(&self) -> Option<&dyn EurekaLine> {
        None
    }

    /// Returns the selected components, and the reasons why others were not selected, one fact per line;
    /// `mpirun --explain` prints them.
    fn explain(&self, comm: &str) -> Vec<String>;

    /// Returns a clause with the reason for each component that may serve but is not used; error messages contain them.
    fn unwilling(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns true if a later communicator with the same members can use the components after this one has been freed.
    /// All members get the same result.
    fn is_reusable(&self) -> bool {
        false
    }

    /// Returns a number that is equal on all members if they have executed the same operations.
    /// Returns `None` if an operation is in progress on this member, or if the components do not suit a new duplicate of `parent`.
    fn progress(&self, _parent: &Comm) -> Option<u64> {
        None
    }

    /// Prefetches the memory that the next short calls use, because a new communicator gets the components of a freed one.
    fn prefetch_next(&self) {}

    /// Frees what the components use; called when the communicator is freed.
    fn disable(&self);
}

/// The carrier of one collective's fast calls on a communicator.
pub struct FastSlot {
    /// The maximum of [`FastCall::bytes`] for which the carrier may be called; the same on all members.
    pub limit: usize,
    /// Same as `limit`, for [`FastCarrier::begin`]; `None` if the carrier starts no requests.
    pub limit_of_requests: Option<usize>,
    pub carrier: Rc<dyn FastCarrier>,
}

/// Carries out the fast calls of one collective, up to the limit of its [`FastSlot`].
///
/// A fast call is a single call of the carrier, which makes no choice among components.
pub trait FastCarrier {
    /// Carries out a fast call.
    ///
    /// # Safety
    /// `fast_call` is of the collective for which the carrier was returned.
    unsafe fn carry_out(&self, comm: &Comm, fast_call: &FastCall<'_>) -> Result<(), Error>;

    /// Starts a fast call as a request; only if the [`FastSlot`] has a limit of requests.
    /// Returns the future that completes the operation, or `None` if the operation is complete.
    /// The future waits only for words that other ranks store in the node's memory.
    ///
    /// # Safety
    /// `fast_call` is of the collective for which the carrier was returned.
    /// Its buffers stay valid, and no other code uses the receive buffer, until the operation is complete.
    unsafe fn begin(
        &self,
        comm: &Comm,
        fast_call: FastCall<'static>,
    ) -> Result<Option<Running>, Error> {
        Err(Unserved::on(comm, fast_call.id()))
    }
}

/// The error of a call on a communicator that has no component for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    pub call: CallId,
    pub comm: String,
    /// A clause for each component that may serve but is not used.
    pub unwilling: Vec<String>,
}

impl Unserved {
    /// Returns the error of a call on a communicator.
    #[cold]
    pub fn on(comm: &Comm, call: CallId) -> Error {
        let chosen = comm.collectives().components();
        Unserved {
            call,
            comm: comm.label(),
            unwilling: chosen.map(Collectives::unwilling).unwrap_or_default(),
        }
        .into()
    }
}

impl fmt::Display for Unserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unserved {
            call,
            comm,
            unwilling,
        } = self;
        write!(
            f,
            "no collective component serves {call} on {comm}; see the parameter coll"
        )?;
        unwilling.iter().try_for_each(|why| write!(f, "; {why}"))
    }
}

impl std::error::Error for Unserved {}

impl Failure for Unserved {}
