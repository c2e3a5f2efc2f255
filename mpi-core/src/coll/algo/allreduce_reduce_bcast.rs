//! Allreduce as a reduction to rank 0 and a broadcast from there.
//!
//! 2 (n - 1) messages, fewer than any other way, which counts where ranks share cores; the order of operands is kept.

use super::{bcast_binomial, reduce_binomial};
use crate::Error;
use crate::coll::Cx;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn allreduce(
    cx: &Cx,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    op: &Op,
) -> Result<(), Error> {
    let own = send.cloned().unwrap_or_else(|| recv.as_send());
    match cx.rank() {
        0 => reduce_binomial::reduce(cx, send, Some(recv), op, 0).await?,
        _ => reduce_binomial::reduce(cx, Some(&own), None, op, 0).await?,
    }
    bcast_binomial::bcast(cx, recv, 0).await
}
