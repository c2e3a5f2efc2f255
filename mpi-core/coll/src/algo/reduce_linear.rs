//! Linear reduction: the root receives the data of every rank and combines them, from the last rank to the first.
//!
//! The order of operands and of operations is the same for every root:
//! this is the reference for operators whose result depends on that order.

use super::{combine, copy, own, twin};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn reduce(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: Option<&RecvBuf>,
    op: &Op,
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
    let own = own(send, recv);
    let (acc, next) = (twin(recv)?, twin(recv)?);
    let last = invocation.size() - 1;
    for rank in (0..=last).rev() {
        let into = if rank == last { &acc } else { &next };
        if rank == me {
            copy(&own, into);
        } else {
            invocation.recv(into, rank).await?;
        }
        if rank != last {
            combine(op, &next.as_send(), &acc)?;
        }
    }
    copy(&acc.as_send(), recv);
    Ok(())
}
