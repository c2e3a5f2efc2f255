//! Pairwise all-to-all: in round k every rank sends to the rank k ahead and receives from the rank k behind.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.3.
//! Each rank has one message coming and one going at a time, so no rank is flooded; best for long blocks, and blocks may differ.

use super::alltoall_linear::outgoing;
use super::turn::{ahead, behind};
use super::{Blocks, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn alltoall(
    cx: &Invocation,
    send: Option<Blocks<SendBuf>>,
    recv: &Blocks<RecvBuf>,
) -> Result<(), Error> {
    let (me, size) = (cx.rank(), cx.size());
    let in_place = send.is_none();
    let send = outgoing(send, recv)?;
    if !in_place {
        copy(&send.of(me), &recv.of(me));
    }
    for step in 1..size {
        let (to, from) = (ahead(me, step, size), behind(me, step, size));
        cx.sendrecv(&send.of(to), to, &recv.of(from), from).await?;
    }
    Ok(())
}
