//! Bruck allgather: in round k, rank i sends all its blocks to rank (i - 2^k) mod n.
//!
//! J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing systems",
//! IEEE Transactions on Parallel and Distributed Systems 8(11), 1997.
//! The algorithm takes ceil(log2 n) rounds for every n.
//! Best for short blocks. The blocks may differ in length (`MPI_Allgatherv`).

use super::bytes;
use super::turn::{ahead, behind};
use super::{Blocks, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn allgather(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &Blocks<RecvBuf>,
) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    // `block(number)` is the block of rank (me + number) mod size; `at[number]` is its offset in the temporary buffer.
    let block = |number: u32| recv.of(ahead(me, number, size));
    let ends = (0..size).scan(0, |end, number| {
        *end += block(number).bytes();
        Some(*end)
    });
    let at: Vec<i64> = std::iter::once(0).chain(ends).collect();
    let range = |first: u32, end: u32| at[first as usize]..at[end as usize];
    let blocks = bytes(at[size as usize])?;
    match send {
        Some(send) => copy(send, &blocks.recv(range(0, 1))),
        None => copy(&recv.of(me).as_send(), &blocks.recv(range(0, 1))),
    }
    let mut have = 1;
    while have < size {
        let more = have.min(size - have);
        let out = blocks.send(range(0, more));
        let fresh = blocks.recv(range(have, have + more));
        invocation
            .sendrecv(&out, behind(me, have, size), &fresh, ahead(me, have, size))
            .await?;
        have += more;
    }
    for number in u32::from(send.is_none())..size {
        copy(&blocks.send(range(number, number + 1)), &block(number));
    }
    Ok(())
}
