//! Segmented reduction up a tree: while one segment is combined, the next one is in transfer.
//!
//! J. Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007, section 4.3: a pipeline or a binary tree, depending on `tree`.

use super::in_order::InOrder;
use super::{combine, contribute, copy, elements};
use crate::Error;
use crate::Invocation;
use crate::datatype::{Datatype, RecvBuf, SendBuf};
use crate::invocation::Pending;
use crate::op::Op;
use std::ops::Range;

/// Number of segments in progress per child: one arriving, one being combined, one being sent.
const DEPTH: usize = 3;

/// The division of a buffer's elements into segments.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    total: i64,
    each: i64,
}

impl Cut {
    /// Divides into segments of at most `bytes` bytes, but at least one element each.
    pub fn new(total: i64, datatype: &Datatype, bytes: i64) -> Cut {
        let each = (bytes / datatype.size().max(1)).max(1);
        Cut { total, each }
    }

    /// Returns the number of elements of the longest segment.
    pub fn longest(self) -> i64 {
        self.each.min(self.total)
    }

    pub fn segments(self) -> impl Iterator<Item = Range<i64>> {
        let Cut { total, each } = self;
        let count = total / each + i64::from(total % each != 0);
        (0..count).map(move |s| s * each..(s * each).saturating_add(each).min(total))
    }
}

/// One child's receive buffers (slots), used in rotation by its segments.
struct Slots(Vec<RecvBuf>);

impl Slots {
    fn new(cut: Cut, datatype: &Datatype) -> Result<Slots, Error> {
        let slot = |_| Ok::<_, Error>(elements(cut.longest(), datatype)?.all());
        Ok(Slots((0..DEPTH).map(slot).collect::<Result<_, _>>()?))
    }

    fn of(&self, segment: usize, elements: &Range<i64>) -> RecvBuf {
        self.0[segment % DEPTH].slice(0..elements.end - elements.start)
    }
}

/// Combines the data of left child, own rank and right child for the parent; `bytes` is the segment size.
pub async fn reduce(
    invocation: &Invocation,
    tree: InOrder,
    send: Option<&SendBuf>,
    recv: Option<&RecvBuf>,
    op: &Op,
    bytes: i64,
) -> Result<(), Error> {
    let own = match (send, recv) {
        // The root combines into `recv`, so its operand is copied there first.
        (_, Some(recv)) if tree.parent.is_none() => {
            contribute(send, recv);
            recv.as_send()
        }
        (Some(send), _) => send.clone(),
        _ => return Ok(()),
    };
    let cut = Cut::new(own.count(), own.datatype(), bytes);
    let pieces: Vec<Range<i64>> = cut.segments().collect();
    let slots = || Slots::new(cut, own.datatype());
    let left = tree.left.map(|rank| Ok::<_, Error>((rank, slots()?)));
    let left = left.transpose()?;
    let right = tree.right.map(|rank| Ok::<_, Error>((rank, slots()?)));
    let right = right.transpose()?;
    // The buffer into which the left child's data are combined.
    // If there is a right child, too, its receive buffer (slot) is used instead.
    let mine = match (&left, &right, tree.parent) {
        (Some(_), None, Some(_)) => Some(slots()?),
        _ => None,
    };

    let begin = |s: usize| {
        let come = |side: &Option<(u32, Slots)>| {
            let (rank, slots) = side.as_ref()?;
            let piece = pieces.get(s)?;
            Some(invocation.irecv(&slots.of(s, piece), *rank))
        };
        [come(&left), come(&right)]
    };
    let mut coming = begin(0);
    let mut going: [Option<Pending>; DEPTH] = Default::default();
    for (s, piece) in pieces.iter().enumerate() {
        // The receive of the next segment uses the slot from which a segment was sent two segments ago.
        // So that send must complete first.
        if let Some(sent) = going[(s + 1) % DEPTH].take() {
            sent.await?;
        }
        let arriving = std::mem::replace(&mut coming, begin(s + 1));
        for message in arriving.into_iter().flatten() {
            message.await?;
        }
        let own = own.slice(piece.clone());
        let at_root = recv.filter(|_| tree.parent.is_none());
        let at_root = at_root.map(|recv| recv.slice(piece.clone()));
        let mut result = own.clone();
        if let Some((_, slots)) = &right {
            let sum = slots.of(s, piece);
            combine(op, &own, &sum)?;
            result = sum.as_send();
        }
        if let Some((_, slots)) = &left {
            let sum = match (&right, &mine, &at_root) {
                (Some((_, slots)), ..) => slots.of(s, piece),
                (None, Some(slots), _) => slots.of(s, piece),
                (None, None, Some(place)) => place.clone(),
                // Unreachable: only the root has no parent, and the root always passes `recv`.
                (None, None, None) => return Ok(()),
            };
            if sum.ptr().cast_const() != result.ptr() {
                copy(&result, &sum);
            }
            combine(op, &slots.of(s, piece).as_send(), &sum)?;
            result = sum.as_send();
        }
        match (tree.parent, at_root) {
            (Some(parent), _) => going[s % DEPTH] = Some(invocation.isend(&result, parent)),
            (None, Some(place)) if place.ptr().cast_const() != result.ptr() => {
                copy(&result, &place);
            }
            _ => {}
        }
    }
    invocation.all(going.into_iter().flatten().collect()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Named;

    #[test]
    fn segments_follow_one_another_and_cover_everything() {
        for total in 0..20 {
            for bytes in [0, 1, 4, 9, 12, i64::MAX] {
                let cut = Cut::new(total, &Named::UINT32.into(), bytes);
                let mut next = 0;
                for segment in cut.segments() {
                    assert_eq!(segment.start, next);
                    assert!(segment.end > next && segment.end - next <= cut.longest());
                    next = segment.end;
                }
                assert_eq!(next, total);
            }
        }
    }
}
