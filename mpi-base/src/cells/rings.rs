//! Where an operation's cells lie: rings of cells of several lengths, one behind the other, and an operation's spot in them.
//!
//! All of this follows from numbers that the members know alike; nothing here looks at memory.

use super::{LINE, STEP, WORD};

/// The deepest ring.
pub const DEEPEST: u64 = 512;

/// So deep may those be whose operations end in any order: one word has a bit for each that is under way.
pub const DEEPEST_UNORDERED: u64 = u64::BITS as u64;

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
        self.first + (number & (self.depth - 1)) as usize * self.row
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
        self.track.depth.min(self.track_of_result.depth)
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
