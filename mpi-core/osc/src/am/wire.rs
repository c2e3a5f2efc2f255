//! The wire format of active messages: message types and their fields.
//! All numbers are little-endian 64-bit words. A run is a contiguous range of bytes.
//!
//! The first word of every header is the window's context id, except in [`REPLY`].

use crate::btl::{Am, Family};
use crate::datatype::Run;
use crate::op::{Op, Predefined};

/// Data for runs of the target's window. Header: [window, 0]; payload: [`Runs`], then the data.
pub const PUT: Am = Family::Osc.am(0);
/// Request for the data in runs of the target's window. Header: [window, token];
/// payload: position of the data in the result, then [`Runs`].
pub const GET: Am = Family::Osc.am(1);
/// Reply with requested data. Header: [token, position]; payload: the data.
pub const REPLY: Am = Family::Osc.am(2);
/// Elements to combine with the target's elements.
/// Header: [window, token]; token 0 requests no old elements.
/// Payload: position in the result, operator and datatype, then [`Runs`],
/// then the elements unless the operator reads none.
pub const ACCUMULATE: Am = Family::Osc.am(3);
/// Compare-and-swap. Header: [window, token];
/// payload: offset, datatype, element to compare with, new element.
pub const SWAP: Am = Family::Osc.am(4);
/// Request to confirm that all earlier messages have been executed.
/// Header: [window, sequence number of the flush].
pub const FLUSH: Am = Family::Osc.am(5);
/// Reply to [`FLUSH`]: all earlier messages have been executed.
/// Header: [window, sequence number of the flush].
pub const FLUSHED: Am = Family::Osc.am(6);
/// Request for the target's lock. Header: [window, 1 if exclusive].
pub const LOCK: Am = Family::Osc.am(7);
/// Grant of the target's lock. Header: [window, 0].
pub const GRANTED: Am = Family::Osc.am(8);
/// Release of the target's lock. Header: [window, 0].
pub const UNLOCK: Am = Family::Osc.am(9);
/// Notification that the sender has called `MPI_Win_post`. Header: [window, 0].
pub const POST: Am = Family::Osc.am(10);
/// Notification that the sender has called `MPI_Win_complete`. Header: [window, 0].
pub const COMPLETE: Am = Family::Osc.am(11);
/// Refusal of an access or a lock. Header: [window, error class];
/// payload: the token of the request, [`LOCK_TOKEN`] or 0, then an error text.
pub const REFUSED: Am = Family::Osc.am(12);

/// The token of a refused lock request. No fetch has this token, since fetch indices are smaller.
pub const LOCK_TOKEN: u64 = u64::MAX;

/// Encoded sizes in bytes. `RUN`: a single run; `COUNT`: the number of rows, which precedes them.
pub const RUN: usize = 16;
pub const COUNT: usize = 8;

/// Flag in the length of a row: the stride and the number of runs follow.
const SEVERAL: u64 = 1 << 63;

pub fn put_word(to: &mut Vec<u8>, word: u64) {
    to.extend_from_slice(&word.to_le_bytes());
}

/// Removes and returns the first word of a payload.
pub fn take_word(from: &mut &[u8]) -> Option<u64> {
    let (word, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u64::from_le_bytes(*word))
}

/// Runs of equal length at a constant stride that do not overlap, as in vector datatypes.
/// An encoded row of several runs takes the space of two single runs.
#[derive(Clone, Copy)]
struct Row {
    at: u64,
    len: u64,
    stride: u64,
    count: u64,
}

impl Row {
    fn single(at: u64, len: u64) -> Row {
        Row {
            at,
            len,
            stride: len,
            count: 1,
        }
    }

    /// Appends a run and returns true, if the run continues this row.
    fn extend(&mut self, at: u64, len: u64) -> bool {
        if len != self.len || at < self.at {
            return false;
        }
        let ahead = at - self.at;
        match self.count {
            1 if ahead >= len => self.stride = ahead,
            1 => return false,
            _ if self.stride.checked_mul(self.count) == Some(ahead) => {}
            _ => return false,
        }
        self.count += 1;
        true
    }

    /// Returns the number of bytes of this row on the wire.
    fn cost(&self) -> usize {
        match self.count {
            1 => RUN,
            _ => 2 * RUN,
        }
    }

    fn put(&self, to: &mut Vec<u8>) {
        put_word(to, self.at);
        match self.count {
            1 => put_word(to, self.len),
            _ => {
                put_word(to, self.len | SEVERAL);
                put_word(to, self.stride);
                put_word(to, self.count);
            }
        }
    }

    /// Decodes a row. Returns `None` if its runs overlap or its end overflows.
    fn take(from: &mut &[u8]) -> Option<Row> {
        let (at, len) = (take_word(from)?, take_word(from)?);
        let row = match len & SEVERAL {
            0 => Row::single(at, len),
            _ => Row {
                at,
                len: len & !SEVERAL,
                stride: take_word(from)?,
                count: take_word(from)?,
            },
        };
        let apart = row.count == 1 || (row.count > 1 && row.len > 0 && row.stride >= row.len);
        row.end()?;
        apart.then_some(row)
    }

    fn end(&self) -> Option<u64> {
        let last = self.stride.checked_mul(self.count.checked_sub(1)?)?;
        self.at.checked_add(last)?.checked_add(self.len)
    }
}

/// The list of runs in a message. Encoding: the number of rows, then each row.
/// A row of a single run is an offset and a length.
pub struct Runs {
    rows: Vec<Row>,
    bytes: u64,
}

impl Runs {
    /// Decodes a list of runs from the front of a payload.
    pub fn take(from: &mut &[u8]) -> Option<Runs> {
        let count = usize::try_from(take_word(from)?).ok()?;
        if count > from.len() / RUN {
            return None;
        }
        let mut rows = Vec::with_capacity(count);
        let mut bytes = 0u64;
        for _ in 0..count {
            let row = Row::take(from)?;
            bytes = bytes.checked_add(row.len.checked_mul(row.count)?)?;
            rows.push(row);
        }
        Some(Runs { rows, bytes })
    }

    /// Returns the number of rows, for [`crate::fuzz`].
    #[cfg(any(test, fuzzing))]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the range from the lowest byte to the end of the highest run.
    pub fn span(&self) -> std::ops::Range<u64> {
        let lowest = self.rows.iter().map(|row| row.at).min().unwrap_or(0);
        let highest = self.rows.iter().filter_map(Row::end).max();
        lowest..highest.unwrap_or(lowest)
    }

    /// Returns all runs, with offsets relative to `start`.
    pub fn from(&self, start: u64) -> impl Iterator<Item = Run> + '_ {
        self.rows.iter().flat_map(move |row| {
            let first = row.at - start;
            (0..row.count).map(move |i| Run::new((first + i * row.stride) as i64, row.len as i64))
        })
    }
}

/// The contents of one message: the encoded runs of `bytes` packed bytes from `position` on.
pub struct Piece {
    pub position: u64,
    pub bytes: usize,
    pub runs: Vec<u8>,
}

/// Splits runs into pieces of whole elements of `size` bytes.
/// The packed bytes and the encoded runs of a piece have at most `budget` bytes together.
pub fn pieces(
    runs: impl Iterator<Item = Run>,
    at: u64,
    size: usize,
    budget: usize,
    mut emit: impl FnMut(Piece) -> Result<(), crate::Error>,
) -> Result<(), crate::Error> {
    let mut position = 0u64;
    let (mut bytes, mut cost) = (0usize, 0usize);
    let mut rows: Vec<Row> = Vec::new();
    let mut close = |rows: &mut Vec<Row>, bytes: &mut usize, cost: &mut usize| {
        let mut words = Vec::with_capacity(COUNT + *cost);
        put_word(&mut words, rows.len() as u64);
        rows.drain(..).for_each(|row| row.put(&mut words));
        let piece = Piece {
            position,
            bytes: *bytes,
            runs: words,
        };
        position += *bytes as u64;
        (*bytes, *cost) = (0, 0);
        emit(piece)
    };
    for run in runs {
        let (mut offset, mut left) = (at.wrapping_add_signed(run.offset), run.len as usize);
        while left > 0 {
            let used = COUNT + cost + bytes;
            let inside = bytes % size;
            if inside == 0 && bytes > 0 && used + RUN + size > budget {
                close(&mut rows, &mut bytes, &mut cost)?;
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
            let before = rows.last().map_or(0, Row::cost);
            let extended = rows
                .last_mut()
                .is_some_and(|row| row.extend(offset, take as u64));
            if extended {
                cost -= before;
            } else {
                rows.push(Row::single(offset, take as u64));
            }
            cost += rows.last().map_or(0, Row::cost);
            bytes += take;
            offset = offset.wrapping_add(take as u64);
            left -= take;
        }
    }
    match rows.is_empty() {
        true => Ok(()),
        false => close(&mut rows, &mut bytes, &mut cost),
    }
}

/// Encodes an operator and a datatype handle in one word.
pub fn operation(op: Predefined, handle: u32) -> u64 {
    (op as u64) << 32 | u64::from(handle)
}

/// Decodes an operator and a datatype handle. Returns `None` if the operator is unknown.
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
            // Generates runs of whole elements, in ascending order with gaps of 3 bytes.
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
        fn what_lies_at_equal_distances_is_one_row(
            start in 0i64..100, len in 1i64..50, gap in 0i64..50, count in 2i64..400,
        ) {
            let runs = (0..count).map(|i| Run::new(start + i * (len + gap), len));
            let mut pieces_made = 0;
            pieces(runs.clone(), 0, 1, 1 << 20, |piece| {
                pieces_made += 1;
                assert_eq!(piece.runs.len(), COUNT + 2 * RUN);
                let read = Runs::take(&mut &piece.runs[..]).unwrap();
                let again: Vec<Run> = read.from(0).collect();
                assert_eq!(again, runs.clone().collect::<Vec<_>>());
                assert_eq!(read.span(), start as u64..(start + (count - 1) * (len + gap) + len) as u64);
                Ok(())
            }).unwrap();
            prop_assert_eq!(pieces_made, 1);
        }
    }
}
