//! What the component says: messages and their fields. All numbers are little-endian words of 64 bits.
//!
//! The first word of every header is the window's number, but for [`REPLY`].

use crate::btl::{Am, Family};
use crate::datatype::Run;
use crate::op::{Op, Predefined};

/// Data for runs of the window. Header: [window, 0]; payload: [`Runs`], then the data.
pub const PUT: Am = Family::Osc.am(0);
/// Runs of the window are wanted. Header: [window, token]; payload: position of their data in the answer, then [`Runs`].
pub const GET: Am = Family::Osc.am(1);
/// Data that were wanted. Header: [token, position]; payload: the data.
pub const REPLY: Am = Family::Osc.am(2);
/// Elements to combine. Header: [window, token, or 0 where the old ones are not wanted];
/// payload: position in the answer, operator and datatype, then [`Runs`], then the elements unless the operator reads none.
pub const ACCUMULATE: Am = Family::Osc.am(3);
/// An element to compare and replace. Header: [window, token]; payload: offset, datatype, then the element to compare with, then the new one.
pub const SWAP: Am = Family::Osc.am(4);
/// Whether everything before has been carried out. Header: [window, number].
pub const FLUSH: Am = Family::Osc.am(5);
/// It has. Header: [window, number].
pub const FLUSHED: Am = Family::Osc.am(6);
/// The target's lock is wanted. Header: [window, 1 if exclusive].
pub const LOCK: Am = Family::Osc.am(7);
/// It is granted. Header: [window, 0].
pub const GRANTED: Am = Family::Osc.am(8);
/// It is given back. Header: [window, 0].
pub const UNLOCK: Am = Family::Osc.am(9);
/// The sender has posted. Header: [window, 0].
pub const POST: Am = Family::Osc.am(10);
/// The sender has completed. Header: [window, 0].
pub const COMPLETE: Am = Family::Osc.am(11);
/// An access was refused. Header: [window, class]; payload: the token of what waits for an answer, or 0, then a sentence.
pub const REFUSED: Am = Family::Osc.am(12);

/// Bytes of a run on the wire, and of the number of runs in front of them.
pub const RUN: usize = 16;
pub const COUNT: usize = 8;

pub fn put_word(to: &mut Vec<u8>, word: u64) {
    to.extend_from_slice(&word.to_le_bytes());
}

/// Takes a word from the front.
pub fn take_word(from: &mut &[u8]) -> Option<u64> {
    let (word, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u64::from_le_bytes(*word))
}

/// Runs of a window as a message names them: number of runs, then offset and length of each.
pub struct Runs {
    runs: Vec<(u64, u64)>,
    bytes: u64,
}

impl Runs {
    /// Takes them from the front of a payload.
    pub fn take(from: &mut &[u8]) -> Option<Runs> {
        let count = usize::try_from(take_word(from)?).ok()?;
        if count > from.len() / RUN {
            return None;
        }
        let mut runs = Vec::with_capacity(count);
        let mut bytes = 0u64;
        for _ in 0..count {
            let (at, len) = (take_word(from)?, take_word(from)?);
            at.checked_add(len)?;
            bytes = bytes.checked_add(len)?;
            runs.push((at, len));
        }
        Some(Runs { runs, bytes })
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// From the lowest byte to the end of the highest.
    pub fn span(&self) -> std::ops::Range<u64> {
        let lowest = self.runs.iter().map(|(at, _)| *at).min().unwrap_or(0);
        let highest = self.runs.iter().map(|(at, len)| at + len).max();
        lowest..highest.unwrap_or(lowest)
    }

    /// Counted from `start`.
    pub fn from(&self, start: u64) -> impl Iterator<Item = Run> + '_ {
        let relative = move |(at, len): &(u64, u64)| Run::new((at - start) as i64, *len as i64);
        self.runs.iter().map(relative)
    }
}

/// What one message is about: runs that hold packed bytes from `position` on.
pub struct Piece {
    pub position: u64,
    pub bytes: usize,
    pub runs: Vec<u8>,
}

/// Cuts runs into pieces of whole elements of `size` bytes, none of which, with its runs, is longer than `budget`.
pub fn pieces(
    runs: impl Iterator<Item = Run>,
    at: u64,
    size: usize,
    budget: usize,
    mut emit: impl FnMut(Piece) -> Result<(), crate::Error>,
) -> Result<(), crate::Error> {
    let mut position = 0u64;
    let (mut bytes, mut count) = (0usize, 0usize);
    let mut list = Vec::new();
    let mut close = |list: &mut Vec<u8>, bytes: &mut usize, count: &mut usize| {
        let mut words = Vec::with_capacity(COUNT + list.len());
        put_word(&mut words, *count as u64);
        words.append(list);
        let piece = Piece {
            position,
            bytes: *bytes,
            runs: words,
        };
        position += *bytes as u64;
        (*bytes, *count) = (0, 0);
        emit(piece)
    };
    for run in runs {
        let (mut offset, mut left) = (at.wrapping_add_signed(run.offset), run.len as usize);
        while left > 0 {
            let used = COUNT + count * RUN + bytes;
            let inside = bytes % size;
            if inside == 0 && bytes > 0 && used + RUN + size > budget {
                close(&mut list, &mut bytes, &mut count)?;
                continue;
            }
            let room = budget.saturating_sub(used + RUN).max(size - inside);
            let mut take = left.min(room);
            if take < left {
                let end = (bytes + take) / size * size;
                take = match end > bytes {
                    true => end - bytes,
                    false => left.min(size - inside),
                };
            }
            put_word(&mut list, offset);
            put_word(&mut list, take as u64);
            count += 1;
            bytes += take;
            offset = offset.wrapping_add(take as u64);
            left -= take;
        }
    }
    match count {
        0 => Ok(()),
        _ => close(&mut list, &mut bytes, &mut count),
    }
}

/// An operator and a datatype in one word.
pub fn operation(op: Predefined, handle: u32) -> u64 {
    (op as u64) << 32 | u64::from(handle)
}

/// Both, if there are any of these numbers.
pub fn read_operation(word: u64) -> Option<(Predefined, usize)> {
    match Op::predefined((word >> 32) as usize)? {
        Op::Predefined(op) => Some((op, word as u32 as usize)),
        Op::User(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_are_short_whole_and_in_order(
            lens in proptest::collection::vec(1i64..40, 1..60),
            size in 1usize..9,
            budget in 80usize..400,
        ) {
            // Runs of whole elements, one behind the other with holes.
            let mut offset = 5;
            let runs: Vec<Run> = lens.iter().map(|len| {
                let run = Run::new(offset, len * size as i64);
                offset += run.len + 3;
                run
            }).collect();
            let total: i64 = runs.iter().map(|run| run.len).sum();
            let mut next = 0;
            let mut covered = Vec::new();
            pieces(runs.iter().copied(), 1000, size, budget, |piece| {
                assert_eq!(piece.position, next);
                assert_eq!(piece.bytes % size, 0);
                assert!(piece.runs.len() + piece.bytes <= budget);
                next += piece.bytes as u64;
                let mut list = &piece.runs[..];
                let read = Runs::take(&mut list).unwrap();
                assert!(list.is_empty() && read.bytes() == piece.bytes as u64);
                covered.extend(read.from(1000).flat_map(|run| run.offset..run.offset + run.len));
                Ok(())
            }).unwrap();
            prop_assert_eq!(next, total as u64);
            let expected: Vec<i64> = runs.iter().flat_map(|run| run.offset..run.offset + run.len).collect();
            prop_assert_eq!(covered, expected);
        }

        #[test]
        fn whatever_comes_is_read_or_refused(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut rest = &payload[..];
            if let Some(runs) = Runs::take(&mut rest) {
                let span = runs.span();
                prop_assert!(span.start <= span.end);
            }
        }
    }
}
