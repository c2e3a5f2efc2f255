//! Neighbourhood exchange: one message per edge, all messages at the same time (MPI 5.0, section 8.6).
//!
//! T. Hoefler, J. L. Traeff, "Sparse collective operations for MPI", IPDPS Workshops 2009.
//! The algorithm implements all five neighbourhood collectives, which differ only in their blocks.
//! The user chooses the number of neighbours, which is small compared with the number of ranks,
//! so all messages can be in progress at the same time.

use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::topo::Neighbours;

/// Exchanges the blocks; `send(i)` and `recv(i)` return the blocks for and from neighbour `i`.
pub async fn exchange(
    invocation: &Invocation,
    neighbours: &Neighbours,
    send: impl Fn(usize) -> SendBuf,
    recv: impl Fn(usize) -> RecvBuf,
) -> Result<(), Error> {
    // Messages between two processes match in the order of these calls, so several blocks of one neighbour are distinguished.
    let incoming = neighbours
        .arrivals()
        .map(|(block, from)| invocation.irecv(&recv(block), from))
        .collect();
    let going = neighbours
        .departures()
        .map(|(block, to)| invocation.isend(&send(block), to))
        .collect();
    let received = invocation.all(incoming).await;
    received.and(invocation.all(going).await)
}
