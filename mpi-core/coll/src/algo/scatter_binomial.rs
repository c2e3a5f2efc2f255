//! Binomial scatter: the root sends each subtree its blocks,
//! and inner ranks forward the blocks of their children's subtrees.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.2.
//! Best for short blocks: it takes ceil(log2 n) rounds.

use super::bytes;
use super::tree::{Child, Knomial};
use super::{Blocks, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn scatter(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: Option<&RecvBuf>,
    root: u32,
) -> Result<(), Error> {
    let tree = Knomial::binomial(invocation.rank(), root, invocation.size());
    let turn = tree.turn();
    let block = recv.map_or_else(|| send.map_or(0, SendBuf::bytes), RecvBuf::bytes);
    let at = |number: u32| i64::from(number) * block;
    let blocks = bytes(at(tree.subtree()))?;

    match (tree.parent(), send) {
        (Some(parent), _) => invocation.recv(&blocks.all(), parent).await?,
        (None, Some(send)) => {
            let send = Blocks::equal(send, turn.size);
            for number in 0..turn.size {
                copy(
                    &send.of(turn.rank(number)),
                    &blocks.recv(at(number)..at(number + 1)),
                );
            }
        }
        (None, None) => {}
    }
    let down =
        |c: Child| invocation.isend(&blocks.send(at(c.subtree.start)..at(c.subtree.end)), c.rank);
    let outgoing = tree.children().map(down).collect();
    if let Some(recv) = recv {
        copy(&blocks.send(0..block), recv);
    }
    invocation.all(outgoing).await
}
