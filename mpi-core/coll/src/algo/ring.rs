//! The reduce-scatter phase of the ring algorithms: partial sums go round the ring, until each rank has the complete sum of its own piece.
//!
//! P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of Parallel and Distributed Computing 69(2), 2009.
//! The sum of rank i's piece starts on rank (i + 1) mod n, so the operator must commute.
//! Pieces are cut into segments: while one segment is combined, the next one is in transfer.

use super::segments::Cut;
use super::turn::{ahead, behind};
use super::{combine, elements};
use crate::Error;
use crate::Invocation;
use crate::datatype::RecvBuf;
use crate::op::Op;

/// `pieces[i]` is the piece of rank i, in temporary memory that is overwritten; `segment` is the segment size in bytes.
pub async fn reduce_scatter(
    invocation: &Invocation,
    pieces: &[RecvBuf],
    op: &Op,
    segment: i64,
) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    let (next, before) = (ahead(me, 1, size), behind(me, 1, size));
    let piece = |rank: u32| &pieces[rank as usize];
    let cut = |piece: &RecvBuf| Cut::new(piece.count(), piece.datatype(), segment);
    let longest = pieces.iter().map(|piece| cut(piece).longest()).max();
    let datatype = piece(me).datatype();
    let slot = || Ok::<_, Error>(elements(longest.unwrap_or(0), datatype)?.all());
    let slots = [slot()?, slot()?];

    for step in 1..size {
        let (out, mine) = (
            piece(behind(me, step, size)),
            piece(behind(me, step + 1, size)),
        );
        let outgoing = cut(out)
            .segments()
            .map(|segment| invocation.isend(&out.slice(segment).as_send(), next))
            .collect();
        let space = |s: usize, count: i64| slots[s % 2].slice(0..count);
        let mut segments = cut(mine).segments().enumerate().peekable();
        let come = |(s, segment): &(usize, std::ops::Range<i64>)| {
            invocation.irecv(&space(*s, segment.end - segment.start), before)
        };
        let mut coming = segments.peek().map(come);
        while let Some((s, segment)) = segments.next() {
            let arriving = std::mem::replace(&mut coming, segments.peek().map(come));
            if let Some(arriving) = arriving {
                arriving.await?;
            }
            let fresh = space(s, segment.end - segment.start);
            combine(op, &fresh.as_send(), &mine.slice(segment))?;
        }
        invocation.all(outgoing).await?;
    }
    Ok(())
}
