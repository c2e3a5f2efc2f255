//! Inclusive scan by recursive doubling.
//!
//! W. D. Hillis, G. L. Steele, "Data parallel algorithms", Communications of the ACM 29(12), 1986:
//! in round k, rank i sends the sum of ranks i - 2^k + 1 to i to rank i + 2^k.
//! It takes ceil(log2 n) rounds for every n;
//! received data are always the left operand, so operators need not commute.

use super::{combine, contribute, copy, twin};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn scan(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    op: &Op,
) -> Result<(), Error> {
    contribute(send, recv);
    let (me, size) = (invocation.rank(), invocation.size());
    // `out` is a copy, because a send may still read its buffer while `recv` is updated.
    let (out, fresh) = (twin(recv)?, twin(recv)?);
    let mut distance = 1;
    while distance < size {
        let incoming = (me >= distance).then(|| invocation.irecv(&fresh, me - distance));
        let outgoing = (me + distance < size).then(|| {
            copy(&recv.as_send(), &out);
            invocation.isend(&out.as_send(), me + distance)
        });
        if let Some(incoming) = incoming {
            incoming.await?;
            combine(op, &fresh.as_send(), recv)?;
        }
        if let Some(outgoing) = outgoing {
            outgoing.await?;
        }
        distance *= 2;
    }
    Ok(())
}
