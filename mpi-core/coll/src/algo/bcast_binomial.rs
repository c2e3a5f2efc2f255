//! Binomial broadcast: a rank that has the data passes it on, so the number of those that have it doubles in each round.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH",
//! International Journal of High Performance Computing Applications 19(1), 2005, section 4.2.
//! Best for short messages: ceil(log2 n) rounds.
//! It is the k-nomial broadcast of radix two.

use super::bcast_knomial;
use crate::Error;
use crate::Invocation;
use crate::datatype::RecvBuf;

pub async fn bcast(cx: &Invocation, buf: &RecvBuf, root: u32) -> Result<(), Error> {
    bcast_knomial::bcast(cx, buf, root, 2).await
}
