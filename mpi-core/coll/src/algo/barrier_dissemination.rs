//! Dissemination barrier: in round k, rank i sends to rank (i + 2^k) mod n and receives from rank (i - 2^k) mod n.
//!
//! D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization", International Journal of Parallel Programming 17(1), 1988.
//! It takes ceil(log2 n) rounds; each member sends and receives one empty message per round.

use super::turn::{ahead, behind};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn barrier(invocation: &Invocation) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    let (word, space) = (SendBuf::empty(), RecvBuf::empty());
    let mut distance = 1;
    while distance < size {
        invocation
            .sendrecv(
                &word,
                ahead(me, distance, size),
                &space,
                behind(me, distance, size),
            )
            .await?;
        distance *= 2;
    }
    Ok(())
}
