//! Fast calls of a plugin's operations: one indirect call with the arguments in registers.
#![allow(unsafe_code)]

use super::abi::{DONE, FAILED, NEXT, NO_RANK, Why};
use super::module::Inner;
use crate::comm::Comm;
use crate::datatype::RecvBytes;
use crate::op::DenseOp;
use crate::{CallId, Error, FastCall, Unserved};
use std::ffi::{c_int, c_void};
use std::ptr::{from_ref, null, null_mut};

/// The arguments of `dense`.
#[derive(Clone, Copy)]
struct Arguments {
    call: CallId,
    send: *const c_void,
    recv: *mut c_void,
    bytes: usize,
    root: u32,
    op: *const super::abi::DenseOp,
}

impl Arguments {
    /// Returns the arguments of a call that has data but neither a root nor an operator.
    #[inline(always)]
    fn of(call: CallId, send: *const c_void, recv: *mut c_void, bytes: usize) -> Arguments {
        Arguments {
            call,
            send,
            recv,
            bytes,
            root: NO_RANK,
            op: null(),
        }
    }

    #[inline(always)]
    fn with_root(self, root: u32) -> Arguments {
        Arguments { root, ..self }
    }

    #[inline(always)]
    fn with_op(self, op: &DenseOp) -> Arguments {
        let op = from_ref(op).cast();
        Arguments { op, ..self }
    }
}

#[inline(always)]
fn from(send: &[u8]) -> *const c_void {
    send.as_ptr().cast()
}

#[inline(always)]
fn to(recv: RecvBytes) -> *mut c_void {
    recv.ptr().cast()
}

/// Converts a fast call to the arguments of `dense`, with a single `match`: a second one would cost as much as the call.
#[inline(always)]
fn arguments(call: &FastCall<'_>) -> Arguments {
    match call {
        FastCall::Barrier => Arguments::of(CallId::Barrier, null(), null_mut(), 0),
        FastCall::Bcast { data, root } => {
            Arguments::of(CallId::Bcast, null(), to(*data), data.len()).with_root(*root)
        }
        FastCall::Gather { send, recv, root } => {
            let recv = recv.map_or(null_mut(), to);
            Arguments::of(CallId::Gather, from(send), recv, send.len()).with_root(*root)
        }
        FastCall::Scatter { send, recv, root } => {
            let send = send.map_or(null(), from);
            Arguments::of(CallId::Scatter, send, to(*recv), recv.len()).with_root(*root)
        }
        FastCall::Allgather { send, recv } => {
            Arguments::of(CallId::Allgather, from(send), to(*recv), send.len())
        }
        FastCall::Alltoall { send, recv, block } => {
            Arguments::of(CallId::Alltoall, from(send), to(*recv), *block)
        }
        FastCall::Reduce {
            send,
            recv,
            op,
            root,
        } => {
            let recv = recv.map_or(null_mut(), to);
            let of_data = Arguments::of(CallId::Reduce, from(send), recv, send.len());
            of_data.with_root(*root).with_op(op)
        }
        FastCall::ReduceScatterBlock { send, recv, op } => {
            let (send, bytes) = (from(send), recv.len());
            Arguments::of(CallId::ReduceScatterBlock, send, to(*recv), bytes).with_op(op)
        }
        FastCall::Allreduce { send, recv, op } => {
            Arguments::of(CallId::Allreduce, from(send), to(*recv), send.len()).with_op(op)
        }
        FastCall::Scan { send, recv, op } => {
            Arguments::of(CallId::Scan, from(send), to(*recv), send.len()).with_op(op)
        }
        FastCall::Exscan { send, recv, op } => {
            Arguments::of(CallId::Exscan, from(send), to(*recv), send.len()).with_op(op)
        }
    }
}

impl Inner {
    /// Carries out a fast call by the plugin's function `dense`.
    #[inline(always)]
    pub(super) fn run_dense(&self, comm: &Comm, call: &FastCall<'_>) -> Result<(), Error> {
        let Arguments {
            call,
            send,
            recv,
            bytes,
            root,
            op,
        } = arguments(call);
        let Some(dense) = self.operations.dense[call as usize] else {
            return Err(Unserved::on(comm, call));
        };
        // SAFETY: `this` is valid until `drop` calls `free`; `call` borrows the buffers and the operator until this function returns.
        let code = self.guarded("dense", || unsafe {
            dense(self.this, send, recv, bytes, root, op)
        });
        match code {
            DONE => Ok(()),
            code => self.dense_failed(call, code),
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
