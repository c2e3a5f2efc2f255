//! Single copy by system calls, from the sender's memory to the receiver's ([`mpi_base::cma`]).
//!
//! *Alone*: the receiver reads the whole message from the sender's memory.
//! *Together* (cooperative copy): the receiver divides the message into pieces ([`mpi_base::split_copy`]) and reads them from the front; the sender, if it helps, writes from the back.
//! Two cores copy at the same time, and each finds its half in its own cache if the same buffers are sent again.
//! In a cooperative copy only the kernel accesses the data of the other process,
//! so there are no loads and stores by either program.
//! Each piece is copied by exactly one of the two processes.
//!
//! A receiver may have up to [`OFFERS`] open cooperative copies.
//! So in a stream of messages the receiver can read the first half of the next message
//! while the sender writes the second half of the previous one.

use std::cell::Cell;
use std::ops::Range;

use mpi_base::cma;
use mpi_base::doorbell::GONE;
use mpi_base::mem::{Held, PAGE};
use mpi_base::node::{Node, NodeError};
use mpi_base::split_copy::{Helping, OFFERS, Offers};

use super::super::{
    CooperativeCopy, Endpoint, Fetched, GetError, Region, Share, SingleCopy, Target,
};

/// Single copy on this node. At the first use of each peer, the readability of its memory is tested.
pub(super) struct Cma {
    node: Node,
    peers: Vec<Cell<Readable>>,
    offers: Held<Offers>,
    /// The ID of this process's latest cooperative copy.
    number: Cell<u32>,
    /// The length of each open cooperative copy in bytes.
    lens: [Cell<usize>; OFFERS],
    helping: Held<Helping>,
}

#[derive(Clone, Copy)]
enum Readable {
    Untried,
    Yes(u32),
    No,
}

impl Cma {
    pub fn new(node: Node) -> Result<Cma, NodeError> {
        Ok(Cma {
            peers: vec![Cell::new(Readable::Untried); node.nlocal() as usize],
            offers: node.offers(node.rank())?,
            number: Cell::new(0),
            lens: Default::default(),
            helping: node.helping(node.rank())?,
            node,
        })
    }

    fn pid(&self, peer: Endpoint) -> Result<u32, GetError> {
        let readable = self.peers.get(peer.0 as usize).ok_or(GetError::PeerGone)?;
        if let Readable::Untried = readable.get() {
            readable.set(match self.node.processes().readable_pid(peer.0) {
                Some(pid) => Readable::Yes(pid),
                None => Readable::No,
            });
        }
        match readable.get() {
            Readable::Yes(pid) => Ok(pid),
            _ => Err(GetError::Forbidden),
        }
    }
}

impl SingleCopy for Cma {
    fn get(&self, peer: Endpoint, remote: &[Region], local: Target<'_>) -> Result<(), GetError> {
        let (remote, local) = (remote.iter().copied(), local.iter().copied());
        cma::read_all(remote, local, self.pid(peer)?).map_err(GetError::from)
    }

    fn together(&self) -> Option<&dyn CooperativeCopy> {
        Some(self)
    }
}

impl CooperativeCopy for Cma {
    fn offer(&self, len: usize) -> Option<u32> {
        let number = self.number.get().wrapping_add(1);
        let offered = self.offers.at(number).offer(number, Cut::of(len).pieces());
        offered.then(|| {
            self.number.set(number);
            self.lens[number as usize % OFFERS].set(len);
            number
        })
    }

    fn fetch(
        &self,
        peer: Endpoint,
        number: u32,
        remote: &[Region],
        local: Target<'_>,
        share: Share,
    ) -> Fetched {
        let cut = Cut::of(local.iter().map(|run| run.len()).sum());
        let pieces = self.offers.at(number);
        let most = match share {
            Share::Half => cut.pieces().div_ceil(2),
            Share::Rest => u16::MAX,
        };
        let mut bytes = 0;
        let result = self.pid(peer).and_then(|pid| {
            while let Some(piece) = pieces.take_front(number, most) {
                let range = cut.range(piece);
                bytes += range.len();
                cma::read_all(part(remote, range.clone()), part(local, range), pid)?;
            }
            Ok(())
        });
        if result.is_err() {
            // The receiver claims the remaining pieces even after an error, so that the sender does not copy them.
            bytes += self.close(number);
        }
        Fetched {
            bytes,
            open: pieces.is_open(number),
            result,
        }
    }

    fn close(&self, number: u32) -> usize {
        let cut = Cut::of(self.lens[number as usize % OFFERS].get());
        let pieces = self.offers.at(number);
        std::iter::from_fn(|| pieces.take_front(number, u16::MAX))
            .map(|piece| cut.range(piece).len())
            .sum()
    }

    fn help(
        &self,
        peer: Endpoint,
        number: u32,
        data: &[&[u8]],
        remote: &[Region],
    ) -> Result<usize, GetError> {
        let offers = self.node.offers(peer.0).map_err(|_| GetError::PeerGone)?;
        let pieces = offers.at(number);
        let pid = self.pid(peer)?;
        let cut = Cut::of(data.iter().map(|run| run.len()).sum());
        let mut put = 0;
        self.helping.begin(peer.0, number);
        let result = loop {
            let Some(piece) = pieces.take_back(number) else {
                break Ok(put);
            };
            let range = cut.range(piece);
            put += range.len();
            let copied = cma::write_all(part(remote, range.clone()), part(data, range), pid);
            if let Err(error) = copied {
                break Err(error.into());
            }
        };
        self.helping.end();
        result
    }

    fn is_helping(&self, peer: Endpoint, number: u32) -> bool {
        let (Ok(helping), Ok(inbox)) = (self.node.helping(peer.0), self.node.inbox(peer.0)) else {
            return false;
        };
        // A peer that died during the copy no longer writes.
        helping.is_with(self.node.rank(), number) && inbox.doorbell().wishes() & GONE == 0
    }
}

/// A contiguous segment of a process's memory.
trait Run: Copy {
    fn len(self) -> u64;

    /// Returns the subrange `range`, which must be inside the segment.
    fn cut(self, range: Range<u64>) -> Self;
}

impl Run for Region {
    fn len(self) -> u64 {
        self.len
    }

    fn cut(self, range: Range<u64>) -> Region {
        Region {
            // The address comes from the peer and may be invalid. Then the system call fails.
            address: self.address.wrapping_add(range.start),
            len: range.end - range.start,
        }
    }
}

impl<T> Run for &[T] {
    fn len(self) -> u64 {
        self.len() as u64
    }

    fn cut(self, range: Range<u64>) -> Self {
        &self[range.start as usize..range.end as usize]
    }
}

/// Returns the segments that cover the bytes `range` of the concatenation of `runs`.
fn part<R: Run>(runs: &[R], range: Range<usize>) -> impl Iterator<Item = R> {
    let (start, end) = (range.start as u64, range.end as u64);
    let places = runs.iter().scan(0_u64, |at, &run| {
        let from = *at;
        *at = from.saturating_add(run.len());
        Some((from, run))
    });
    places
        .skip_while(move |(from, run)| from.saturating_add(run.len()) <= start)
        .take_while(move |(from, _)| *from < end)
        .map(move |(from, run)| run.cut(start.saturating_sub(from)..run.len().min(end - from)))
}

/// The division of a cooperative copy into pieces; both processes compute it from the length only.
#[derive(Clone, Copy, Debug)]
struct Cut {
    len: usize,
    piece: usize,
}

/// Number of pieces by message length: `(below, pieces)`, with `below` in bytes.
/// Longer messages are divided into pieces of at least [`LONGEST`] bytes.
///
/// Each piece costs a system call of about half a microsecond,
/// and if the pieces are short, a core does not find its half in its cache.
/// Measured durations in us: for 1 MiB, two pieces 36, four 36, eight 40, sixteen 44 and one piece 64; for 128 KiB, two pieces 4.9, four 6.3 and one piece 6.7.
const CUTS: &[(usize, usize)] = &[(256 << 10, 2), (4 << 20, 4)];
const LONGEST: usize = 1 << 20;

impl Cut {
    fn of(len: usize) -> Cut {
        let pieces = CUTS.iter().find(|(below, _)| len < *below);
        let piece = match pieces {
            Some((_, pieces)) => len.div_ceil(*pieces),
            None => LONGEST.max(len.div_ceil(usize::from(u16::MAX))),
        };
        Cut {
            len,
            piece: piece.next_multiple_of(PAGE).max(PAGE),
        }
    }

    fn pieces(self) -> u16 {
        // `of` chooses the length of the pieces so that their number fits into 16 bits.
        u16::try_from(self.len.div_ceil(self.piece)).unwrap_or(u16::MAX)
    }

    /// Returns the byte range of a piece; empty if the piece does not exist.
    fn range(self, piece: u16) -> Range<usize> {
        let start = (usize::from(piece) * self.piece).min(self.len);
        start..(start + self.piece).min(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_of_runs_are_the_parts_of_the_whole(
            lens in proptest::collection::vec(0usize..9, 0..9),
            start in 0usize..70,
            len in 0usize..70,
        ) {
            let whole: Vec<u8> = (0..lens.iter().sum::<usize>()).map(|i| i as u8).collect();
            let mut rest = &whole[..];
            let runs: Vec<&[u8]> = lens
                .iter()
                .map(|&len| rest.split_off(..len).unwrap_or_default())
                .collect();
            let range = start.min(whole.len())..(start + len).min(whole.len());
            let got: Vec<u8> = part(&runs, range.clone()).flatten().copied().collect();
            prop_assert_eq!(&got[..], &whole[range]);
        }

        #[test]
        fn pieces_are_the_whole_without_gaps(len in prop_oneof![0usize..1 << 20, 0usize..1 << 40]) {
            let cut = Cut::of(len);
            let pieces = cut.pieces();
            prop_assert!(usize::from(pieces) * cut.piece >= len);
            prop_assert_eq!(cut.range(0).start, 0);
            if let Some(last) = pieces.checked_sub(1) {
                prop_assert_eq!(cut.range(last).end, len);
                prop_assert!(!cut.range(last).is_empty());
            }
        }
    }
}
