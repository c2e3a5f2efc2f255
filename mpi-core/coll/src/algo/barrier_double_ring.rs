//! Double ring barrier: a token goes round twice, first to collect the arrivals and then to release the ranks.
//!
//! The "double ring" of J. Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster Computing 10(2), 2007, section 4.1.
//! It takes 2 n sequential steps of one message each; useful as a reference for networks with few links.

use super::turn::{ahead, behind};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn barrier(invocation: &Invocation) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    if size == 1 {
        return Ok(());
    }
    let (word, space) = (SendBuf::empty(), RecvBuf::empty());
    let (next, before) = (ahead(me, 1, size), behind(me, 1, size));
    for _lap in 0..2 {
        // Rank 0 sends the token first and receives it last; every other rank forwards it.
        if me == 0 {
            invocation.sendrecv(&word, next, &space, before).await?;
        } else {
            invocation.recv(&space, before).await?;
            invocation.send(&word, next).await?;
        }
    }
    Ok(())
}
