//! Linear all-to-all with a window: one message per pair, with a bounded number of messages in progress.
//!
//! The "scattered" algorithm of R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.3.
//! Blocks may have any lengths and types; the window bounds the memory for unexpected messages.

use super::bytes;
use super::turn::{ahead, behind};
use super::{Blocks, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

/// Returns the blocks to send: `send`, or with MPI_IN_PLACE a copy of the current contents of `recv`.
pub(super) fn outgoing(
    send: Option<Blocks<SendBuf>>,
    recv: &Blocks<RecvBuf>,
) -> Result<Blocks<SendBuf>, Error> {
    if let Some(send) = send {
        return Ok(send);
    }
    let all = bytes(recv.bytes())?;
    let mut at = 0;
    let blocks = (0..recv.size()).map(|r| {
        let block = recv.of(r);
        let bytes = at..at + block.bytes();
        at = bytes.end;
        copy(&block.as_send(), &all.recv(bytes.clone()));
        all.send(bytes)
    });
    Ok(Blocks::Each(blocks.collect()))
}

pub async fn alltoall(
    invocation: &Invocation,
    send: Option<Blocks<SendBuf>>,
    recv: &Blocks<RecvBuf>,
    window: u32,
) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    let in_place = send.is_none();
    let send = outgoing(send, recv)?;
    if !in_place {
        copy(&send.of(me), &recv.of(me));
    }
    let window = window.max(1);
    let mut first = 1;
    while first < size {
        let end = first.saturating_add(window).min(size);
        let from = |step| behind(me, step, size);
        let to = |step| ahead(me, step, size);
        let incoming = (first..end)
            .map(|step| invocation.irecv(&recv.of(from(step)), from(step)))
            .collect();
        let going = (first..end)
            .map(|step| invocation.isend(&send.of(to(step)), to(step)))
            .collect();
        invocation.all(incoming).await?;
        invocation.all(going).await?;
        first = end;
    }
    Ok(())
}
