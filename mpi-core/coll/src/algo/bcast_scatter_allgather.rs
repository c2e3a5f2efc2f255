//! Broadcast as scatter and allgather, for long messages: the root scatters pieces of the message down a binomial tree, then the pieces go around a ring.
//!
//! M. Barnett, S. Gupta, D. Payne, L. Shuler, R. van de Geijn, J. Watts, "Interprocessor collective communication library (InterCom)", SHPCC 1994.
//! Each rank sends and receives about twice the length of the message, for any number of ranks.

use super::allgather_ring;
use super::blocks::{Blocks, share};
use super::staged::Staged;
use super::tree::Knomial;
use super::turn::Turn;
use crate::Error;
use crate::Invocation;
use crate::datatype::RecvBuf;
use std::ops::Range;

pub async fn bcast(invocation: &Invocation, buf: &RecvBuf, root: u32) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    let turn = Turn { size, root };
    let number = turn.number(me);
    let staged = if number == 0 {
        Staged::filled(buf)?
    } else {
        Staged::to_fill(buf)?
    };
    let total = staged.bytes.bytes();
    // Pieces with consecutive numbers are contiguous.
    let pieces = |numbers: Range<u32>| {
        let last = numbers.end.max(1) - 1;
        staged
            .bytes
            .slice(share(total, size, numbers.start).start..share(total, size, last).end)
    };

    let tree = Knomial::binomial(me, root, size);
    if let Some(parent) = tree.parent() {
        invocation
            .recv(&pieces(number..number + tree.subtree()), parent)
            .await?;
    }
    let down = |c: super::tree::Child| {
        let subtree = pieces(number + c.subtree.start..number + c.subtree.end);
        invocation.isend(&subtree.as_send(), c.rank)
    };
    invocation.all(tree.children().map(down).collect()).await?;

    // The root already has all pieces, and every other rank has the pieces of its subtree;
    // receiving these pieces again writes the same bytes.
    let piece = |rank: u32| {
        let number = turn.number(rank);
        pieces(number..number + 1)
    };
    let blocks = Blocks::Each((0..size).map(piece).collect());
    allgather_ring::allgather(invocation, None, &blocks).await?;
    if number != 0 {
        staged.deliver();
    }
    Ok(())
}
