//! Ring allgather: in each round every rank forwards to its neighbour the block that it received in the previous round.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.1.
//! It takes n - 1 rounds between neighbours without additional copies;
//! best for long blocks, which may differ in length (`MPI_Allgatherv`).

use super::turn::{ahead, behind};
use super::{Blocks, contribute};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn allgather(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &Blocks<RecvBuf>,
) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    contribute(send, &recv.of(me));
    let (next, before) = (ahead(me, 1, size), behind(me, 1, size));
    for step in 0..size - 1 {
        let out = recv.of(behind(me, step, size)).as_send();
        let fresh = recv.of(behind(me, step + 1, size));
        invocation.sendrecv(&out, next, &fresh, before).await?;
    }
    Ok(())
}
