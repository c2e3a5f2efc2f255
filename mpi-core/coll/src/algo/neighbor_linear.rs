//! Neighbourhood exchange: one message per edge, all at once (MPI 5.0, section 8.6).
//!
//! T. Hoefler, J. L. Traeff, "Sparse collective operations for MPI", IPDPS Workshops 2009.
//! The algorithm serves all five neighbourhood collectives, which differ only in their blocks.
//! The user chooses the number of neighbours, which is small compared with the number of ranks,
//! so all messages are sent at once.

use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::topo::Neighbours;

/// Exchanges the blocks; `send` and `recv` return the block of a neighbour, by its index.
pub async fn exchange(
    invocation: &Invocation,
    neighbours: &Neighbours,
    send: impl Fn(usize) -> SendBuf,
    recv: impl Fn(usize) -> RecvBuf,
) -> Result<(), Error> {
    // Between two processes messages match in the order of these calls, which distinguishes several blocks of the same neighbour.
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
