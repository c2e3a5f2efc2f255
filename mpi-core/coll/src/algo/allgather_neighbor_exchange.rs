//! Neighbour exchange allgather: ranks exchange with their two neighbours alternately, two blocks at a time.
//!
//! J. Chen, L. Zhang, Y. Zhang, W. Yuan, "Performance evaluation of allgather algorithms on terascale Linux cluster with fast Ethernet", HPC Asia 2005.
//! It takes n / 2 rounds for an even number of ranks n;
//! for an odd number it calls [`super::allgather_ring`].

use super::turn::{ahead, behind};
use super::{Blocks, allgather_ring, contribute};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn allgather(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &Blocks<RecvBuf>,
) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    if size % 2 != 0 {
        return allgather_ring::allgather(invocation, send, recv).await;
    }
    contribute(send, &recv.of(me));
    let even = me % 2 == 0;
    let partner = if even {
        ahead(me, 1, size)
    } else {
        behind(me, 1, size)
    };
    invocation
        .sendrecv(&recv.of(me).as_send(), partner, &recv.of(partner), partner)
        .await?;

    // In each further round, the pair of blocks received last is sent to the other neighbour.
    let mut pair = me & !1;
    for round in 1..size / 2 {
        let forward = even != (round % 2 == 1);
        let neighbour = if forward {
            ahead(me, 1, size)
        } else {
            behind(me, 1, size)
        };
        // `distance` is the number of ranks between this rank's pair and the incoming pair: 2 in rounds 1 and 2, 4 in rounds 3 and 4, and so on.
        let distance = (round + 1) & !1;
        let theirs = if forward {
            ahead(me & !1, distance, size)
        } else {
            behind(me & !1, distance, size)
        };
        let (a, b) = (recv.of(theirs), recv.of(theirs + 1));
        let incoming = vec![
            invocation.irecv(&a, neighbour),
            invocation.irecv(&b, neighbour),
        ];
        let mine = [recv.of(pair).as_send(), recv.of(pair + 1).as_send()];
        let outgoing = mine
            .iter()
            .map(|block| invocation.isend(block, neighbour))
            .collect();
        invocation.all(incoming).await?;
        invocation.all(outgoing).await?;
        pair = theirs;
    }
    Ok(())
}
