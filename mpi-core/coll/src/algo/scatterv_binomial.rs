//! Binomial scatter of blocks of different lengths: the root sends each subtree first the lengths of its blocks, then the blocks.
//! Inner ranks forward the lengths and the blocks of their children's subtrees.
//!
//! This is the reverse of [`super::gatherv_binomial`], after the same papers.
//! Best for many short blocks: 2 ceil(log2 n) messages at the root.

use super::lengths::Lengths;
use super::tree::{Child, Knomial};
use super::{Blocks, bytes, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn scatter(
    invocation: &Invocation,
    send: Option<&Blocks<SendBuf>>,
    recv: Option<&RecvBuf>,
    root: u32,
) -> Result<(), Error> {
    let me = invocation.rank();
    let tree = Knomial::binomial(me, root, invocation.size());
    let turn = tree.turn();
    let lengths = Lengths::of(tree.subtree())?;
    if let Some(parent) = tree.parent() {
        invocation
            .recv(&lengths.space(0..tree.subtree()), parent)
            .await?;
    } else if let Some(send) = send {
        for number in 0..turn.size {
            lengths.set(number, send.of(turn.rank(number)).bytes());
        }
    }
    let at = lengths.starts();
    let blocks = bytes(at[tree.subtree() as usize])?;
    let range = |first: u32, end: u32| at[first as usize]..at[end as usize];
    if let Some(parent) = tree.parent() {
        invocation.recv(&blocks.all(), parent).await?;
    } else if let Some(send) = send {
        for number in 0..turn.size {
            let block = blocks.recv(range(number, number + 1));
            copy(&send.of(turn.rank(number)), &block);
        }
    }
    let down = |c: Child| {
        let place = range(c.subtree.start, c.subtree.end);
        [
            invocation.isend(&lengths.space(c.subtree).as_send(), c.rank),
            invocation.isend(&blocks.send(place), c.rank),
        ]
    };
    let outgoing = tree.children().flat_map(down).collect();
    let delivered = match recv {
        Some(recv) => invocation.deliver(&blocks.send(range(0, 1)), recv, root),
        None => Ok(()),
    };
    invocation.all(outgoing).await.and(delivered)
}
