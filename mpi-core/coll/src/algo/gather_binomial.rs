//! Binomial gather: each rank collects its subtree's blocks and sends them up in one message.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005; the reverse of the binomial scatter.
//! Best for short blocks: it takes ceil(log2 n) rounds instead of n - 1 messages at the root.

use super::bytes;
use super::tree::{Child, Knomial};
use super::{Blocks, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn gather(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: Option<&RecvBuf>,
    root: u32,
) -> Result<(), Error> {
    let tree = Knomial::binomial(invocation.rank(), root, invocation.size());
    let turn = tree.turn();
    // Every member knows the block length from its own arguments;
    // with MPI_IN_PLACE the root uses the length of `recv`.
    let block = send.map_or_else(|| recv.map_or(0, RecvBuf::bytes), SendBuf::bytes);
    let at = |number: u32| i64::from(number) * block;
    let blocks = bytes(at(tree.subtree()))?;

    let up =
        |c: Child| invocation.irecv(&blocks.recv(at(c.subtree.start)..at(c.subtree.end)), c.rank);
    // The receives from children with small subtrees are posted first, since these children send first.
    let incoming = tree.children().rev().map(up).collect();
    if let Some(send) = send {
        copy(send, &blocks.recv(0..block));
    }
    invocation.all(incoming).await?;
    if let Some(parent) = tree.parent() {
        return invocation.send(&blocks.all().as_send(), parent).await;
    }
    if let Some(recv) = recv {
        let recv = Blocks::equal(recv, turn.size);
        // With MPI_IN_PLACE the root's own block, number 0, is in place already.
        for number in u32::from(send.is_none())..turn.size {
            copy(
                &blocks.send(at(number)..at(number + 1)),
                &recv.of(turn.rank(number)),
            );
        }
    }
    Ok(())
}
