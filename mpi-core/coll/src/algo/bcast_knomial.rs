//! K-nomial broadcast: each rank that has the data sends them to `radix - 1` ranks per round.
//!
//! A. Faraj, X. Yuan, "Automatic generation and tuning of MPI collective communication routines", ICS 2005;
//! MPICH calls this tree k-nomial, and Open MPI knomial.
//! It takes ceil(log n / log radix) rounds;
//! best if a rank can send several messages in the time of one transfer.

use super::tree::Knomial;
use crate::Error;
use crate::Invocation;
use crate::datatype::RecvBuf;

pub async fn bcast(
    invocation: &Invocation,
    buf: &RecvBuf,
    root: u32,
    radix: u32,
) -> Result<(), Error> {
    let tree = Knomial::new(invocation.rank(), root, invocation.size(), radix);
    if let Some(parent) = tree.parent() {
        invocation.recv(buf, parent).await?;
    }
    let data = buf.as_send();
    invocation
        .all(
            tree.children()
                .map(|c| invocation.isend(&data, c.rank))
                .collect(),
        )
        .await
}
