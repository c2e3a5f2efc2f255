//! Layout of a communicator's cells: their lengths, and the numbers of cells in their rings (depths).
//!
//! Long data use long cells, [`DEPTH`] per member.
//! Short data use separate short cells, which are adjacent to each other.
//! If few members wait for each other, short cells are a few cache lines apart, so that the hardware prefetch does not reach the next one.
//! The cost is that the first operations of a communicator touch two pages, or three with three or four members.
//! If no rank waits for all others ([`Flow::OneWay`]), rings of short cells are deep,
//! so that a sender may run far ahead of its receivers:
//! when ranks are oversubscribed, each wait
//! for a free cell costs context switches (docs/adr/0019-short-data-have-short-cells.md).
//!
//! Two ranks whose cores share only the last-level cache also have slices:
//! a deep ring of 8 KiB cells for pieces of long data.
//! The slices of a member are together about as long as the used part (span) of a message ring,
//! so a slice has left the other core's level 2 cache before it is used again
//! (docs/adr/0057-pieces-cycle-through-slices.md).
//!
//! All members compute the same layout from [`Sizes`], which rank 0 chooses.

use super::members::LINE;
use mpi_base::cells::{self, DEEPEST, Ring};
use mpi_base::occupancy::Occupancy;

const WORD: usize = size_of::<u64>();

/// Maximum number of operations on long data in progress;
/// there may be more [`Flow::OneWay`] operations on short data.
pub const DEPTH: u64 = 4;

/// The maximum cell size in bytes: 64 KiB of data and one cache line.
pub const LONGEST: usize = (64 << 10) + LINE;

// A member that sends its data as a message publishes a length that is greater than that of any cell.
const _: () = assert!(LONGEST < cells::LONGEST_PUBLISHED);

/// The cells of one communicator take at most 1 / `SHARE` of the shared memory left, except if their size is the minimum `SHORTEST`.
const SHARE: usize = 32;
const SHORTEST: usize = (1 << 10) + LINE;

/// The size in bytes of cells for pieces of long data.
/// Longer cells need fewer cache-line transfers to announce the pieces, but take more memory.
const PIECE: usize = (32 << 10) + LINE;

/// The size of slices in bytes: this length is the fastest for messages between cores that share only the last-level cache.
const SLICE: usize = (8 << 10) + LINE;

/// The size in bytes of cells for short data.
pub const SHORT: usize = LINE;

/// The size in bytes of cells for slightly longer data.
pub const MIDDLING: usize = (1 << 10) + LINE;

/// The distances in bytes between cells for short and for slightly longer data, if these are spaced apart.
const SHORT_APART: usize = 4 * LINE;
const MIDDLING_APART: usize = 2 << 10;

/// The maximum number of members for which requests have long cells too.
pub const FEW: u32 = 4;

/// The parameters of a layout, chosen by rank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The size in bytes of the long cells of blocking calls.
    pub cell: usize,
    /// The number of slices per member for blocking calls; zero if there are no slices.
    pub slices: u64,
}

impl Sizes {
    /// The sizes of a communicator without cells.
    pub const NONE: Sizes = Sizes { cell: 0, slices: 0 };

    /// Returns sizes with cells of `wish` bytes, rounded up to whole cache lines: at least one line, at most [`LONGEST`].
    pub fn wished(wish: usize) -> Sizes {
        Sizes {
            cell: wish.clamp(LINE, LONGEST).next_multiple_of(LINE),
            slices: 0,
        }
    }

    /// Returns true if these sizes are valid.
    pub fn are_possible(self) -> bool {
        Sizes::wished(self.cell).cell == self.cell && self.slices <= DEEPEST
    }

    /// Returns the default sizes if there is enough memory. With a core per rank, more members get shorter cells.
    ///
    /// When ranks are oversubscribed, a rank whose data fit one cell can continue before another is scheduled in.
    /// Then the two copies through a cell are faster than a single copy by the kernel,
    /// in which the lookup of the pages takes as long as the copy itself.
    /// `cycled` is the size in bytes that a member's ring of slices should have; zero if slices are not faster.
    fn fitting(members: u32, occupancy: Occupancy, cycled: usize) -> Sizes {
        let cell = match (members, occupancy) {
            (_, Occupancy::Oversubscribed) => LONGEST,
            (0..=FEW, Occupancy::Dedicated) => PIECE,
            (5..=16, Occupancy::Dedicated) => (4 << 10) + LINE,
            (_, Occupancy::Dedicated) => (1 << 10) + LINE,
        };
        // With more than two ranks, some operations cannot be divided into pieces, so there are no slices.
        let slices = match (members, occupancy) {
            (0..=2, Occupancy::Dedicated) if cycled > 0 => {
                let slices = (cycled / SLICE).next_power_of_two() as u64;
                slices.clamp(DEPTH, DEEPEST)
            }
            _ => 0,
        };
        Sizes { cell, slices }
    }

    /// Returns the default sizes for a communicator whose rank 0 has `left` bytes of shared memory left.
    ///
    /// The cells are the longest that take at most 1 / `SHARE` of `left`, but at least `SHORTEST`.
    /// So cells become shorter with each further communicator,
    /// and many communicators get cells before the first gets none.
    pub fn affordable(members: u32, occupancy: Occupancy, cycled: usize, left: usize) -> Sizes {
        let needs = |sizes: Sizes| -> usize { sizes.lens(members, occupancy).iter().sum() };
        let fits = |sizes: &Sizes| needs(*sizes) <= left / SHARE;
        let fitting = Sizes::fitting(members, occupancy, cycled);
        if fits(&fitting) {
            return fitting;
        }
        let halves =
            std::iter::successors(Some(fitting.cell), |cell| Some((cell - LINE) / 2 + LINE));
        let worthwhile = halves.take_while(|cell| *cell >= SHORTEST);
        let mut plain = worthwhile.map(|cell| Sizes { cell, slices: 0 });
        plain.find(fits).unwrap_or(Sizes {
            cell: SHORTEST.min(fitting.cell),
            slices: 0,
        })
    }

    /// Returns the number of bytes for the cells of each lane.
    pub fn lens(self, members: u32, occupancy: Occupancy) -> [usize; 2] {
        [Lane::Blocking, Lane::Nonblocking].map(|lane| self.len(lane, members, occupancy))
    }

    /// Returns the number of bytes for the cells of a lane.
    pub fn len(self, lane: Lane, members: u32, occupancy: Occupancy) -> usize {
        let Layout { rings, .. } = Layout::of(lane, self, members, occupancy);
        cells::words(members, &rings) * WORD
    }

    /// Returns the number of bytes for the rings of slices.
    pub fn len_of_slices(self, members: u32, occupancy: Occupancy) -> usize {
        let plain = Sizes { slices: 0, ..self };
        let len = |sizes: Sizes| sizes.len(Lane::Blocking, members, occupancy);
        len(self) - len(plain)
    }

    fn of_lane(self, lane: Lane, members: u32) -> Sizes {
        match lane {
            Lane::Blocking => self,
            Lane::Nonblocking => Sizes {
                cell: self.cell.min(longest_of_requests(members)),
                ..self
            },
        }
    }
}

/// Returns the maximum cell size of requests.
/// Requests are rarer than blocking calls, so with many members they get shorter cells.
///
/// With few members, a member's four cells have 128 KiB in total:
/// between two ranks, 64 KiB took 1.7 us in cells and 13.7 us in a single copy.
fn longest_of_requests(members: u32) -> usize {
    match members {
        0..=FEW => PIECE,
        _ => (8 << 10) + LINE,
    }
}

/// Returns the number of short or medium cells per member if no rank waits for all others.
///
/// Oversubscribed ranks are scheduled in any order.
/// In a series of scans, a rank that is scheduled in can continue only to the last call that its predecessor has finished.
/// So deeper rings save context switches:
/// scans of 8 bytes on 32 ranks took 0.20 switches per rank at depth 64, 0.07 at 256 and 0.04 at 512.
/// The depth is reduced if the cells would take more than `MEMORY` bytes, but not below `enough`.
pub fn depth(cell: usize, members: u32, occupancy: Occupancy) -> u64 {
    const MEMORY: usize = 4 << 20;
    let enough = match cell {
        SHORT => 64,
        _ => 32,
    };
    let row = (members as usize + 2) * cell;
    let halves = std::iter::successors(Some(DEEPEST), |depth| Some(depth / 2));
    let mut deep = halves.take_while(|depth| *depth > enough);
    let affordable = deep.find(|depth| *depth as usize * row <= MEMORY);
    match occupancy {
        Occupancy::Oversubscribed => affordable.unwrap_or(enough),
        Occupancy::Dedicated => enough,
    }
}

/// How the ranks of an operation depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// No rank completes before all ranks have arrived.
    CooperativeCopy,
    /// A rank that has sent its data does not wait for the other ranks.
    OneWay,
}

/// A set of cells, used by one kind of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// The cells of blocking calls: a rank that begins one has finished all earlier ones.
    Blocking,
    /// The cells of requests: several may be in progress, and they complete in any order.
    Nonblocking,
}

/// The number of rings among which an operation chooses.
pub const RINGS: usize = 4;

/// The index of the ring of slices among these [`RINGS`] choices.
pub const SLICES: usize = 2;

/// The rings of a lane.
pub struct Layout {
    /// The rings of the lane; the ring of slices is the last one, if the lane has slices.
    pub rings: Vec<Ring>,
    /// For each [`Flow`], the rings from the shortest cells to the longest:
    /// the index in `rings`, and the number of bytes of a cell that an operation may use.
    pub choices: [[(usize, usize); RINGS]; 2],
}

impl Layout {
    /// Computes the layout of a lane.
    pub fn of(lane: Lane, sizes: Sizes, members: u32, occupancy: Occupancy) -> Layout {
        let Sizes { cell, slices } = sizes.of_lane(lane, members);
        let longest = cell;
        // Rings for requests are not deep:
        // requests may complete in any order, but a rank that works for all ranks
        // must know that no rank still reads an earlier result.
        let is_deep = lane == Lane::Blocking && longest > MIDDLING;
        let mut rings = Vec::new();
        let mut choices = [Flow::CooperativeCopy, Flow::OneWay].map(|flow| {
            let deep = |cell| match flow {
                Flow::OneWay if is_deep => depth(cell, members, occupancy),
                _ => DEPTH,
            };
            // Cell size in bytes, depth of the ring, and bytes of a cell that an operation may use.
            // Requests have the same limits, but seldom use pieces.
            let of = [
                (SHORT, deep(SHORT), SHORT),
                (MIDDLING, deep(MIDDLING), MIDDLING),
                match slices {
                    0 => (longest, DEPTH, longest),
                    _ => (longest, DEPTH, SLICE),
                },
                (longest, DEPTH, longest),
            ];
            // With few members, the prefetch beyond one member's cell reaches the cell
            // that the next member is writing, so short cells are spaced apart.
            // Measured on two ranks with 1 KiB: allreduce took 0.178 us with adjacent cells and 0.168 us with cells apart;
            // allgather 0.179 and 0.171 us.
            // Measured on 60 oversubscribed ranks with 8 bytes:
            // allgather took 77 us with adjacent cells and 100 us with cells apart; alltoall 79 and 125 us.
            // The distance need only exceed the reach of the prefetch.
            // At the distance of long cells, each short cell would be in a page of its own.
            let apart = flow == Flow::CooperativeCopy && members <= FEW;
            of.map(|(length, depth, most)| {
                let cell = match (apart, length) {
                    (true, SHORT) => SHORT_APART.min(longest),
                    (true, MIDDLING) => MIDDLING_APART.min(longest),
                    _ => length.min(longest),
                };
                let ring = Ring { cell, depth };
                let known = rings.iter().position(|known| *known == ring);
                let index = known.unwrap_or_else(|| {
                    rings.push(ring);
                    rings.len() - 1
                });
                // Cells that are spaced apart are longer than short data, so an operation may use only `most` bytes of them.
                (index, cell.min(most))
            })
        });
        if lane == Lane::Blocking && slices > 0 {
            for of_flow in &mut choices {
                of_flow[SLICES].0 = rings.len();
            }
            rings.push(Ring {
                cell: SLICE,
                depth: slices,
            });
        }
        Layout { rings, choices }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_few_cooperating_members_are_spaced_apart_and_others_fit_their_data() {
        let shortest = |members, flow| {
            let sizes = Sizes::wished(LONGEST);
            let layout = Layout::of(Lane::Blocking, sizes, members, Occupancy::Oversubscribed);
            let (ring, _) = layout.choices[flow as usize][0];
            layout.rings[ring].cell
        };
        assert_eq!(shortest(FEW, Flow::CooperativeCopy), SHORT_APART);
        assert_eq!(shortest(FEW + 1, Flow::CooperativeCopy), SHORT);
        for members in [2, 60] {
            assert_eq!(shortest(members, Flow::OneWay), SHORT);
        }
    }

    #[test]
    fn the_first_operations_of_few_members_are_in_three_pages() {
        for occupancy in [Occupancy::Dedicated, Occupancy::Oversubscribed] {
            for members in 2..=FEW {
                let sizes = Sizes::fitting(members, occupancy, 2 << 20);
                let Layout { rings, choices } =
                    Layout::of(Lane::Blocking, sizes, members, occupancy);
                let (short, _) = choices[Flow::CooperativeCopy as usize][0];
                let bytes = cells::words(members, &rings[..=short]) * WORD;
                assert!(bytes <= 3 << 12, "{members} members: {bytes} bytes");
                assert_eq!(rings[short].depth, DEPTH);
            }
        }
    }

    #[test]
    fn rings_are_as_deep_as_is_worth_their_memory() {
        for (members, occupancy, short, middling) in [
            (2, Occupancy::Dedicated, 64, 32),
            (2, Occupancy::Oversubscribed, 512, 512),
            (16, Occupancy::Oversubscribed, 512, 128),
            (60, Occupancy::Oversubscribed, 512, 32),
            (100, Occupancy::Oversubscribed, 256, 32),
            (1000, Occupancy::Oversubscribed, 64, 32),
        ] {
            let depths = [SHORT, MIDDLING].map(|cell| depth(cell, members, occupancy));
            assert_eq!(depths, [short, middling], "{members} members");
        }
    }

    /// Communicators of more than two ranks, and oversubscribed ones, have no slices.
    #[test]
    fn slices_of_two_ranks_span_what_their_caches_ask_for_and_little_memory() {
        let dedicated = |members, cycled| Sizes::fitting(members, Occupancy::Dedicated, cycled);
        assert_eq!(dedicated(2, 2 << 20).slices, 256);
        assert_eq!(dedicated(2, 16 << 20).slices, DEEPEST);
        for none in [
            dedicated(2, 0),
            dedicated(3, 2 << 20),
            Sizes::fitting(2, Occupancy::Oversubscribed, 2 << 20),
        ] {
            assert_eq!(none.slices, 0);
        }
        let lens = dedicated(2, 2 << 20).lens(2, Occupancy::Dedicated);
        assert!(lens.iter().sum::<usize>() <= 9 << 20, "{lens:?}");
        let sizes = dedicated(2, 2 << 20);
        let len = sizes.len_of_slices(2, Occupancy::Dedicated);
        assert!((6 << 20..7 << 20).contains(&len), "{len}");
        // Requests have no slices, but the same limits as blocking calls.
        let layout = |lane| Layout::of(lane, sizes, 2, Occupancy::Dedicated);
        let (blocking, requests) = (layout(Lane::Blocking), layout(Lane::Nonblocking));
        let has_slices = |layout: &Layout| layout.rings.iter().any(|ring| ring.cell == SLICE);
        assert!(has_slices(&blocking) && !has_slices(&requests));
        for layout in [blocking, requests] {
            assert_eq!(layout.choices[0][SLICES].1, SLICE);
        }
    }

    #[test]
    fn slices_are_the_first_that_scarce_memory_costs() {
        let affordable = |left| Sizes::affordable(2, Occupancy::Dedicated, 2 << 20, left);
        assert_eq!(affordable(1 << 30).slices, 256);
        let scarce = affordable(64 << 20);
        assert_eq!((scarce.slices, scarce.cell), (0, PIECE));
    }

    /// If the longest cells leave room for few communicators only, hundreds of communicators get shorter cells.
    #[test]
    fn cells_become_shorter_before_there_are_none() {
        const ARENA: usize = 1 << 30;
        let (mut left, mut cells) = (ARENA, Vec::new());
        while let Some(rest) = {
            let sizes = Sizes::affordable(60, Occupancy::Oversubscribed, 0, left);
            cells.push(sizes.cell);
            left.checked_sub(sizes.lens(60, Occupancy::Oversubscribed).iter().sum())
        } {
            left = rest;
        }
        assert!(cells.is_sorted_by(|a, b| a >= b));
        assert_eq!((cells[0], cells[cells.len() - 1]), (LONGEST, SHORTEST));
        assert!(cells.iter().all(|cell| Sizes::wished(*cell).cell == *cell));
        assert!(cells.len() > 200, "{}", cells.len());
    }
}
