//! Recursive doubling allgather: in each round pairs of ranks exchange all blocks that they have, so each rank's number of blocks doubles.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.1.
//! The number of ranks must be a power of two;
//! otherwise [`super::allgather_bruck`] runs, which takes the same number of rounds.
//! Unlike Bruck's algorithm, it receives equal blocks directly in `recv`.

use super::contribute;
use super::row::Row;
use super::{Blocks, allgather_bruck};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn allgather(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &Blocks<RecvBuf>,
) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    if !size.is_power_of_two() {
        return allgather_bruck::allgather(invocation, send, recv).await;
    }
    contribute(send, &recv.of(me));
    let row = Row::with(recv, me)?;
    let mut have = 1;
    while have < size {
        let partner = me ^ have;
        // `group(rank)` returns the blocks that `rank` has received so far: those of its aligned group of `have` ranks.
        let group = |rank: u32| {
            let first = rank & !(have - 1);
            row.of(first..first + have)
        };
        invocation
            .sendrecv(&group(me).as_send(), partner, &group(partner), partner)
            .await?;
        have *= 2;
    }
    row.deliver(me);
    Ok(())
}
