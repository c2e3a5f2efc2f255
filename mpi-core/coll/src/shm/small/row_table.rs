//! A row of blocks in a cell: a table with an entry for each member, then the blocks.
//!
//! The writer of a row sends one block to each member. An entry contains the end of its block, as an offset from the end of the table, and two flags:
//! * `MESSAGE`: the block is sent as a message, and no bytes of it are in the row;
//! * `MEMORY`: the row contains the block's address and length ([`Region`]), and the receiver reads the block from the writer's memory.
//!
//! If all blocks fit, they are all in the row. Otherwise, in a row for `n` members, a block longer than 1 / `n` of the space is not in the row.

use mpi_base::cma::Region;

const ENTRY: usize = size_of::<u32>();

/// Flag in an entry: the block is sent as a message.
const MESSAGE: u32 = 1 << 31;

/// Flag in an entry: the row contains the block's address and length instead of the block.
const MEMORY: u32 = 1 << 30;

const REGION: usize = 2 * size_of::<u64>();

/// The capacity of a cell for rows must be at least this multiple of the table's length.
const SPACIOUS: usize = 4;

/// Returns true if a cell of `capacity` bytes is long enough for a row of blocks for `members` members.
pub fn holds_rows(capacity: usize, members: u32) -> bool {
    capacity >= SPACIOUS * ENTRY * members as usize
}

/// Where the data of a block are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Row,
    /// In the memory of the sending rank, from which the receiver reads them.
    Memory,
    Message,
}

/// A block in a row that a receiver has looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    Data(&'a [u8]),
    Memory(Region),
    Message,
}

/// The layout of a row: which blocks are in it.
pub struct Row {
    members: usize,
    /// The maximum length in bytes of a block in the row.
    longest: usize,
    /// The minimum length in bytes of a block that is too long for the row and that its receiver reads from memory; shorter ones are sent as messages.
    memory_from: u64,
    bytes: usize,
}

impl Row {
    /// Returns the layout of a row of blocks of these lengths, in a cell of `capacity` bytes.
    ///
    /// Blocks that are too long for the row are read from memory if they have at least `memory_from` bytes.
    pub fn of(
        lens: impl Iterator<Item = usize> + Clone,
        members: u32,
        capacity: usize,
        memory_from: u64,
    ) -> Row {
        let members = members as usize;
        let space = capacity.saturating_sub(table(members));
        let all: usize = lens.clone().sum();
        let share = space / members.max(1);
        let mut row = Row {
            members,
            longest: if all <= space { space } else { share },
            // If the address and length of a block do not fit a block's share of the space, no block is read from memory.
            memory_from: if share < REGION {
                u64::MAX
            } else {
                memory_from
            },
            bytes: 0,
        };
        row.bytes = table(members) + lens.map(|len| row.taken_by(len)).sum::<usize>();
        row
    }

    /// Returns the length of the row in bytes, with the table.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns where the data of a block of `len` bytes are.
    pub fn place(&self, len: usize) -> Place {
        match () {
            () if len <= self.longest => Place::Row,
            () if len as u64 >= self.memory_from => Place::Memory,
            () => Place::Message,
        }
    }

    /// Returns the number of bytes in the row for a block of `len` bytes.
    fn taken_by(&self, len: usize) -> usize {
        match self.place(len) {
            Place::Row => len,
            Place::Memory => REGION,
            Place::Message => 0,
        }
    }

    /// Writes the table and the blocks: `pack` writes a block; `region` returns the address and length of a block that is read from memory.
    pub fn lay(
        &self,
        lens: impl Iterator<Item = usize>,
        buffer: &mut [u8],
        pack: impl Fn(usize, &mut [u8]),
        region: impl Fn(usize) -> Region,
    ) {
        let (table, blocks) = buffer.split_at_mut(table(self.members).min(buffer.len()));
        let (entries, _) = table.as_chunks_mut::<ENTRY>();
        let mut end = 0;
        for ((rank, len), entry) in lens.enumerate().zip(entries) {
            let start = end;
            end += self.taken_by(len);
            let place = self.place(len);
            if let Some(block) = blocks.get_mut(start..end)
                && !block.is_empty()
            {
                match place {
                    Place::Memory => write(region(rank), block),
                    _ => pack(rank, block),
                }
            }
            let mark = match place {
                Place::Row => 0,
                Place::Memory => MEMORY,
                Place::Message => MESSAGE,
            };
            *entry = (end as u32 | mark).to_ne_bytes();
        }
    }
}

/// Returns the length in bytes of a table; the blocks begin after it.
fn table(members: usize) -> usize {
    (members * ENTRY).next_multiple_of(size_of::<u64>())
}

fn write(region: Region, block: &mut [u8]) {
    let words = [region.address, region.len].map(u64::to_ne_bytes);
    block.copy_from_slice(words.as_flattened());
}

/// Returns the block for one member from a row that another member has written.
///
/// If an entry denotes bytes outside of the row (no member writes such an entry), the block is empty.
pub fn block_of(row: &[u8], members: usize, rank: usize) -> Found<'_> {
    let (table, blocks) = row.split_at_checked(table(members)).unwrap_or((&[], &[]));
    let (entries, _) = table.as_chunks::<ENTRY>();
    let entry = |rank: usize| entries.get(rank).map_or(0, |e| u32::from_ne_bytes(*e));
    let (end, marks) = (entry(rank) & !(MESSAGE | MEMORY), entry(rank));
    let start = rank.checked_sub(1).map_or(0, entry) & !(MESSAGE | MEMORY);
    let block = blocks.get(start as usize..end as usize).unwrap_or(&[]);
    match () {
        () if marks & MESSAGE != 0 => Found::Message,
        () if marks & MEMORY != 0 => match block.as_chunks::<{ size_of::<u64>() }>() {
            ([address, len], []) => Found::Memory(Region {
                address: u64::from_ne_bytes(*address),
                len: u64::from_ne_bytes(*len),
            }),
            _ => Found::Data(&[]),
        },
        () => Found::Data(block),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The receiver finds every block where its length requires, no row is longer than its cell, and if all blocks fit, all are in the row.
        #[test]
        fn a_reader_finds_each_block_of_a_row_or_its_place(
            lens in proptest::collection::vec(0usize..3000, 1..40),
            capacity in 700usize..70_000,
            memory_from in 0u64..4000,
        ) {
            prop_assume!(holds_rows(capacity, lens.len() as u32));
            let members = lens.len();
            let row = Row::of(lens.iter().copied(), members as u32, capacity, memory_from);
            prop_assert!(row.bytes() <= capacity);
            let mut buffer = vec![0xff; row.bytes()];
            let region = |rank: usize| Region { address: 1 + rank as u64, len: lens[rank] as u64 };
            let pack = |rank: usize, block: &mut [u8]| block.fill(rank as u8);
            row.lay(lens.iter().copied(), &mut buffer, pack, region);
            let mut elsewhere = 0;
            for (rank, len) in lens.iter().enumerate() {
                match block_of(&buffer, members, rank) {
                    Found::Data(block) => {
                        prop_assert_eq!(row.place(*len), Place::Row);
                        prop_assert_eq!(block.len(), *len);
                        prop_assert!(block.iter().all(|byte| *byte == rank as u8));
                        continue;
                    }
                    Found::Memory(found) => {
                        prop_assert!(*len as u64 >= memory_from);
                        prop_assert_eq!(found, region(rank));
                    }
                    Found::Message => prop_assert_eq!(row.place(*len), Place::Message),
                }
                elsewhere += 1;
            }
            let fits = table(members) + lens.iter().sum::<usize>() <= capacity;
            prop_assert_eq!(fits, elsewhere == 0);
        }

        /// For any bytes as a row, the reader does not panic.
        #[test]
        fn any_bytes_are_a_row(
            row in proptest::collection::vec(any::<u8>(), 0..200),
            members in 1usize..40,
        ) {
            for rank in 0..members {
                if let Found::Data(block) = block_of(&row, members, rank) {
                    prop_assert!(block.len() <= row.len());
                }
            }
        }
    }
}
