//! Exclusive scan by recursive doubling.
//!
//! W. D. Hillis, G. L. Steele, "Data parallel algorithms", Communications of the ACM 29(12), 1986,
//! see [`super::scan_recursive_doubling`].
//! Each rank sends the same prefixes as in the inclusive scan.
//! It also keeps the combination of the received data only, which is its result.
//! Rank 0's `recv` is not written, as the standard requires (MPI 5.0, section 6.11.2).

use super::{combine, copy, own, twin};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn exscan(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    op: &Op,
) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    let (sum, out, fresh) = (twin(recv)?, twin(recv)?, twin(recv)?);
    copy(&own(send, recv), &sum);
    let mut distance = 1;
    while distance < size {
        let incoming = (me >= distance).then(|| invocation.irecv(&fresh, me - distance));
        let outgoing = (me + distance < size).then(|| {
            copy(&sum.as_send(), &out);
            invocation.isend(&out.as_send(), me + distance)
        });
        if let Some(incoming) = incoming {
            incoming.await?;
            combine(op, &fresh.as_send(), &sum)?;
            if distance == 1 {
                copy(&fresh.as_send(), recv);
            } else {
                combine(op, &fresh.as_send(), recv)?;
            }
        }
        if let Some(outgoing) = outgoing {
            outgoing.await?;
        }
        distance *= 2;
    }
    Ok(())
}
