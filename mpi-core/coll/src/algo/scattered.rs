//! The buffers of a reduce-scatter: `recv` is this rank's part of the result; with MPI_IN_PLACE it is the start of the whole input.

use super::blocks::Buffer;
use super::own;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use std::ops::Range;

/// Returns the whole input, and the buffer for this rank's part of the result.
pub fn buffers(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    counts: &[i64],
) -> (SendBuf, RecvBuf) {
    let whole = recv.with_count(counts.iter().sum());
    let mine = recv.with_count(counts[invocation.rank() as usize]);
    (own(send, &whole), mine)
}

/// The range of elements of each rank's part.
pub fn parts(counts: &[i64]) -> impl Iterator<Item = Range<i64>> {
    counts.iter().scan(0, |at, count| {
        let start = *at;
        *at += count;
        Some(start..*at)
    })
}

/// Divides a buffer into the parts of all ranks.
pub fn cut<B: Buffer>(whole: &B, counts: &[i64]) -> Vec<B> {
    parts(counts).map(|part| whole.slice(part)).collect()
}
