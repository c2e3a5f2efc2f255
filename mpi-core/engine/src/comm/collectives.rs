//! What carries out a communicator's collective operations, as traits.
//!
//! A process has one [`Framework`], which the composition root gives to its engine ([`Engine::serve_collectives_by`](crate::Engine::serve_collectives_by)).
//! When a communicator is made the framework makes a [`Proposal`] for it; its members agree, and the result is the communicator's [`Collectives`].

use super::{Comm, Conversation, EurekaLine};
use crate::coll::{Call, CallId, FastCall, Running};
use crate::datatype::RecvBuf;
use crate::{Error, Failure};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// Something that the members of a communicator do together.
pub type Joint<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + 'a>>;

/// The collective components of a process.
pub trait Framework {
    /// What this process could use for a communicator, before its members have agreed. Local: no communication here.
    fn propose(&self, comm: &Comm) -> Result<Box<dyn Proposal>, Error>;

    /// What carries out the calls of an intercommunicator, on which there is nothing to agree.
    fn between_groups(&self) -> Box<dyn Collectives>;

    /// Every member's block at every member, in one of the library's own conversations.
    ///
    /// `first` is rank 0's block, behind which those of the others lie in memory; each member has laid its own into its place.
    fn allgather<'a>(&self, talk: &'a Conversation, first: &'a RecvBuf) -> Joint<'a, ()>;

    /// `buf` of the member `root`, at every member.
    fn bcast<'a>(&self, talk: &'a Conversation, buf: &'a RecvBuf, root: u32) -> Joint<'a, ()>;

    /// Ends after every member has begun it.
    fn barrier<'a>(&self, talk: &'a Conversation) -> Joint<'a, ()>;
}

/// What a process could use for a communicator.
pub trait Proposal {
    /// Adds to `to` what rank 0 tells the others; at rank 0, and once.
    fn invite(&self, comm: &Comm, to: &mut Vec<u8>);

    /// Agrees with all members of `comm`, which have heard rank 0's invitation.
    fn agree<'a>(
        self: Box<Self>,
        comm: &'a Comm,
        invitation: &'a [u8],
    ) -> Joint<'a, Box<dyn Collectives>>;

    /// Chooses without a word, where the members cannot agree because one of them has died: only components serve that need nothing set up.
    /// What other members have chosen does not matter: operations of all members fail from then on, whichever component serves them.
    fn choose_alone(self: Box<Self>) -> Box<dyn Collectives>;
}

/// What carries out the collective operations of one communicator.
///
/// `number` is the call's number on its communicator, the same at all members.
pub trait Collectives: Any {
    /// Carries a call out before it returns.
    fn carry_out(&self, comm: &Comm, number: i32, call: &Call) -> Result<(), Error>;

    /// Begins a call.
    fn begin(&self, comm: &Comm, number: i32, call: Call) -> Result<Running, Error>;

    /// Up to how many of [`FastCall::bytes`] calls are carried out in brief; the same answer at all members. Asked once.
    fn takes_fast_call(&self, call: CallId) -> Option<usize>;

    /// Carries out a call that is taken in brief.
    fn carry_out_fast_call(&self, comm: &Comm, brief: &FastCall<'_>) -> Result<(), Error>;

    /// The eureka line that a component has for the communicator.
    fn eureka(&self) -> Option<&dyn EurekaLine> {
        None
    }

    /// What was chosen and why the rest was not, a line for each fact; what `mpirun --explain` prints.
    fn explain(&self, comm: &str) -> Vec<String>;

    /// The communicator is being freed.
    fn disable(&self);
}

/// No component serves the function on this communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    pub call: CallId,
    pub comm: String,
}

impl Unserved {
    /// The error of a call on a communicator.
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
