//! Fast calls of a plugin's operations: one indirect call of its function `dense`, with the arguments in registers.
//!
//! For each collective there is a type of carrier ([`Resolved`]), which stores the function and the module's pointer, and converts the arguments.
//! The carriers are created after the members have agreed on the component, so a fast call does not have to select a component.
#![allow(unsafe_code)]

use super::abi::{DONE, Dense, DenseOp as Op, FAILED, NEXT, NO_RANK, Why};
use super::module::Inner;
use crate::comm::Comm;
use crate::datatype::RecvBytes;
use crate::op::DenseOp;
use crate::{CallId, Error, FastCall, FastCarrier, FastSlot};
use mpi_base::plugin_file::{Called, Owner, called};
use std::ffi::{c_int, c_void};
use std::hint::unreachable_unchecked;
use std::marker::PhantomData;
use std::ptr::{from_ref, null, null_mut};
use std::rc::Rc;

#[derive(Clone, Copy)]
struct Arguments {
    send: *const c_void,
    recv: *mut c_void,
    bytes: usize,
    root: u32,
    op: *const Op,
}

impl Arguments {
    /// Returns the arguments of a call that has data but neither a root nor an operator.
    #[inline(always)]
    fn of(send: *const c_void, recv: *mut c_void, bytes: usize) -> Arguments {
        Arguments {
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

/// A collective that has fast calls.
trait Kind: 'static {
    const CALL: CallId;

    /// Converts a fast call to the arguments of `dense`.
    ///
    /// # Safety
    /// `call` is a fast call of the collective `CALL`.
    unsafe fn arguments(call: &FastCall<'_>) -> Arguments;
}

/// Declares, for each collective, a [`Kind`] that converts the fields of a fast call to the arguments of `dense`.
macro_rules! kinds {
    ($($kind:ident $fields:tt => $arguments:expr;)*) => {
        $(
            struct $kind;

            impl Kind for $kind {
                const CALL: CallId = CallId::$kind;

                #[inline(always)]
                unsafe fn arguments(call: &FastCall<'_>) -> Arguments {
                    match call {
                        FastCall::$kind $fields => $arguments,
                        // SAFETY: the caller guarantees that the call is of this collective; a check would take a fifth of the call's time.
                        _ => unsafe { unreachable_unchecked() },
                    }
                }
            }
        )*

        /// Returns the carrier for a collective; `None` if it has no fast calls.
        fn carrier(call: CallId, inner: &Rc<Inner>, dense: Dense) -> Option<Rc<dyn FastCarrier>> {
            Some(match call {
                $(CallId::$kind => Rc::new(Resolved::<$kind>::new(inner, dense)),)*
                _ => return None,
            })
        }
    };
}

kinds! {
    Barrier {} => Arguments::of(null(), null_mut(), 0);
    Bcast { data, root } => Arguments::of(null(), to(*data), data.len()).with_root(*root);
    Gather { send, recv, root } => {
        Arguments::of(from(send), recv.map_or(null_mut(), to), send.len()).with_root(*root)
    };
    Scatter { send, recv, root } => {
        Arguments::of(send.map_or(null(), from), to(*recv), recv.len()).with_root(*root)
    };
    Allgather { send, recv } => Arguments::of(from(send), to(*recv), send.len());
    Alltoall { send, recv, block } => Arguments::of(from(send), to(*recv), *block);
    Reduce { send, recv, op, root } => {
        let of_data = Arguments::of(from(send), recv.map_or(null_mut(), to), send.len());
        of_data.with_root(*root).with_op(op)
    };
    ReduceScatterBlock { send, recv, op } => {
        Arguments::of(from(send), to(*recv), recv.len()).with_op(op)
    };
    Allreduce { send, recv, op } => Arguments::of(from(send), to(*recv), send.len()).with_op(op);
    Scan { send, recv, op } => Arguments::of(from(send), to(*recv), send.len()).with_op(op);
    Exscan { send, recv, op } => Arguments::of(from(send), to(*recv), send.len()).with_op(op);
}

/// Returns the fast path of a collective, if the module has a function `dense` for it.
pub(super) fn slot(inner: &Rc<Inner>, call: CallId) -> Option<FastSlot> {
    let (limit, dense) = inner.operations.dense(call)?;
    let carrier = carrier(call, inner, dense)?;
    Some(FastSlot {
        limit,
        limit_of_requests: None,
        carrier,
    })
}

/// The function `dense` for one collective, with the module's pointer.
struct Resolved<K> {
    dense: Dense,
    this: *mut c_void,
    /// Owns the module, so that `this` stays valid.
    inner: Rc<Inner>,
    kind: PhantomData<K>,
}

impl<K: Kind> Resolved<K> {
    fn new(inner: &Rc<Inner>, dense: Dense) -> Resolved<K> {
        Resolved {
            dense,
            this: inner.this,
            inner: inner.clone(),
            kind: PhantomData,
        }
    }

    #[cold]
    #[inline(never)]
    fn failed(&self, code: c_int) -> Result<(), Error> {
        let mut why = Why::new();
        let code = match code {
            NEXT => {
                why.set("its function dense answered NEXT, which only run and start may answer");
                FAILED
            }
            code => code,
        };
        self.inner.outcome(K::CALL, code, &why).map(|_| ())
    }
}

impl<K> Owner for Resolved<K> {
    fn component(&self) -> &str {
        self.inner.component()
    }

    fn file(&self) -> &str {
        self.inner.file()
    }
}

impl<K> Called for Resolved<K> {
    const FUNCTION: &'static str = "dense";
}

impl<K: Kind> FastCarrier for Resolved<K> {
    unsafe fn carry_out(&self, _: &Comm, call: &FastCall<'_>) -> Result<(), Error> {
        // SAFETY: the caller guarantees that the call is of the collective for which `carrier` created this value.
        let arguments = unsafe { K::arguments(call) };
        let Arguments {
            send,
            recv,
            bytes,
            root,
            op,
        } = arguments;
        // SAFETY: `inner` keeps `this` valid, since its `drop` calls `free`; `call` borrows the buffers and the operator until this function returns.
        let code = called(self, || unsafe {
            (self.dense)(self.this, send, recv, bytes, root, op)
        });
        match code {
            DONE => Ok(()),
            code => self.failed(code),
        }
    }
}
