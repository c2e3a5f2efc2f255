//! Pipelined chain broadcast: each rank of a chain receives a segment of the message while it sends the previous one.
//!
//! The "pipeline" of J. Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster Computing 10(2), 2007, section 4.2.
//! Best for long messages on few ranks: it takes n + segments - 2 steps, and every rank sends each segment at most once.

use super::staged::Staged;
use super::turn::Turn;
use crate::Error;
use crate::Invocation;
use crate::datatype::RecvBuf;

/// Number of receives posted ahead of the segment that is being sent.
const AHEAD: i64 = 2;

pub async fn bcast(
    invocation: &Invocation,
    buf: &RecvBuf,
    root: u32,
    segment: i64,
) -> Result<(), Error> {
    let turn = Turn {
        size: invocation.size(),
        root,
    };
    let number = turn.number(invocation.rank());
    let before = (number > 0).then(|| turn.rank(number - 1));
    let after = (number + 1 < turn.size).then(|| turn.rank(number + 1));
    let staged = if before.is_none() {
        Staged::filled(buf)?
    } else {
        Staged::to_fill(buf)?
    };
    let (total, segment) = (staged.bytes.bytes(), segment.max(1));
    let segments = total.div_euclid(segment) + i64::from(total % segment != 0);
    let piece = |s: i64| {
        staged
            .bytes
            .slice(s * segment..((s + 1) * segment).min(total))
    };

    let mut incoming = std::collections::VecDeque::new();
    if let Some(before) = before {
        incoming.extend((0..segments.min(AHEAD)).map(|s| invocation.irecv(&piece(s), before)));
    }
    let mut outgoing = Vec::new();
    for s in 0..segments {
        if let (Some(before), Some(arriving)) = (before, incoming.pop_front()) {
            arriving.await?;
            if s + AHEAD < segments {
                incoming.push_back(invocation.irecv(&piece(s + AHEAD), before));
            }
        }
        if let Some(after) = after {
            outgoing.push(invocation.isend(&piece(s).as_send(), after));
        }
    }
    invocation.all(outgoing).await?;
    if before.is_some() {
        staged.deliver();
    }
    Ok(())
}
