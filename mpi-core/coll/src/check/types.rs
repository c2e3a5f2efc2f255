//! Type check of collective calls whose byte counts agree (MPI 5.0, section 6.1: the type signatures of sent and received data must be equal).
//!
//! If all members must pass data of the same signature, the whole signatures are compared.
//! If their counts may differ, only the basic types are compared.
//! Packed data and empty buffers match everything.

use crate::Call;
use crate::datatype::{Datatype, Named, RecvBuf, SendBuf};

/// The number of words per member:
/// two for the data that it sends, then two for the data that it receives.
/// The first word of each two is a digest of the signature (0 matches everything),
/// the second is the handle of the basic type.
pub(super) const WORDS: usize = 4;

/// The signature of the data that a member sends or receives.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Typed {
    digest: u64,
    /// The handle of the basic type, or 0 if the data have several basic types.
    basic: u64,
}

const ANYTHING: Typed = Typed {
    digest: 0,
    basic: 0,
};

/// Returns the signature of all `count` elements.
fn whole(datatype: &Datatype, count: i64) -> Typed {
    let basic = datatype.basic_element();
    if count == 0 || datatype.size() == 0 || basic == Some(Named::PACKED) {
        return ANYTHING;
    }
    Typed {
        digest: datatype.signature().times(count).word().max(1),
        basic: basic.map_or(0, |basic| u64::from(basic.info().handle)),
    }
}

/// Returns the signature of one basic element. It matches everything if the datatype has several basic types.
fn basic(datatype: &Datatype, count: i64) -> Typed {
    match datatype.basic_element() {
        Some(basic) if count > 0 => whole(&basic.into(), 1),
        _ => ANYTHING,
    }
}

fn sent(buf: &SendBuf) -> Typed {
    whole(buf.datatype(), buf.count())
}

fn received(buf: &RecvBuf) -> Typed {
    whole(buf.datatype(), buf.count())
}

/// Returns the words that describe the types of a member's call.
pub(super) fn words(call: &Call) -> [u64; WORDS] {
    let first_sent = |bufs: &[SendBuf]| {
        let one = bufs.iter().find(|buf| buf.bytes() > 0);
        one.map(|buf| basic(buf.datatype(), buf.count()))
    };
    let first_received = |bufs: &[RecvBuf]| {
        let one = bufs.iter().find(|buf| buf.bytes() > 0);
        one.map(|buf| basic(buf.datatype(), buf.count()))
    };
    let basic_sent = |buf: &SendBuf| basic(buf.datatype(), buf.count());
    let basic_received = |buf: &RecvBuf| basic(buf.datatype(), buf.count());
    let (sends, receives) = match call {
        Call::Bcast { buf, .. } => (Some(received(buf)), None),
        Call::Gather { send, recv, .. }
        | Call::Scatter { send, recv, .. }
        | Call::Reduce { send, recv, .. } => (send.as_ref().map(sent), recv.as_ref().map(received)),
        Call::Allgather { send, recv }
        | Call::Alltoall { send, recv }
        | Call::Allreduce { send, recv, .. }
        | Call::Scan { send, recv, .. }
        | Call::Exscan { send, recv, .. } => (send.as_ref().map(sent), Some(received(recv))),
        Call::Gatherv { send, recv, .. } => (
            send.as_ref().map(basic_sent),
            recv.as_ref().and_then(|recv| first_received(recv)),
        ),
        Call::Scatterv { send, recv, .. } => (
            send.as_ref().and_then(|send| first_sent(send)),
            recv.as_ref().map(basic_received),
        ),
        Call::Allgatherv { send, recv } => (send.as_ref().map(basic_sent), first_received(recv)),
        Call::Alltoallv { send, recv } => (
            send.as_ref().and_then(|send| first_sent(send)),
            first_received(recv),
        ),
        Call::ReduceScatter { send, recv, .. } | Call::ReduceScatterBlock { send, recv, .. } => {
            (send.as_ref().map(basic_sent), Some(basic_received(recv)))
        }
        Call::Barrier
        | Call::Alltoallw { .. }
        | Call::NeighborAllgather { .. }
        | Call::NeighborAllgatherv { .. }
        | Call::NeighborAlltoall { .. }
        | Call::NeighborAlltoallv { .. }
        | Call::NeighborAlltoallw { .. } => (None, None),
    };
    let (sends, receives) = (sends.unwrap_or(ANYTHING), receives.unwrap_or(ANYTHING));
    [sends.digest, sends.basic, receives.digest, receives.basic]
}

fn name(basic: u64) -> &'static str {
    let named = usize::try_from(basic).ok().and_then(Named::from_handle);
    named.map_or("several basic types", |named| named.info().name)
}

/// Formats the types that a member with these words sends and receives.
pub(super) fn text(words: &[u64]) -> String {
    match *words {
        [0, _, 0, _] => "no data".into(),
        [_, sent, 0, _] => name(sent).into(),
        [0, _, _, received] => name(received).into(),
        [a, sent, b, _] if a == b => name(sent).into(),
        [_, sent, _, received] => format!("{} to {}", name(sent), name(received)),
        _ => String::new(),
    }
}

/// Returns true if the types of all members match; `all` has the words of all members in the order of ranks.
pub(super) fn agree(all: &[u64]) -> bool {
    let digests = all.iter().step_by(2).filter(|digest| **digest != 0);
    let mut digests = digests.collect::<Vec<_>>();
    digests.dedup();
    digests.len() <= 1
}
