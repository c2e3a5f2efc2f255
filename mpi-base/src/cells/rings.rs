//! Layout of the cells: consecutive rings of several cell lengths,
//! and the address of an operation's cells in them.
//!
//! Every address is computed from values that are the same on all members;
//! this module accesses no memory.

use super::{LINE, STEP, WORD};

/// Size of a page in bytes; module `mem` does not exist under the loom model checker.
const PAGE: usize = 4096;

/// Maximum depth of a ring: the number of operations that have cells in it at the same time.
pub const DEEPEST: u64 = 512;

/// Maximum depth of a ring whose operations may finish in any order.
/// One word has a bit for each operation in progress.
pub const DEEPEST_UNORDERED: u64 = u64::BITS as u64;

/// The initial depth of a ring. The depth grows with the number of operations up to its maximum:
/// the first access to a page costs more than all accesses to its cells,
/// and most communicators execute few operations.
/// Measured for 1 KiB from one of four ranks on two cores:
/// with an initial depth of 512, each of the first thousand operations takes 11 us.
pub const DEEP_AT_FIRST: u64 = DEEPEST_UNORDERED;

/// The initial depth of a ring with cells longer than a page; each of its cells touches new pages.
pub const LONG_AT_FIRST: u64 = 16;

/// The depth of a growing ring is the number of operations divided by this constant and rounded
/// down to a power of two.
pub const GROWTH: u64 = 16;

/// A ring of cells of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Size of a cell in bytes: a nonzero multiple of [`LINE`].
    pub cell: usize,
    /// Maximum number of operations in progress; operation k reuses the cells of k - depth.
    /// A power of two of at most [`DEEPEST`].
    pub depth: u64,
}

impl Ring {
    /// Returns the number of words of the cells of one operation:
    /// the members' cells, then the counter of arrivals and the result cell.
    fn row(&self, members: u32) -> usize {
        (members as usize + 1) * self.cell / WORD + STEP
    }

    /// Returns the initial depth of the ring.
    fn at_first(&self) -> u64 {
        let deep = match self.cell > PAGE {
            true => LONG_AT_FIRST,
            false => DEEP_AT_FIRST,
        };
        deep.min(self.depth)
    }

    fn words(&self, members: u32) -> usize {
        self.depth as usize * self.row(members)
    }

    pub(super) fn is_possible(&self) -> bool {
        let length = self.cell > 0 && self.cell.is_multiple_of(LINE);
        length && self.depth.is_power_of_two() && self.depth <= DEEPEST
    }
}

/// Selects a cell of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellOf {
    /// The cell of the member with this number, counted from 0; only that member writes it.
    Of(u32),
    /// The result cell, which follows the members' cells and the counter of arrivals.
    /// Only the member that computes the result writes this cell.
    Result,
}

impl From<u32> for CellOf {
    #[inline(always)]
    fn from(member: u32) -> CellOf {
        CellOf::Of(member)
    }
}

/// Returns the number of words of the result cell if a member's cell has `cell` words:
/// one more line, of which the counter of arrivals uses one word.
pub(super) const fn of_result(cell: usize) -> usize {
    cell + STEP - 1
}

/// The layout of one ring in memory, in words.
#[derive(Clone, Copy, Debug)]
pub struct CellRing {
    first: usize,
    /// The distance between the cells of two consecutive operations, in words.
    row: usize,
    cell: usize,
    depth: u64,
    at_first: u64,
    /// The number of the first operation at which the ring has its full depth.
    grown: u64,
}

impl CellRing {
    /// Returns the number of data bytes that a member's cell holds.
    pub fn capacity(&self) -> usize {
        (self.cell - 1) * WORD
    }

    /// Returns the number of data bytes that a member's cell of `cell` bytes holds,
    /// and the larger number that the result cell holds.
    pub const fn capacities(cell: usize) -> (usize, usize) {
        let words = cell / WORD;
        ((words - 1) * WORD, (of_result(words) - 1) * WORD)
    }

    /// Returns the same ring, `words` words after the position that [`cell_rings`] assigns.
    pub fn moved_by(self, words: usize) -> CellRing {
        CellRing {
            first: self.first + words,
            ..self
        }
    }

    /// Returns the number of operations that may be in progress at any time: the initial depth.
    pub fn depth_at_first(&self) -> u64 {
        self.at_first
    }

    /// Returns the index of the first word of operation `number`'s cells.
    #[inline(always)]
    pub(super) fn cells_of(&self, number: u64) -> usize {
        self.first + (number & (self.depth_at(number) - 1)) as usize * self.row
    }

    /// Returns the depth of the ring at operation `number`.
    #[inline(always)]
    fn depth_at(&self, number: u64) -> u64 {
        match number >= self.grown {
            true => self.depth,
            false => depth_before(number, self.at_first),
        }
    }

    /// Returns a distance: if operation `number` - distance is finished,
    /// the cells of operation `number` are free.
    ///
    /// In the first cycle after the ring has grown, the distance is the depth before the growth,
    /// because the cells were last used in a ring of that depth.
    #[inline(always)]
    fn space(&self, number: u64) -> u64 {
        let depth = self.depth_at(number);
        match number >= self.grown + depth {
            true => depth,
            false => self.depth_at(number.saturating_sub(depth)),
        }
    }

    /// Returns the distance between two members' cells, in words.
    #[inline(always)]
    pub(super) fn cell(&self) -> usize {
        self.cell
    }

    /// Returns the address of operation `number`'s cells; data and result are in this ring.
    #[inline(always)]
    pub fn address(&self, number: u64) -> CellAddress<'_> {
        let first = self.cells_of(number);
        CellAddress {
            number,
            cell_ring: self,
            first,
            ring_of_result: self,
            first_of_result: first,
        }
    }
}

/// The address of one operation's cells.
#[derive(Clone, Copy, Debug)]
pub struct CellAddress<'t> {
    pub(super) number: u64,
    pub(super) cell_ring: &'t CellRing,
    /// Index of the first word of the members' cells.
    pub(super) first: usize,
    /// The ring of the result cell. `first_of_result` is the index of the result cell's first word.
    pub(super) ring_of_result: &'t CellRing,
    pub(super) first_of_result: usize,
}

impl<'t> CellAddress<'t> {
    /// Returns the operation's number.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns a distance: if all members have finished operation number - distance,
    /// this operation's cells are free.
    #[inline(always)]
    pub(super) fn depth(&self) -> u64 {
        let space = self.cell_ring.space(self.number);
        space.min(self.ring_of_result.space(self.number))
    }

    /// Returns the address of the same operation, with its result cell in another ring.
    #[inline(always)]
    pub fn with_result(self, cell_ring: &'t CellRing) -> CellAddress<'t> {
        CellAddress {
            ring_of_result: cell_ring,
            first_of_result: cell_ring.cells_of(self.number),
            ..self
        }
    }
}

/// Returns the depth at operation `number` of a ring that has not yet reached its full depth.
#[cold]
fn depth_before(number: u64, at_first: u64) -> u64 {
    let share = (number / GROWTH).max(1);
    (1 << share.ilog2()).max(at_first)
}

/// Returns the layouts of consecutive rings in the shared words, for `members` members.
pub fn cell_rings(members: u32, rings: &[Ring]) -> Vec<CellRing> {
    let mut end = before_rings(members);
    let cell_ring = |ring: &Ring| {
        let first = end;
        end += ring.words(members);
        CellRing {
            first,
            row: ring.row(members),
            cell: ring.cell / WORD,
            depth: ring.depth,
            at_first: ring.at_first(),
            grown: match ring.depth > ring.at_first() {
                true => ring.depth * GROWTH,
                false => 0,
            },
        }
    };
    rings.iter().map(cell_ring).collect()
}

/// Returns the number of shared words that these rings need for `members` members.
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

    /// An operation has space only after all earlier operations in its cells are finished.
    #[test]
    fn what_lay_in_cells_before_is_finished_when_they_have_room_however_deep_the_ring_is_by_then() {
        let rings = [1, 4, 64, 128, 256, DEEPEST].map(|depth| Ring { cell: LINE, depth });
        let long = [4, 16, 64, 256].map(|depth| Ring {
            cell: 64 * LINE,
            depth,
        });
        for ring in rings.into_iter().chain(long) {
            let Ring { depth, .. } = ring;
            let cell_ring = &cell_rings(3, &[ring])[0];
            let mut before = std::collections::BTreeMap::new();
            for number in 1..DEEPEST * 40 {
                let finished = number.saturating_sub(cell_ring.address(number).depth());
                if let Some(last) = before.insert(cell_ring.cells_of(number), number) {
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
        let cell_ring = &cell_rings(3, &[ring])[0];
        let deep = [1, 2047, 2048, 4096, 8191, 8192].map(|number| cell_ring.depth_at(number));
        assert_eq!(deep, [64, 64, 128, 256, 256, 512]);
        let long = Ring {
            cell: 64 * LINE,
            depth: 256,
        };
        let cell_ring = &cell_rings(3, &[long])[0];
        let deep = [1, 511, 512, 1024, 4095, 4096].map(|number| cell_ring.depth_at(number));
        assert_eq!(deep, [16, 16, 32, 64, 128, 256]);
    }
}
