//! Collective communication (chapter 6).
//!
//! A collective operation is a value of the engine, so what differs between `MPI_Bcast`, `MPI_Ibcast`, `MPI_Bcast_init` and
//! their large-count twins is only what is done with it.
//! A function `plan_Bcast` checks the arguments and makes the value; the build script exports all six over it, with
//! [`perform`], [`begin`] and [`prepare`].
//!
//! Where there is a function `fast_Bcast` too, the blocking forms try that first (see [`fast_call`]).
//!
//! Arguments that are significant only at the root are not looked at elsewhere.

pub mod alias_check;
pub mod all_to_all;
mod blocks;
pub mod fast_call;
pub mod neighbor;
pub mod reduction;
pub mod rooted;
mod self_block_check;

use super::args::{Wide, out, recv_buf, send_buf};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::info;
use crate::object::comm::CommObject;
use crate::object::hints::STRICT_ORDER;
use crate::object::request::{persistent_in, running};
use crate::state;
use mpi_core::coll::{Call, inter};
use mpi_core::datatype::{RecvBuf, SendBuf};
use mpi_core::request::Operation;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// A collective operation whose arguments are in order.
pub struct Plan {
    comm: Rc<CommObject>,
    call: Call,
}

type Planned = Result<Plan, Failure>;

impl Plan {
    /// What all arguments together say; here is looked at what one alone does not show.
    #[inline(always)]
    fn of(comm: Rc<CommObject>, call: Call) -> Planned {
        alias_check::check(&comm.comm, &call)?;
        self_block_check::check(&comm.comm, &call)?;
        Ok(Plan { comm, call })
    }
}

/// Carries an operation out.
pub(crate) fn perform(plan: Plan) -> Outcome {
    Ok(plan.comm.comm.collective(plan.call)?)
}

/// Carries an operation out that may have been carried out in brief.
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
    let req = plan.comm.comm.icollective(plan.call)?;
    // SAFETY: `request` is null or writable: `# Safety` of this function.
    unsafe { out(request, running(req, &plan.comm)?, "request") }
}

/// Keeps an operation to be started later.
///
/// Members agree in the order in which they make persistent operations, not in the one in which they start them (section 6.13).
/// So each has a communicator of its own, in which nothing else is counted, unless the program promises more;
/// making one may wait for the others, which these calls may do.
///
/// # Safety
/// `request` is an output argument of the caller.
pub(crate) unsafe fn prepare(plan: Plan, info: MPI_Info, request: *mut MPI_Request) -> Outcome {
    // The hints that the standard knows for this change nothing here; a wrong handle is still an error.
    info::hints(info)?;
    let parent = &plan.comm;
    let promised = parent.attached.hints.borrow().get(STRICT_ORDER) == Some("true");
    let alone = parent.comm.size() == 1 && !parent.comm.is_inter();
    let own = match promised || alone {
        true => parent.comm.clone(),
        false => {
            let own = state::engine()?.block_on(parent.comm.dup())?;
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
    /// Whether this process is the root, whose arguments describe every member's data.
    fn is_root(&self, root: u32) -> bool {
        match self.comm.is_inter() {
            false => self.comm.rank() == root,
            true => root == inter::ROOT,
        }
    }

    fn members(&self) -> usize {
        self.comm.size() as usize
    }

    /// How many blocks a buffer has that holds one for each rank that messages name.
    fn blocks(&self) -> usize {
        self.comm.peers().size() as usize
    }

    /// A root argument; between groups it may also be `MPI_ROOT`, or `MPI_PROC_NULL` beside the root (section 6.2.3).
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

    /// The failure of an operation that is not defined between groups.
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

    /// Whether a buffer argument is `MPI_IN_PLACE`, which has no meaning between groups.
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

    /// A send buffer, or none for `MPI_IN_PLACE`.
    ///
    /// # Safety
    /// As [`send_buf`].
    unsafe fn sent(
        &self,
        buf: *const c_void,
        count: impl Wide,
        datatype: MPI_Datatype,
    ) -> Result<Option<SendBuf>, Failure> {
        if self.in_place(buf)? {
            return Ok(None);
        }
        // SAFETY: `buf` is valid by the `# Safety` contract of this function.
        unsafe { send_buf(buf, count.wide(), datatype).map(Some) }
    }

    /// A process's own contribution to a root: `MPI_IN_PLACE` at the root only, and nothing in the root's own group between groups.
    ///
    /// # Safety
    /// As [`send_buf`].
    unsafe fn sent_to(
        &self,
        root: u32,
        buf: *const c_void,
        count: impl Wide,
        datatype: MPI_Datatype,
    ) -> Result<Option<SendBuf>, Failure> {
        if self.is_beside(root) || (self.is_root(root) && self.in_place(buf)?) {
            return Ok(None);
        }
        // SAFETY: `buf` is valid by the `# Safety` contract of this function.
        unsafe { send_buf(buf, count.wide(), datatype).map(Some) }
    }

    /// What a process gets from a root: `MPI_IN_PLACE` at the root only, and nothing in the root's own group between groups.
    ///
    /// # Safety
    /// As [`recv_buf`].
    unsafe fn received_from(
        &self,
        root: u32,
        buf: *mut c_void,
        count: impl Wide,
        datatype: MPI_Datatype,
    ) -> Result<Option<RecvBuf>, Failure> {
        if self.is_beside(root) || (self.is_root(root) && self.in_place(buf)?) {
            return Ok(None);
        }
        // SAFETY: `buf` is valid by the `# Safety` contract of this function.
        unsafe { recv_buf(buf, count.wide(), datatype).map(Some) }
    }

    /// Whether this process is in the root's group, between groups: it has no data of its own.
    fn is_beside(&self, root: u32) -> bool {
        self.comm.is_inter() && (root == inter::ROOT || root == inter::PROC_NULL)
    }
}
