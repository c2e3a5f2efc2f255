//! Pairwise all-to-all: in round k, rank i sends to rank (i + k) mod n and receives from rank (i - k) mod n.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.3.
//! Each rank sends and receives one message at a time, so no rank is flooded; best for long blocks, which may differ in length.

use super::alltoall_linear::outgoing;
use super::turn::{ahead, behind};
use super::{Blocks, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn alltoall(
    invocation: &Invocation,
    send: Option<Blocks<SendBuf>>,
    recv: &Blocks<RecvBuf>,
) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    let in_place = send.is_none();
    let send = outgoing(send, recv)?;
    if !in_place {
        copy(&send.of(me), &recv.of(me));
    }
    for step in 1..size {
        let (to, from) = (ahead(me, step, size), behind(me, step, size));
        invocation
            .sendrecv(&send.of(to), to, &recv.of(from), from)
            .await?;
    }
    Ok(())
}
