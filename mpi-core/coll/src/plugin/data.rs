//! The services for datatypes, buffers and operators: C functions for plugins, on pointers to the library's own values.
//!
//! A plugin gets a pointer to a library value only from the library: in the arguments of a call, or from `named_type`.
//! It may use the pointer only while the pointer is valid.
#![allow(unsafe_code)]

use super::abi::{self, Buffer, DONE, OpInfo, TypeInfo, Why, fill_in};
use super::host::{answer, bytes_at, bytes_at_mut, calm};
use crate::datatype::{self, Datatype, RecvBuf, SendBuf};
use crate::op::{DenseOp, Op};
use std::ffi::{c_int, c_void};

/// # Safety
/// `datatype` is a pointer from the library that is still valid; `plugin.h` requires this.
pub(super) unsafe fn datatype<'a>(datatype: *const abi::Type) -> &'a Datatype {
    // SAFETY: the library derives such pointers from `&Datatype` only, and the caller guarantees that this one is still valid.
    unsafe { &*datatype.cast::<Datatype>() }
}

/// Returns a plugin's buffer as a send buffer; empty for a null pointer.
///
/// # Safety
/// `buffer` is null, or points to a buffer that the library or the plugin created, whose data stay readable while they are used (`plugin.h`).
pub(super) unsafe fn to_send(buffer: *const Buffer) -> SendBuf {
    // SAFETY: the caller guarantees a null pointer or a readable structure.
    match unsafe { buffer.as_ref() } {
        Some(buffer) if !buffer.datatype.is_null() => {
            // SAFETY: the caller guarantees that the buffer's type is a pointer from the library.
            let datatype = unsafe { datatype(buffer.datatype) }.clone();
            // SAFETY: the caller guarantees that the data are readable.
            unsafe { SendBuf::new(buffer.address.cast(), buffer.count.max(0), datatype) }
        }
        _ => SendBuf::empty(),
    }
}

/// Returns a plugin's buffer as a receive buffer; empty for a null pointer.
///
/// # Safety
/// The conditions of [`to_send`]; also, the data are writable.
pub(super) unsafe fn to_recv(buffer: *const Buffer) -> RecvBuf {
    // SAFETY: the caller guarantees a null pointer or a readable structure.
    match unsafe { buffer.as_ref() } {
        Some(buffer) if !buffer.datatype.is_null() => {
            // SAFETY: the caller guarantees that the buffer's type is a pointer from the library.
            let datatype = unsafe { datatype(buffer.datatype) }.clone();
            // SAFETY: the caller guarantees that the data are writable.
            unsafe { RecvBuf::new(buffer.address.cast(), buffer.count.max(0), datatype) }
        }
        _ => RecvBuf::empty(),
    }
}

pub(super) unsafe extern "C" fn type_info(of: *const abi::Type, info: *mut TypeInfo) {
    if of.is_null() {
        return;
    }
    // SAFETY: the plugin passes a valid type from the library, see `plugin.h`.
    let of = unsafe { datatype(of) };
    let facts = TypeInfo {
        size: size_of::<TypeInfo>(),
        bytes: of.size(),
        lb: of.lb(),
        extent: of.extent(),
        true_lb: of.true_lb(),
        true_extent: of.true_extent(),
        handle: of
            .as_named()
            .map_or(0, |named| named.info().handle as usize),
    };
    // SAFETY: the plugin passes a structure whose first field is its size, see `plugin.h`.
    unsafe { fill_in(info, &facts) };
}

pub(super) unsafe extern "C" fn op_info(of: *const abi::Op, info: *mut OpInfo) {
    // SAFETY: the library derives such pointers from `&Op` only, and the plugin passes null or the operator of the running call.
    let Some(of) = (unsafe { of.cast::<Op>().as_ref() }) else {
        return;
    };
    let facts = OpInfo {
        size: size_of::<OpInfo>(),
        handle: match of {
            Op::Predefined(op) => *op as usize,
            Op::User(_) => 0,
        },
        commutes: of.is_commutative().into(),
    };
    // SAFETY: the plugin passes a structure whose first field is its size, see `plugin.h`.
    unsafe { fill_in(info, &facts) };
}

pub(super) unsafe extern "C" fn pack(
    from: *const Buffer,
    at: i64,
    to: *mut c_void,
    bytes: usize,
) -> usize {
    // SAFETY: the plugin keeps the contract of `to_send`, and `to` is writable for `bytes`.
    let (from, to) = unsafe { (to_send(from), bytes_at_mut(to, bytes)) };
    calm(0, || from.pack_at(at, to))
}

pub(super) unsafe extern "C" fn unpack(
    to: *const Buffer,
    at: i64,
    from: *const c_void,
    bytes: usize,
) -> usize {
    // SAFETY: the plugin keeps the contract of `to_recv`, and `from` is readable for `bytes`.
    let (mut to, from) = unsafe { (to_recv(to), bytes_at(from, bytes)) };
    calm(0, || to.unpack_at(at, from))
}

pub(super) unsafe extern "C" fn copy(from: *const Buffer, to: *const Buffer) -> i64 {
    // SAFETY: the plugin keeps the contracts of `to_send` and `to_recv`.
    let (from, mut to) = unsafe { (to_send(from), to_recv(to)) };
    calm(0, || datatype::copy(&from, &mut to))
}

pub(super) unsafe extern "C" fn reduce(
    op: *const abi::Op,
    input: *const Buffer,
    inout: *const Buffer,
    why: *mut Why,
) -> c_int {
    // SAFETY: the library derives such pointers from `&Op` only; the plugin passes null or the operator of the running call.
    let op = unsafe { op.cast::<Op>().as_ref() };
    // SAFETY: the plugin keeps the contracts of `to_send` and `to_recv`.
    let (input, mut inout) = unsafe { (to_send(input), to_recv(inout)) };
    let apply = || {
        let op = op.ok_or("the service reduce was called without an operator")?;
        let applied = op.apply(&input, &mut inout);
        applied.map(|()| DONE).map_err(|error| error.to_string())
    };
    // SAFETY: `why` is null or writable, see `plugin.h`.
    unsafe { answer(why, apply) }
}

pub(super) unsafe extern "C" fn combine(
    op: *const abi::DenseOp,
    input: *const c_void,
    inout: *mut c_void,
    bytes: usize,
) {
    // SAFETY: the library derives such pointers from `&DenseOp` only; the plugin passes null or the operator of the running call.
    let Some(op) = (unsafe { op.cast::<DenseOp>().as_ref() }) else {
        return;
    };
    // SAFETY: the plugin passes `bytes` readable bytes at `input` and `bytes` writable bytes at `inout` that do not overlap, see `plugin.h`.
    let (input, inout) = unsafe { (bytes_at(input, bytes), bytes_at_mut(inout, bytes)) };
    calm((), || op.combine(input, inout));
}
