//! Linear gather: every rank sends to the root.
//!
//! Every message is received in place, so long blocks are copied once; blocks may differ in length (`MPI_Gatherv`).

use super::{Blocks, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn gather(
    cx: &Invocation,
    send: Option<&SendBuf>,
    recv: Option<&Blocks<RecvBuf>>,
    root: u32,
) -> Result<(), Error> {
    let me = cx.rank();
    if me != root {
        return match send {
            Some(send) => cx.send(send, root).await,
            None => Ok(()),
        };
    }
    let Some(recv) = recv else { return Ok(()) };
    let others = (0..cx.size()).filter(|r| *r != me);
    let incoming = others.map(|r| cx.irecv(&recv.of(r), r)).collect();
    if let Some(send) = send {
        copy(send, &recv.of(me));
    }
    cx.all(incoming).await
}
