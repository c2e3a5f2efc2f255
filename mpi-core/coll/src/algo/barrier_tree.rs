//! Tree barrier: arrivals are reported up a binomial tree, and the root's release goes down the same tree.
//!
//! After the combining tree of P.-C. Yew, N.-F. Tzeng, D. H. Lawrie, IEEE Transactions on Computers C-36(4), 1987.
//! It takes 2 (n - 1) messages instead of the n log n of dissemination: an advantage when more ranks than cores run.

use super::tree::Knomial;
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn barrier(invocation: &Invocation) -> Result<(), Error> {
    let tree = Knomial::binomial(invocation.rank(), 0, invocation.size());
    let (word, space) = (SendBuf::empty(), RecvBuf::empty());
    invocation
        .all(
            tree.children()
                .map(|c| invocation.irecv(&space, c.rank))
                .collect(),
        )
        .await?;
    if let Some(parent) = tree.parent() {
        invocation.sendrecv(&word, parent, &space, parent).await?;
    }
    invocation
        .all(
            tree.children()
                .map(|c| invocation.isend(&word, c.rank))
                .collect(),
        )
        .await
}
