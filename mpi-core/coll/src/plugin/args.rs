//! The arguments of a call as the C structures that a plugin receives.
//!
//! The structures contain pointers into the call and to each other, so neither the call nor [`Args`] may move while a plugin has a pointer to them.
#![allow(unsafe_code)]

use super::abi::{self, NO_RANK};
use crate::Call;
use crate::datatype::{Datatype, RecvBuf, SendBuf};
use crate::op::Op;
use crate::topo::Neighbours;
use std::ffi::c_void;
use std::ptr::{from_ref, null, null_mut};

/// The C structures that describe one call.
pub(super) struct Args {
    send: Buffers,
    recv: Buffers,
    ranks: [Vec<u32>; 3],
    c: abi::Args,
}

#[derive(Default)]
enum Buffers {
    #[default]
    None,
    One([abi::Buffer; 1]),
    Many(Vec<abi::Buffer>),
}

impl Buffers {
    fn all(&self) -> &[abi::Buffer] {
        match self {
            Buffers::None => &[],
            Buffers::One(one) => one,
            Buffers::Many(all) => all,
        }
    }

    fn pointer(&self) -> (*const abi::Buffer, u32) {
        let all = self.all();
        let first = if all.is_empty() { null() } else { all.as_ptr() };
        (first, all.len() as u32)
    }
}

/// A send or receive buffer that can be described as a C structure.
trait Described {
    fn describe(&self) -> abi::Buffer;
}

impl Described for SendBuf {
    fn describe(&self) -> abi::Buffer {
        describe(self.ptr().cast_mut(), self.count(), self.datatype())
    }
}

impl Described for RecvBuf {
    fn describe(&self) -> abi::Buffer {
        describe(self.ptr(), self.count(), self.datatype())
    }
}

pub(super) fn describe(address: *mut u8, count: i64, datatype: &Datatype) -> abi::Buffer {
    abi::Buffer {
        address: address.cast::<c_void>(),
        count,
        datatype: from_ref(datatype).cast(),
    }
}

fn one(buf: &impl Described) -> Buffers {
    Buffers::One([buf.describe()])
}

fn maybe<B: Described>(buf: &Option<B>) -> Buffers {
    buf.as_ref().map_or(Buffers::None, one)
}

fn each<B: Described>(bufs: &[B]) -> Buffers {
    Buffers::Many(bufs.iter().map(Described::describe).collect())
}

fn maybe_each<B: Described>(bufs: Option<&[B]>) -> Buffers {
    bufs.map_or(Buffers::None, each)
}

fn buffers(call: &Call) -> (Buffers, Buffers) {
    match call {
        Call::Barrier => (Buffers::None, Buffers::None),
        Call::Bcast { buf, .. } => (Buffers::None, one(buf)),
        Call::Gather { send, recv, .. }
        | Call::Scatter { send, recv, .. }
        | Call::Reduce { send, recv, .. } => (maybe(send), maybe(recv)),
        Call::Gatherv { send, recv, .. } => (maybe(send), maybe_each(recv.as_deref())),
        Call::Scatterv { send, recv, .. } => (maybe_each(send.as_deref()), maybe(recv)),
        Call::Allgather { send, recv }
        | Call::Alltoall { send, recv }
        | Call::Allreduce { send, recv, .. }
        | Call::ReduceScatter { send, recv, .. }
        | Call::ReduceScatterBlock { send, recv, .. }
        | Call::Scan { send, recv, .. }
        | Call::Exscan { send, recv, .. } => (maybe(send), one(recv)),
        Call::Allgatherv { send, recv } => (maybe(send), each(recv)),
        Call::Alltoallv { send, recv } | Call::Alltoallw { send, recv } => {
            (maybe_each(send.as_deref()), each(recv))
        }
        Call::NeighborAllgather { send, recv, .. } | Call::NeighborAlltoall { send, recv, .. } => {
            (one(send), one(recv))
        }
        Call::NeighborAllgatherv { send, recv, .. } => (one(send), each(recv)),
        Call::NeighborAlltoallv { send, recv, .. } | Call::NeighborAlltoallw { send, recv, .. } => {
            (each(send), each(recv))
        }
    }
}

fn root(call: &Call) -> u32 {
    match call {
        Call::Bcast { root, .. }
        | Call::Gather { root, .. }
        | Call::Gatherv { root, .. }
        | Call::Scatter { root, .. }
        | Call::Scatterv { root, .. }
        | Call::Reduce { root, .. } => *root,
        _ => NO_RANK,
    }
}

/// Returns the operator of a call, if it has one.
pub(super) fn op(call: &Call) -> Option<&Op> {
    match call {
        Call::Reduce { op, .. }
        | Call::Allreduce { op, .. }
        | Call::ReduceScatter { op, .. }
        | Call::ReduceScatterBlock { op, .. }
        | Call::Scan { op, .. }
        | Call::Exscan { op, .. } => Some(op),
        _ => None,
    }
}

fn neighbours(call: &Call) -> Option<&Neighbours> {
    match call {
        Call::NeighborAllgather { neighbours, .. }
        | Call::NeighborAllgatherv { neighbours, .. }
        | Call::NeighborAlltoall { neighbours, .. }
        | Call::NeighborAlltoallv { neighbours, .. }
        | Call::NeighborAlltoallw { neighbours, .. } => Some(neighbours),
        _ => None,
    }
}

/// Returns the source ranks and the destination ranks of a neighbourhood, and the indices of the receive blocks in matching order.
fn ranks(call: &Call) -> [Vec<u32>; 3] {
    let Some(neighbours) = neighbours(call) else {
        return Default::default();
    };
    let named = |ranks: &[Option<u32>]| ranks.iter().map(|rank| rank.unwrap_or(NO_RANK)).collect();
    let arrivals = neighbours.arrivals().map(|(block, _)| block as u32);
    [
        named(neighbours.sources()),
        named(neighbours.destinations()),
        arrivals.collect(),
    ]
}

impl Args {
    /// Describes `call`, which must not move while a plugin has the result of [`Args::pointer`].
    pub fn of(call: &Call, plan: *mut *mut c_void) -> Args {
        let (send, recv) = buffers(call);
        let c = abi::Args {
            size: size_of::<abi::Args>(),
            operation: call.id() as u32,
            root: root(call),
            op: op(call).map_or(null(), |op| from_ref(op).cast()),
            send: null(),
            recv: null(),
            send_count: 0,
            recv_count: 0,
            counts: match call {
                Call::ReduceScatter { counts, .. } => counts.as_ptr(),
                _ => null(),
            },
            sources: null(),
            destinations: null(),
            bytes: call.agreed_bytes().map_or(0, |bytes| bytes as u64),
            plan,
            source_count: 0,
            destination_count: 0,
            arrivals: null(),
            arrival_count: 0,
        };
        Args {
            send,
            recv,
            ranks: ranks(call),
            c,
        }
    }

    /// Returns the pointer for the plugin; `self` must not move while the plugin has it.
    pub fn pointer(&mut self) -> *const abi::Args {
        (self.c.send, self.c.send_count) = self.send.pointer();
        (self.c.recv, self.c.recv_count) = self.recv.pointer();
        let list = |ranks: &Vec<u32>| match ranks.is_empty() {
            true => (null(), 0),
            false => (ranks.as_ptr(), ranks.len() as u32),
        };
        let [sources, destinations, arrivals] = &self.ranks;
        (self.c.sources, self.c.source_count) = list(sources);
        (self.c.destinations, self.c.destination_count) = list(destinations);
        (self.c.arrivals, self.c.arrival_count) = list(arrivals);
        &raw const self.c
    }
}

/// Null pointer for `plan`: the call does not belong to a persistent operation.
pub(super) const NO_PLAN: *mut *mut c_void = null_mut();
