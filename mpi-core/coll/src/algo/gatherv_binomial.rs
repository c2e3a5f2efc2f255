//! Binomial gather of blocks of different lengths: each rank sends first the lengths of its subtree's blocks to its parent, then the blocks in one message.
//!
//! The tree is that of R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005.
//! Lengths are sent as in J. L. Traeff,
//! "Hierarchical gather/scatter algorithms with graceful degradation", IPDPS 2004, since only the root knows all lengths (MPI 5.0, section 6.5).
//! Best for many short blocks: 2 ceil(log2 n) messages at the root.

use super::lengths::Lengths;
use super::tree::{Child, Knomial};
use super::{Blocks, bytes, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn gather(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: Option<&Blocks<RecvBuf>>,
    root: u32,
) -> Result<(), Error> {
    let me = invocation.rank();
    let tree = Knomial::binomial(me, root, invocation.size());
    let turn = tree.turn();
    // With MPI_IN_PLACE the root's block is in place already; other ranks always pass `send`.
    let own = send.map_or(0, SendBuf::bytes);
    let lengths = Lengths::of(tree.subtree())?;
    lengths.set(0, own);
    let heard = tree
        .children()
        .map(|c| invocation.irecv(&lengths.space(c.subtree), c.rank))
        .collect();
    invocation.all(heard).await?;
    let at = lengths.starts();
    let blocks = bytes(at[tree.subtree() as usize])?;
    let range = |first: u32, end: u32| at[first as usize]..at[end as usize];
    let up = |c: Child| {
        let place = range(c.subtree.start, c.subtree.end);
        invocation.irecv(&blocks.recv(place), c.rank)
    };
    let incoming = tree.children().map(up).collect();
    if let Some(parent) = tree.parent() {
        let told = invocation.isend(&lengths.space(0..tree.subtree()).as_send(), parent);
        if let Some(send) = send {
            copy(send, &blocks.recv(range(0, 1)));
        }
        invocation.all(incoming).await?;
        invocation.send(&blocks.all().as_send(), parent).await?;
        return told.await;
    }
    invocation.all(incoming).await?;
    if let Some(recv) = recv {
        for number in 1..turn.size {
            let block = blocks.send(range(number, number + 1));
            let rank = turn.rank(number);
            invocation.deliver(&block, &recv.of(rank), rank)?;
        }
        if let Some(send) = send {
            copy(send, &recv.of(me));
        }
    }
    Ok(())
}
