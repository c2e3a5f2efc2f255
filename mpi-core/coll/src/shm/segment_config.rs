//! The config blob of `shm`: the offset of rank 0's segment, and the segment's parameters.

use super::barrier::Kind;
use super::layout::Sizes;
use super::params::LongWay;
use mpi_base::node::ShmOffset;
use mpi_base::occupancy::Occupancy;

/// Bit position of the number of slices in the word that contains the cell size and this number.
const SLICES: u32 = 32;

/// The contents of the config blob; an empty blob means that there is no segment.
pub(super) struct SegmentConfig {
    pub(super) place: ShmOffset,
    pub(super) kind: Kind,
    pub(super) occupancy: Occupancy,
    /// The sizes of the cells; the cell size is zero if there are no cells.
    pub(super) sizes: Sizes,
    pub(super) single_copy_from: u64,
    pub(super) pieces_up_to: u64,
    pub(super) long_way: LongWay,
    pub(super) reproducible: bool,
}

impl SegmentConfig {
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        let words = [
            self.place.0,
            self.kind as u64,
            self.occupancy as u64,
            // Both sizes are in one word, because with one more word
            // the message would not fit a cell of the transport's ring.
            self.sizes.cell as u64 | self.sizes.slices << SLICES,
            self.single_copy_from,
            self.pieces_up_to,
            self.long_way.number(),
            self.reproducible.into(),
        ];
        to.extend(words.into_iter().flat_map(u64::to_le_bytes));
    }

    pub(super) fn read(config: &[u8]) -> Option<SegmentConfig> {
        let mut words = config.as_chunks().0.iter().map(|w| u64::from_le_bytes(*w));
        Some(SegmentConfig {
            place: ShmOffset(words.next()?),
            kind: Kind::from_number(words.next()?)?,
            occupancy: Occupancy::from_number(words.next()?)?,
            sizes: words.next().map(|word| Sizes {
                cell: (word % (1 << SLICES)) as usize,
                slices: word >> SLICES,
            })?,
            single_copy_from: words.next()?,
            pieces_up_to: words.next()?,
            long_way: LongWay::from_number(words.next()?)?,
            reproducible: words.next()? != 0,
        })
    }
}
