//! Two-phase Bruck all-to-all for blocks of different lengths: each round first sends the lengths of its blocks, then the blocks in one message.
//!
//! K. Fan, T. Gilray, V. Pascucci, X. Huang, K. Micinski, S. Kumar, "Optimizing the Bruck algorithm for non-uniform all-to-all communication", HPDC 2022;
//! based on J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, IEEE TPDS 8(11), 1997.
//! It takes 2 ceil(log2 n) messages per rank instead of n - 1, and forwards each block up to ceil(log2 n) times.
//! It is best for many very short blocks.
//! Unlike in the paper, messages are not padded,
//! so the members need not agree on a maximum length first.

use super::alltoall_linear::outgoing;
use super::lengths::Lengths;
use super::turn::{ahead, behind};
use super::{Blocks, bytes, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn alltoall(
    invocation: &Invocation,
    send: Option<Blocks<SendBuf>>,
    recv: &Blocks<RecvBuf>,
) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    let send = outgoing(send, recv)?;
    // Block `number` is for the rank `number` ranks ahead.
    // At first the block is in this rank's send buffer, later in the buffer in which it was last received.
    let start = |number| send.of(ahead(me, number, size));
    let mut blocks: Vec<SendBuf> = (0..size).map(start).collect();
    let mut distance = 1;
    while distance < size {
        let moving: Vec<usize> = (0..size)
            .filter(|number| number & distance != 0)
            .map(|number| number as usize)
            .collect();
        let (to, from) = (ahead(me, distance, size), behind(me, distance, size));
        let count = moving.len() as u32;
        let (ours, theirs) = (Lengths::of(count)?, Lengths::of(count)?);
        for (i, number) in (0..).zip(&moving) {
            ours.set(i, blocks[*number].bytes());
        }
        let (told, heard) = (ours.space(0..count).as_send(), theirs.space(0..count));
        invocation.sendrecv(&told, to, &heard, from).await?;

        let (leaves, arrives) = (ours.starts(), theirs.starts());
        let (out, fresh) = (bytes(leaves[moving.len()])?, bytes(arrives[moving.len()])?);
        for (at, number) in leaves.windows(2).zip(&moving) {
            copy(&blocks[*number], &out.recv(at[0]..at[1]));
        }
        invocation
            .sendrecv(&out.all().as_send(), to, &fresh.all(), from)
            .await?;
        for (at, number) in arrives.windows(2).zip(&moving) {
            blocks[*number] = fresh.send(at[0]..at[1]);
        }
        distance *= 2;
    }
    // Block `number` is now the one from rank (me - number) mod size.
    for (number, block) in (0..).zip(&blocks) {
        let from = behind(me, number, size);
        invocation.deliver(block, &recv.of(from), from)?;
    }
    Ok(())
}
