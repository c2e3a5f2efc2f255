//! Linear scatter: the root sends every rank its block.
//!
//! Every message is sent directly from the send buffer,
//! so a long block is copied once, into the receiver's buffer.
//! Blocks may differ in length (`MPI_Scatterv`).

use super::{Blocks, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn scatter(
    invocation: &Invocation,
    send: Option<&Blocks<SendBuf>>,
    recv: Option<&RecvBuf>,
    root: u32,
) -> Result<(), Error> {
    let me = invocation.rank();
    if me != root {
        return match recv {
            Some(recv) => invocation.recv(recv, root).await,
            None => Ok(()),
        };
    }
    let Some(send) = send else { return Ok(()) };
    let others = (0..invocation.size()).filter(|r| *r != me);
    let outgoing = others.map(|r| invocation.isend(&send.of(r), r)).collect();
    if let Some(recv) = recv {
        copy(&send.of(me), recv);
    }
    invocation.all(outgoing).await
}
