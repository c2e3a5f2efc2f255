//! Neighbourhood exchange: every message by itself, all at once (MPI 5.0, section 8.6).
//!
//! T. Hoefler, J. L. Traeff, "Sparse collective operations for MPI", IPDPS Workshops 2009.
//! It serves all five operations: they differ in which data are a block.
//! The number of neighbours is the user's choice and small beside the number of ranks, so there is no window.

use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::topo::Neighbours;

/// `send` and `recv` give the block of a neighbour.
pub async fn exchange(
    cx: &Invocation,
    near: &Neighbours,
    send: impl Fn(usize) -> SendBuf,
    recv: impl Fn(usize) -> RecvBuf,
) -> Result<(), Error> {
    // Between two processes messages match in the order of these calls, which is what tells blocks of the same neighbour apart.
    let incoming = near
        .arrivals()
        .map(|(block, from)| cx.irecv(&recv(block), from))
        .collect();
    let going = near
        .departures()
        .map(|(block, to)| cx.isend(&send(block), to))
        .collect();
    let received = cx.all(incoming).await;
    received.and(cx.all(going).await)
}
