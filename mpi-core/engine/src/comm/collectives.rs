//! The traits of a communicator's collective operations.
//!
//! A process has one [`Framework`], which the composition root gives to its engine ([`Engine::serve_collectives_by`](crate::Engine::serve_collectives_by)).
//! When a communicator is created, the framework makes a [`Proposal`] for it. The members agree, and the result is the communicator's [`Collectives`].
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
    /// Returns the components that this process could use for a communicator, before its members have agreed. Local: must not communicate.
    fn propose(&self, comm: &Comm) -> Result<Box<dyn Proposal>, Error>;

    /// Returns the collectives of an intercommunicator, which need no agreement.
    fn between_groups(&self) -> Box<dyn Collectives>;

    /// Allgather in an internal conversation.
    ///
    /// `first` describes rank 0's block; the other blocks follow it in memory. Each member has written its own block already.
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
    /// Appends rank 0's part of the agreement to `to`; called once, at rank 0.
    fn invite(&self, comm: &Comm, to: &mut Vec<u8>);

    /// Agrees with all members of `comm`, each of which has received rank 0's invitation.
    fn agree<'a>(
        self: Box<Self>,
        comm: &'a Comm,
        invitation: &'a [u8],
    ) -> Joint<'a, Box<dyn Collectives>>;

    /// Chooses without communication if a member has died before the agreement:
    /// only components that need no set-up serve.
    /// The members' choices may differ, because every operation of all members then fails.
    fn choose_alone(self: Box<Self>) -> Box<dyn Collectives>;
}

/// The collective operations of one communicator.
///
/// `number` is the sequence number of the call on its communicator, the same at all members.
pub trait Collectives: Any {
    /// Carries out a blocking call.
    fn carry_out(&self, comm: &Comm, number: i32, call: &Call) -> Result<(), Error>;

    /// Starts a nonblocking call.
    fn begin(&self, comm: &Comm, number: i32, call: Call) -> Result<Running, Error>;

    /// Creates the plan of a persistent operation: the component's state between starts;
    /// `None` if it keeps no state.
    fn plan(&self, _call: &Call) -> Option<Rc<dyn Any>> {
        None
    }

    /// Starts a persistent operation with its plan.
    fn begin_planned(
        &self,
        comm: &Comm,
        number: i32,
        call: Call,
        _plan: &Rc<dyn Any>,
    ) -> Result<Running, Error> {
        self.begin(comm, number, call)
    }

    /// Returns what serves the fast calls of this kind; `None` if nothing does. Called once per [`CallId`], when the components are installed.
    /// The carrier may rely on the kind of its calls.
    fn fast_slot(&self, call: CallId) -> Option<FastSlot>;

    /// Carries out a few operations without user data, so that the program's first operations find code and memory in the caches. All members call it.
    fn rehearse(&self, _comm: &Comm) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the eureka line of a component for the communicator, if a component has one.
    fn eureka(&self) -> Option<&dyn EurekaLine> {
        None
    }

    /// Returns the selected components and the reasons against the others, one fact per line;
    /// `mpirun --explain` prints them.
    fn explain(&self, comm: &str) -> Vec<String>;

    /// Called when the communicator is freed.
    fn disable(&self);
}

/// What serves the fast calls of one kind on a communicator.
pub struct FastSlot {
    /// The largest [`FastCall::bytes`] that is served; the same at all members.
    pub limit: usize,
    pub carrier: Rc<dyn FastCarrier>,
}

/// Carries out the fast calls of the kind for which it is in a [`FastSlot`], up to the slot's limit.
///
/// A fast call is one call through the slot, without a choice among components, which was made when the slot was filled.
pub trait FastCarrier {
    /// Carries out a fast call.
    ///
    /// # Safety
    /// `fast_call` is of the kind that the slot was made for.
    unsafe fn carry_out(&self, comm: &Comm, fast_call: &FastCall<'_>) -> Result<(), Error>;
}

/// The error of a call that no component serves on this communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    pub call: CallId,
    pub comm: String,
}

impl Unserved {
    /// Returns the error of a call on a communicator.
    #[cold]
    pub fn on(comm: &Comm, call: CallId) -> Error {
        let comm = comm.label();
        Unserved { call, comm }.into()
    }
}

impl fmt::Display for Unserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unserved { call, comm } = self;
        write!(
            f,
            "no collective component serves {call} on {comm}; see the parameter coll"
        )
    }
}

impl std::error::Error for Unserved {}

impl Failure for Unserved {}
