//! Collective communication (chapter 6).
//!
//! A collective operation is represented by a value of the engine, a [`Call`].
//! `MPI_Bcast`, `MPI_Ibcast` and `MPI_Bcast_init` differ only in how they execute this value.
//! Each of these functions also has a large-count variant.
//! A function `plan_Bcast` checks the arguments and builds the value.
//! From `plan_Bcast` and `carry_out`, `begin` or `prepare`, the build script generates six functions.
//!
//! If a function `fast_Bcast` exists, the blocking and the nonblocking functions call it first (see [`fast_call`]).
//!
//! Arguments that are significant only at the root are ignored on the other ranks.
#![allow(unsafe_code)]

pub mod alias_check;
pub mod all_to_all;
pub mod fast_call;
pub mod neighbor;
pub mod reduction;
pub mod rooted;
mod self_block_check;

use super::args::{Out, RecvBlocks, RecvMem, SendBlocks, SendMem};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::info;
use crate::object::comm::CommObject;
use crate::object::hints::STRICT_ORDER;
use crate::registry::request::{persistent_in, running};
use mpi_core::coll::{Call, inter};
use mpi_core::comm::name_of_constant;
use mpi_core::datatype::{RecvBuf, SendBuf};
use mpi_core::request::Operation;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// A collective operation whose arguments have been checked.
pub struct Plan {
    comm: Rc<CommObject>,
    call: Call,
}

type Planned = Result<Plan, Failure>;

impl Plan {
    /// Builds a plan, after the checks that need all arguments of the call together.
    #[inline(always)]
    fn of(comm: Rc<CommObject>, call: Call) -> Planned {
        alias_check::check(&comm.comm, &call)?;
        self_block_check::check(&comm.comm, &call)?;
        Ok(Plan { comm, call })
    }
}

/// Executes a blocking collective.
pub(crate) fn carry_out(plan: Plan) -> Outcome {
    Ok(plan.comm.comm.collectives().carry_out(plan.call)?)
}

/// Executes a blocking collective, unless the fast path has already completed it.
#[inline(always)]
pub(crate) fn carry_out_unless(done: Option<Outcome>, plan: impl FnOnce() -> Planned) -> Outcome {
    match done {
        Some(done) => done,
        None => carry_out(plan()?),
    }
}

/// Starts a nonblocking collective.
pub(crate) fn begin(plan: Plan, request: Out<MPI_Request>) -> Outcome {
    let req = plan.comm.comm.collectives().begin(plan.call)?;
    request.set(running(req, &plan.comm)?, "request")
}

/// Starts a nonblocking collective, unless the fast path has already started it.
#[inline(always)]
pub(crate) fn begin_unless(
    begun: Option<Result<MPI_Request, Failure>>,
    plan: impl FnOnce() -> Planned,
    request: Out<MPI_Request>,
) -> Outcome {
    match begun {
        Some(begun) => request.set(begun?, "request"),
        None => begin(plan()?, request),
    }
}

/// Creates a persistent collective.
///
/// All members create their persistent operations in the same order.
/// The members may start these operations in different orders (section 6.13).
/// So each operation has its own communicator with its own sequence numbers.
/// The parent communicator itself is used if it has the hint [`STRICT_ORDER`] or only one member.
/// Creating a communicator may wait for other members, which the standard allows in this call.
pub(crate) fn prepare(plan: Plan, info: MPI_Info, request: Out<MPI_Request>) -> Outcome {
    // The known info keys have no effect on a collective, but an invalid info handle is an error.
    info::hints(info)?;
    let parent = &plan.comm;
    let promised = parent.attached.hints.borrow().get(STRICT_ORDER) == Some("true");
    let alone = parent.comm.size() == 1 && !parent.comm.is_inter();
    let own = match promised || alone {
        true => parent.comm.clone(),
        false => {
            let own = parent.comm.constructors().dup_now()?;
            own.set_name(&parent.label());
            own
        }
    };
    request.set(
        persistent_in(&own, parent, Operation::Collective(plan.call))?,
        "request",
    )
}

impl CommObject {
    /// Returns true on the root. Only the root's arguments describe the data of all members.
    fn is_root(&self, root: u32) -> bool {
        match self.comm.is_inter() {
            false => self.comm.rank() == root,
            true => root == inter::ROOT,
        }
    }

    fn members(&self) -> usize {
        self.comm.size() as usize
    }

    /// Returns the number of blocks in a buffer with one block per rank: the size of the group
    /// (of the remote group on an intercommunicator).
    fn blocks(&self) -> usize {
        self.comm.peers().size() as usize
    }

    /// Returns the send blocks, one per rank (on an intercommunicator: of the remote group).
    fn sent_blocks(&self, blocks: SendBlocks) -> Result<Rc<[SendBuf]>, Failure> {
        // SAFETY: each array has one block per rank of the addressed group (6.5 to 6.8).
        unsafe { blocks.read(self.blocks()) }
    }

    /// Returns the receive blocks, one per rank (on an intercommunicator: of the remote group).
    fn received_blocks(&self, blocks: RecvBlocks) -> Result<Rc<[RecvBuf]>, Failure> {
        // SAFETY: each array has one block per rank of the addressed group (6.5 to 6.8).
        unsafe { blocks.read(self.blocks()) }
    }

    /// Checks a root argument.
    /// On an intercommunicator, `MPI_ROOT` marks the root (section 6.2.3).
    /// `MPI_PROC_NULL` marks the other processes of the root's group.
    fn root(&self, root: c_int) -> Result<u32, Failure> {
        match (self.comm.is_inter(), root) {
            (true, MPI_ROOT) => return Ok(inter::ROOT),
            (true, MPI_PROC_NULL) => return Ok(inter::PROC_NULL),
            _ => {}
        }
        let ranks = self.comm.peers().size();
        u32::try_from(root)
            .ok()
            .filter(|r| *r < ranks)
            .ok_or_else(|| {
                let last = ranks.saturating_sub(1);
                let label = self.label();
                let of = if self.comm.is_inter() {
                    "the remote group of "
                } else {
                    ""
                };
                let name = name_of_constant(root.into()).map(|name| format!(" ({name})"));
                let name = name.unwrap_or_default();
                Failure::new(
                    MPI_ERR_ROOT,
                    format!("root is {root}{name}, but {of}{label} has ranks 0 to {last}"),
                )
            })
    }

    /// Returns an error on an intercommunicator, for operations defined only on intracommunicators.
    fn only_intra(&self) -> Outcome {
        match self.comm.is_inter() {
            false => Ok(()),
            true => Err(Failure::new(
                MPI_ERR_COMM,
                format!(
                    "{} is an intercommunicator, and this operation is not defined between groups",
                    self.label()
                ),
            )),
        }
    }

    /// Returns true for `MPI_IN_PLACE`, which is an error on an intercommunicator.
    fn in_place(&self, buf: *const c_void) -> Result<bool, Failure> {
        let in_place = buf.addr() == MPI_IN_PLACE.addr();
        if in_place && self.comm.is_inter() {
            return Err(Failure::new(
                MPI_ERR_BUFFER,
                "MPI_IN_PLACE has no meaning on an intercommunicator",
            ));
        }
        Ok(in_place)
    }

    /// Returns the send buffer, or `None` for `MPI_IN_PLACE`.
    fn sent(&self, buf: SendMem) -> Result<Option<SendBuf>, Failure> {
        if self.in_place(buf.address())? {
            return Ok(None);
        }
        buf.buffer().map(Some)
    }

    /// Returns this process's send buffer for data to a root.
    /// Returns `None` for `MPI_IN_PLACE` at the root.
    /// Returns `None` in the root's group of an intercommunicator.
    fn sent_to(&self, root: u32, buf: SendMem) -> Result<Option<SendBuf>, Failure> {
        if self.is_beside(root) || (self.is_root(root) && self.in_place(buf.address())?) {
            return Ok(None);
        }
        buf.buffer().map(Some)
    }

    /// Returns this process's receive buffer for data from a root.
    /// Returns `None` for `MPI_IN_PLACE` at the root.
    /// Returns `None` in the root's group of an intercommunicator.
    fn received_from(&self, root: u32, buf: RecvMem) -> Result<Option<RecvBuf>, Failure> {
        if self.is_beside(root) || (self.is_root(root) && self.in_place(buf.address())?) {
            return Ok(None);
        }
        buf.buffer().map(Some)
    }

    /// Returns true in the root's group of an intercommunicator.
    /// These processes neither send data to the root nor receive data from the root.
    fn is_beside(&self, root: u32) -> bool {
        self.comm.is_inter() && (root == inter::ROOT || root == inter::PROC_NULL)
    }
}
