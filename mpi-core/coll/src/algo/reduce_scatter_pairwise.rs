//! Pairwise reduce-scatter: in round k, rank i sends to rank (i + k) mod n and combines the operand from rank (i - k) mod n.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.6, for long data; the operator must commute.
//! Each rank sends (n - 1) / n of the data, the minimum, in n - 1 rounds.
//! `recv` is this rank's part of the result; with MPI_IN_PLACE it is the start of the whole input.

use super::turn::{ahead, behind};
use super::{combine, copy, scattered, twin};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn reduce_scatter(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    counts: &[i64],
    op: &Op,
) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    let (input, recv) = scattered::buffers(invocation, send, recv, counts);
    let parts = scattered::cut(&input, counts);
    let part = |rank: u32| &parts[rank as usize];
    // Temporary buffers: with MPI_IN_PLACE `recv` is the first part of the input, which has not been sent yet.
    let (acc, fresh) = (twin(&recv)?, twin(&recv)?);
    copy(part(me), &acc);
    for step in 1..size {
        let (to, from) = (ahead(me, step, size), behind(me, step, size));
        invocation.sendrecv(part(to), to, &fresh, from).await?;
        combine(op, &fresh.as_send(), &acc)?;
    }
    copy(&acc.as_send(), &recv);
    Ok(())
}
