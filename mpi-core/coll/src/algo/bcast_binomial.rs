//! Binomial broadcast: each rank that has the data sends them to one more rank per round, so the number of such ranks doubles.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH",
//! International Journal of High Performance Computing Applications 19(1), 2005, section 4.2.
//! Best for short messages: it takes ceil(log2 n) rounds.
//! The implementation is the k-nomial broadcast with radix two.

use super::bcast_knomial;
use crate::Error;
use crate::Invocation;
use crate::datatype::RecvBuf;

pub async fn bcast(invocation: &Invocation, buf: &RecvBuf, root: u32) -> Result<(), Error> {
    bcast_knomial::bcast(invocation, buf, root, 2).await
}
