//! Where an operation's cells lie: rings of cells of several lengths, one behind the other, and an operation's spot in them.
//!
//! All of this follows from numbers that the members know alike; nothing here looks at memory.

use super::{LINE, STEP, WORD};

/// The deepest ring.
pub const DEEPEST: u64 = 512;

/// So deep may those be whose operations end in any order: one word has a bit for each that is under way.
pub const DEEPEST_UNORDERED: u64 = u64::BITS as u64;

/// So deep a ring is at first. It grows as operations are made, up to its depth: pages that are looked at for the first time cost
/// more than what is read and written there, and most communicators make few operations.
/// 1 KiB from one of four ranks on two cores, the first thousand times: 11 us where a ring has 512 at once.
pub const DEEP_AT_FIRST: u64 = DEEPEST_UNORDERED;

/// A ring that grows is as deep as the number of operations that have been made divided by this, rounded down to a power of two.
pub const GROWTH: u64 = 16;

/// Cells of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Bytes of a cell: a multiple of [`LINE`] and not zero.
    pub cell: usize,
    /// How many operations may be under way before their cells are used again: a power of two, [`DEEPEST`] at most.
    pub depth: u64,
}

impl Ring {
    /// The words of the cells of one operation: the members', and the result's with its arrivals in front.
    fn row(&self, members: u32) -> usize {
        (members as usize + 1) * self.cell / WORD + STEP
    }

    fn words(&self, members: u32) -> usize {
        self.depth as usize * self.row(members)
    }

    pub(super) fn is_possible(&self) -> bool {
        let length = self.cell > 0 && self.cell.is_multiple_of(LINE);
        length && self.depth.is_power_of_two() && self.depth <= DEEPEST
    }
}

/// Whose cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The cell that only the member of this number writes; members are counted from 0.
    Of(u32),
    /// The cell behind all members', with the arrivals in front; the member that has the result puts it there.
    Result,
}

impl From<u32> for Place {
    #[inline(always)]
    fn from(member: u32) -> Place {
        Place::Of(member)
    }
}

/// The words of a result's cell, where a member's has so many: the arrivals have a line more, of which they need a word.
pub(super) const fn of_result(cell: usize) -> usize {
    cell + STEP - 1
}

/// A ring's place in memory, in words.
#[derive(Clone, Copy, Debug)]
pub struct Track {
    first: usize,
    /// From one operation's cells to the next.
    row: usize,
    cell: usize,
    depth: u64,
    /// The first operation for which it is so deep.
    grown: u64,
}

impl Track {
    /// How many bytes a member can show.
    pub fn capacity(&self) -> usize {
        (self.cell - 1) * WORD
    }

    /// How many bytes the result can have: some more.
    pub fn capacity_of_result(&self) -> usize {
        (of_result(self.cell) - 1) * WORD
    }

    /// Where the cells of an operation of this number begin, in words.
    #[inline(always)]
    pub(super) fn cells_of(&self, number: u64) -> usize {
        self.first + (number & (self.depth_at(number) - 1)) as usize * self.row
    }

    /// How deep the ring is for an operation.
    #[inline(always)]
    fn depth_at(&self, number: u64) -> u64 {
        match number >= self.grown {
            true => self.depth,
            false => depth_before(number),
        }
    }

    /// The cells of an operation are free when all members have finished the one so far before.
    ///
    /// In the first round after the ring has grown the last operation in the same cells is as far before as it was deep until then.
    #[inline(always)]
    fn room(&self, number: u64) -> u64 {
        let depth = self.depth_at(number);
        match number >= self.grown + depth {
            true => depth,
            false => self.depth_at(number.saturating_sub(depth)),
        }
    }

    /// From one member's cell to the next one's, in words.
    #[inline(always)]
    pub(super) fn cell(&self) -> usize {
        self.cell
    }

    /// Where the data of an operation lie that uses this ring.
    #[inline(always)]
    pub fn spot(&self, number: u64) -> Spot<'_> {
        let first = self.cells_of(number);
        Spot {
            number,
            track: self,
            first,
            track_of_result: self,
            first_of_result: first,
        }
    }
}

/// Where the data of an operation lie.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'t> {
    pub(super) number: u64,
    pub(super) track: &'t Track,
    /// The first of the members' cells, in words.
    pub(super) first: usize,
    /// The same where the result lies.
    pub(super) track_of_result: &'t Track,
    pub(super) first_of_result: usize,
}

impl<'t> Spot<'t> {
    /// Which operation it is.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The cells are free when all have finished the operation so far before.
    #[inline(always)]
    pub(super) fn depth(&self) -> u64 {
        let room = self.track.room(self.number);
        room.min(self.track_of_result.room(self.number))
    }

    /// The same operation, whose result lies in this ring.
    #[inline(always)]
    pub fn with_result(self, track: &'t Track) -> Spot<'t> {
        Spot {
            track_of_result: track,
            first_of_result: track.cells_of(self.number),
            ..self
        }
    }
}

/// The depth of a ring that has not grown to its own.
#[cold]
fn depth_before(number: u64) -> u64 {
    let share = (number / GROWTH).max(1);
    (1 << share.ilog2()).max(DEEP_AT_FIRST)
}

/// Where these rings lie in the memory of so many members' cells.
pub fn tracks(members: u32, rings: &[Ring]) -> Vec<Track> {
    let mut end = before_rings(members);
    let track = |ring: &Ring| {
        let first = end;
        end += ring.words(members);
        Track {
            first,
            row: ring.row(members),
            cell: ring.cell / WORD,
            depth: ring.depth,
            grown: match ring.depth > DEEP_AT_FIRST {
                true => ring.depth * GROWTH,
                false => 0,
            },
        }
    };
    rings.iter().map(track).collect()
}

/// The words that these rings need for so many members.
pub fn words(members: u32, rings: &[Ring]) -> usize {
    let of_rings: usize = rings.iter().map(|ring| ring.words(members)).sum();
    before_rings(members) + of_rings
}

fn before_rings(members: u32) -> usize {
    (1 + members as usize) * STEP
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// No operation waits for less than the end of all others that have used its cells.
    #[test]
    fn what_lay_in_cells_before_is_finished_when_they_have_room_however_deep_the_ring_is_by_then() {
        for depth in [1, 4, 64, 128, 256, DEEPEST] {
            let ring = Ring { cell: LINE, depth };
            let track = &tracks(3, &[ring])[0];
            let mut before = std::collections::BTreeMap::new();
            for number in 1..DEEPEST * 40 {
                let finished = number.saturating_sub(track.spot(number).depth());
                if let Some(last) = before.insert(track.cells_of(number), number) {
                    assert!(last <= finished, "depth {depth}: {last} before {number}");
                }
            }
            assert_eq!(before.len() as u64, depth);
        }
    }

    #[test]
    fn a_ring_grows_with_what_is_made_of_it() {
        let ring = Ring {
            cell: LINE,
            depth: DEEPEST,
        };
        let track = &tracks(3, &[ring])[0];
        let deep = [1, 2047, 2048, 4096, 8191, 8192].map(|number| track.depth_at(number));
        assert_eq!(deep, [64, 64, 128, 256, 256, 512]);
    }
}
