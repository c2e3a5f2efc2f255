//! Bruck allgather: in round k everybody sends all blocks it has to the rank 2^k behind.
//!
//! J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing systems",
//! IEEE Transactions on Parallel and Distributed Systems 8(11), 1997.
//! ceil(log2 n) rounds for every n; best for short blocks.

use super::bytes;
use super::turn::{ahead, behind};
use super::{Blocks, copy};
use crate::Error;
use crate::coll::Cx;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn allgather(cx: &Cx, send: Option<&SendBuf>, recv: &RecvBuf) -> Result<(), Error> {
    let (me, size) = (cx.rank(), cx.size());
    let recv = Blocks::equal(recv, size);
    let block = recv.of(me).bytes();
    let at = |number: u32| i64::from(number) * block;
    // Block number i is that of the rank i ahead of this one.
    let blocks = bytes(at(size))?;
    match send {
        Some(send) => copy(send, &blocks.recv(0..block)),
        None => copy(&recv.of(me).as_send(), &blocks.recv(0..block)),
    }
    let mut have = 1;
    while have < size {
        let more = have.min(size - have);
        let out = blocks.send(0..at(more));
        let fresh = blocks.recv(at(have)..at(have + more));
        cx.sendrecv(&out, behind(me, have, size), &fresh, ahead(me, have, size))
            .await?;
        have += more;
    }
    for number in u32::from(send.is_none())..size {
        copy(
            &blocks.send(at(number)..at(number + 1)),
            &recv.of(ahead(me, number, size)),
        );
    }
    Ok(())
}
