//! Linear gather: every rank sends to the root.
//!
//! Every message is received at its final address, so long blocks are copied once; blocks may differ in length (`MPI_Gatherv`).

use super::{Blocks, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn gather(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: Option<&Blocks<RecvBuf>>,
    root: u32,
) -> Result<(), Error> {
    let me = invocation.rank();
    if me != root {
        return match send {
            Some(send) => invocation.send(send, root).await,
            None => Ok(()),
        };
    }
    let Some(recv) = recv else { return Ok(()) };
    let others = (0..invocation.size()).filter(|r| *r != me);
    let incoming = others.map(|r| invocation.irecv(&recv.of(r), r)).collect();
    if let Some(send) = send {
        copy(send, &recv.of(me));
    }
    invocation.all(incoming).await
}
