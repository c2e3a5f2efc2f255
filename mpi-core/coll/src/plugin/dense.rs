//! Fast calls of a plugin's operations: their arguments in registers, one indirect call.
#![allow(unsafe_code)]

use super::abi::{DONE, FAILED, NEXT, NO_RANK, Why};
use super::module::Inner;
use crate::comm::Comm;
use crate::datatype::RecvBytes;
use crate::op::DenseOp;
use crate::{CallId, Error, FastCall, Unserved};
use std::ffi::{c_int, c_void};
use std::ptr::{from_ref, null, null_mut};

/// The arguments of `dense`: send, receive, bytes, root, operator.
type Arguments = (
    *const c_void,
    *mut c_void,
    usize,
    u32,
    *const super::abi::DenseOp,
);

#[inline(always)]
fn from(send: &[u8]) -> *const c_void {
    send.as_ptr().cast()
}

#[inline(always)]
fn to(recv: RecvBytes) -> *mut c_void {
    recv.ptr().cast()
}

#[inline(always)]
fn by(op: &DenseOp) -> *const super::abi::DenseOp {
    from_ref(op).cast()
}

#[inline(always)]
fn arguments(call: &FastCall<'_>) -> Arguments {
    match call {
        FastCall::Barrier => (null(), null_mut(), 0, NO_RANK, null()),
        FastCall::Bcast { data, root } => (null(), to(*data), data.len(), *root, null()),
        FastCall::Gather { send, recv, root } => (
            from(send),
            recv.map_or(null_mut(), to),
            send.len(),
            *root,
            null(),
        ),
        FastCall::Scatter { send, recv, root } => (
            send.map_or(null(), from),
            to(*recv),
            recv.len(),
            *root,
            null(),
        ),
        FastCall::Allgather { send, recv } => (from(send), to(*recv), send.len(), NO_RANK, null()),
        FastCall::Alltoall { send, recv, block } => {
            (from(send), to(*recv), *block, NO_RANK, null())
        }
        FastCall::Reduce {
            send,
            recv,
            op,
            root,
        } => (
            from(send),
            recv.map_or(null_mut(), to),
            send.len(),
            *root,
            by(op),
        ),
        FastCall::ReduceScatterBlock { send, recv, op } => {
            (from(send), to(*recv), recv.len(), NO_RANK, by(op))
        }
        FastCall::Allreduce { send, recv, op }
        | FastCall::Scan { send, recv, op }
        | FastCall::Exscan { send, recv, op } => {
            (from(send), to(*recv), send.len(), NO_RANK, by(op))
        }
    }
}

impl Inner {
    /// Carries out a fast call by the plugin's function `dense`.
    #[inline(always)]
    pub(super) fn run_dense(&self, comm: &Comm, call: &FastCall<'_>) -> Result<(), Error> {
        let id = call.id();
        let Some(dense) = self.operations.dense[id as usize] else {
            return Err(Unserved::on(comm, id));
        };
        let (send, recv, bytes, root, op) = arguments(call);
        // SAFETY: `this` is valid until `drop` calls `free`; the pointers are those of the call, valid until it returns.
        let code = self.guarded("dense", || unsafe {
            dense(self.this, send, recv, bytes, root, op)
        });
        match code {
            DONE => Ok(()),
            code => self.dense_failed(id, code),
        }
    }

    #[cold]
    #[inline(never)]
    fn dense_failed(&self, id: CallId, code: c_int) -> Result<(), Error> {
        let mut why = Why::new();
        let code = match code {
            NEXT => {
                why.set("its function dense answered NEXT, which only run and start may answer");
                FAILED
            }
            code => code,
        };
        self.outcome(id, code, &why).map(|_| ())
    }
}
