//! Collective communication (chapter 6).
//!
//! A collective operation is a value of the engine, so `MPI_Bcast`, `MPI_Ibcast`, `MPI_Bcast_init` and
//! their large-count twins differ only in how that value is executed.
//! A function `plan_Bcast` checks the arguments and builds the value; the build script exports all six functions over it, with
//! `perform`, `begin` and `prepare`.
//!
//! If a function `fast_Bcast` exists, the blocking forms try it first (see [`fast_call`]).
//!
//! Arguments that are significant only at the root are ignored elsewhere.

pub mod alias_check;
pub mod all_to_all;
mod blocks;
pub mod fast_call;
pub mod neighbor;
pub mod reduction;
pub mod rooted;
mod self_block_check;

use super::args::{IntoI64, out, recv_buf, send_buf};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::info;
use crate::object::comm::CommObject;
use crate::object::hints::STRICT_ORDER;
use crate::registry::request::{persistent_in, running};
use crate::state;
use mpi_core::coll::{Call, inter};
use mpi_core::datatype::{RecvBuf, SendBuf};
use mpi_core::request::Operation;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// A collective operation with checked arguments.
pub struct Plan {
    comm: Rc<CommObject>,
    call: Call,
}

type Planned = Result<Plan, Failure>;

impl Plan {
    /// Builds a plan after the checks that need all arguments together.
    #[inline(always)]
    fn of(comm: Rc<CommObject>, call: Call) -> Planned {
        alias_check::check(&comm.comm, &call)?;
        self_block_check::check(&comm.comm, &call)?;
        Ok(Plan { comm, call })
    }
}

/// Executes an operation.
pub(crate) fn perform(plan: Plan) -> Outcome {
    Ok(plan.comm.comm.collectives().carry_out(plan.call)?)
}

/// Executes an operation unless the fast path has completed it.
#[inline(always)]
pub(crate) fn perform_unless(done: Option<Outcome>, plan: impl FnOnce() -> Planned) -> Outcome {
    match done {
        Some(done) => done,
        None => perform(plan()?),
    }
}

/// Starts an operation.
///
/// # Safety
/// `request` is an output argument of the caller.
pub(crate) unsafe fn begin(plan: Plan, request: *mut MPI_Request) -> Outcome {
    let req = plan.comm.comm.collectives().begin(plan.call)?;
    // SAFETY: `request` is null or writable: `# Safety` of this function.
    unsafe { out(request, running(req, &plan.comm)?, "request") }
}

/// Creates a persistent operation.
///
/// Members create persistent operations in the same order, but need not start them in the same order (section 6.13).
/// So each has its own communicator with its own sequence numbers, unless the program asserts the same order of starts;
/// creating one may wait for the other members, which these calls are allowed to do.
///
/// # Safety
/// `request` is an output argument of the caller.
pub(crate) unsafe fn prepare(plan: Plan, info: MPI_Info, request: *mut MPI_Request) -> Outcome {
    // The known info keys have no effect here; a wrong handle is still an error.
    info::hints(info)?;
    let parent = &plan.comm;
    let promised = parent.attached.hints.borrow().get(STRICT_ORDER) == Some("true");
    let alone = parent.comm.size() == 1 && !parent.comm.is_inter();
    let own = match promised || alone {
        true => parent.comm.clone(),
        false => {
            let own = state::engine()?.block_on(parent.comm.constructors().dup())?;
            own.set_name(&parent.label());
            own
        }
    };
    // SAFETY: `request` is null or writable: `# Safety` of this function.
    unsafe {
        out(
            request,
            persistent_in(&own, parent, Operation::Collective(plan.call))?,
            "request",
        )
    }
}

impl CommObject {
    /// Returns true if this process is the root, whose arguments describe every member's data.
    fn is_root(&self, root: u32) -> bool {
        match self.comm.is_inter() {
            false => self.comm.rank() == root,
            true => root == inter::ROOT,
        }
    }

    fn members(&self) -> usize {
        self.comm.size() as usize
    }

    /// Returns the number of blocks in a buffer with one block for each rank that can be addressed.
    fn blocks(&self) -> usize {
        self.comm.peers().size() as usize
    }

    /// Checks a root argument; on an intercommunicator it may also be `MPI_ROOT`, or `MPI_PROC_NULL` for the other processes of the root's group (section 6.2.3).
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
                Failure::new(
                    MPI_ERR_ROOT,
                    format!("root is {root}, but {of}{label} has ranks 0 to {last}"),
                )
            })
    }

    /// Fails for an operation that is not defined on intercommunicators.
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

    /// Returns true if a buffer argument is `MPI_IN_PLACE`, which fails on an intercommunicator.
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

    /// Returns a send buffer, or `None` for `MPI_IN_PLACE`.
    ///
    /// # Safety
    /// As [`send_buf`].
    unsafe fn sent(
        &self,
        buf: *const c_void,
        count: impl IntoI64,
        datatype: MPI_Datatype,
    ) -> Result<Option<SendBuf>, Failure> {
        if self.in_place(buf)? {
            return Ok(None);
        }
        // SAFETY: `buf` is valid by the `# Safety` contract of this function.
        unsafe { send_buf(buf, count.wide(), datatype).map(Some) }
    }

    /// Returns a process's contribution to a root: `None` for `MPI_IN_PLACE` at the root, and in the root's group of an intercommunicator.
    ///
    /// # Safety
    /// As [`send_buf`].
    unsafe fn sent_to(
        &self,
        root: u32,
        buf: *const c_void,
        count: impl IntoI64,
        datatype: MPI_Datatype,
    ) -> Result<Option<SendBuf>, Failure> {
        if self.is_beside(root) || (self.is_root(root) && self.in_place(buf)?) {
            return Ok(None);
        }
        // SAFETY: `buf` is valid by the `# Safety` contract of this function.
        unsafe { send_buf(buf, count.wide(), datatype).map(Some) }
    }

    /// Returns a process's receive buffer for data from a root: `None` for `MPI_IN_PLACE` at the root, and in the root's group of an intercommunicator.
    ///
    /// # Safety
    /// As [`recv_buf`].
    unsafe fn received_from(
        &self,
        root: u32,
        buf: *mut c_void,
        count: impl IntoI64,
        datatype: MPI_Datatype,
    ) -> Result<Option<RecvBuf>, Failure> {
        if self.is_beside(root) || (self.is_root(root) && self.in_place(buf)?) {
            return Ok(None);
        }
        // SAFETY: `buf` is valid by the `# Safety` contract of this function.
        unsafe { recv_buf(buf, count.wide(), datatype).map(Some) }
    }

    /// Returns true in the root's group of an intercommunicator, whose processes have no data of their own here.
    fn is_beside(&self, root: u32) -> bool {
        self.comm.is_inter() && (root == inter::ROOT || root == inter::PROC_NULL)
    }
}
