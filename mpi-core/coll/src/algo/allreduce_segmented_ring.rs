//! Segmented ring allreduce: the ring allreduce with pieces cut into segments, so that one segment is combined while the next one is transferred.
//!
//! P. Patarasuk, X. Yuan, JPDC 69(2), 2009, see [`super::ring`]; segmented as in Open MPI's coll/tuned.
//! Best for the longest data; needs a commutative operator.

use super::blocks::{Blocks, share};
use super::{allgather_ring, contribute, ring};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;
use std::rc::Rc;

pub async fn allreduce(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    op: &Op,
    segment: i64,
) -> Result<(), Error> {
    contribute(send, recv);
    let piece = |rank: u32| recv.slice(share(recv.count(), invocation.size(), rank));
    let pieces: Rc<[RecvBuf]> = (0..invocation.size()).map(piece).collect();
    ring::reduce_scatter(invocation, &pieces, op, segment).await?;
    allgather_ring::allgather(invocation, None, &Blocks::Each(pieces)).await
}
