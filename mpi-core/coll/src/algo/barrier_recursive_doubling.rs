//! Recursive doubling barrier: pairs of ranks synchronise, then pairs of pairs.
//!
//! E. D. Brooks III, "The butterfly barrier", Int. Journal of Parallel Programming 15(4), 1986.
//! If the number of ranks is not a power of two, the additional ranks are folded in ([`super::fold`]).

use super::fold::{Fold, Part};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn barrier(invocation: &Invocation) -> Result<(), Error> {
    let fold = Fold::new(invocation.size());
    let (word, space) = (SendBuf::empty(), RecvBuf::empty());
    let (number, other) = match fold.part(invocation.rank()) {
        Part::Rests { to } => return invocation.sendrecv(&word, to, &space, to).await,
        Part::WorksFor { number, other } => (number, Some(other)),
        Part::Works { number } => (number, None),
    };
    if let Some(other) = other {
        invocation.recv(&space, other).await?;
    }
    let mut step = 1;
    while step < fold.power {
        let partner = fold.rank(number ^ step);
        invocation.sendrecv(&word, partner, &space, partner).await?;
        step *= 2;
    }
    match other {
        Some(other) => invocation.send(&word, other).await,
        None => Ok(()),
    }
}
