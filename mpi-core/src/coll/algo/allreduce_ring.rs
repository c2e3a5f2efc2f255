//! Ring allreduce: pieces go around once to be summed and once to be told.
//!
//! P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of Parallel and Distributed Computing 69(2), 2009.
//! Each rank sends 2 (n - 1) / n of the data, the least possible; needs an operator that commutes, since each piece starts at another rank.

use super::blocks::share;
use super::turn::{ahead, behind};
use super::{combine, contribute, twin};
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
    let (me, size) = (cx.rank(), cx.size());
    contribute(send, recv);
    let piece = |of: u32| recv.slice(share(recv.count(), size, of));
    let fresh = twin(&piece(0))?;
    let (next, before) = (ahead(me, 1, size), behind(me, 1, size));

    for step in 0..size - 1 {
        let (out, mine) = (
            piece(behind(me, step, size)),
            piece(behind(me, step + 1, size)),
        );
        let fresh = fresh.slice(0..mine.count());
        cx.sendrecv(&out.as_send(), next, &fresh, before).await?;
        combine(op, &fresh.as_send(), &mine)?;
    }
    // Each rank now holds the whole sum of the piece of the rank ahead.
    for step in 0..size - 1 {
        let out = piece(behind(next, step, size));
        let coming = piece(behind(me, step, size));
        cx.sendrecv(&out.as_send(), next, &coming, before).await?;
    }
    Ok(())
}
