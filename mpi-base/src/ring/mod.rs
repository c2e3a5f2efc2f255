//! A lock-free ring from one process to another, for small messages.
//!
//! A message is one 64-byte *cell*: a word of control, two words of header, five words of payload.
//! An 8-byte message therefore moves one cache line and nothing else.
//! A payload of up to [`SPREAD`] bytes goes on in the cells that follow, seven words in each, whose control words carry nothing but their numbers.
//! Longer payloads lie in a byte ring beside the cells, whole and 64-byte aligned;
//! payloads that live elsewhere (pooled fragments) send a token in the first payload word.
//!
//! ```text
//! control word:  63      44 43  40 39    32 31                 0
//!                [ length ][ kind ][ number ][ sequence number ]
//! ```
//!
//! A cell is valid when its sequence number is the one the consumer expects next.
//! Cells hold nothing but control words in that place, so an old cell can never be mistaken for a new one and nothing is zeroed ahead.
//! Numbers start at 1, in memory that starts as zero.
//!
//! Where a block lies in the byte ring is not sent: it lies behind the block before, or, if one bit says so, at the ring's start.
//! The producer alone decides which, from what it knows to be consumed ([`Room`]), so it can use as little of the ring as it likes ([`Producer::set_span`]):
//! * it begins again at the start where a block would leave the part that it uses and the blocks there have been given back;
//! * and also when a `LAP` has been written and all of it has been given back.
//!
//! So only a consumer that lags behind makes the bytes spread over all of that part; otherwise few pages are ever used, and stay in the caches.
//!
//! Which side touches what: the producer alone writes cells and bytes; the consumer alone writes `consumed`,
//! a word on a line of its own that holds how many cells and how many 64-byte units it has given back.
//! The consumer writes it every quarter ring, every 96 KiB or when it finds the ring empty; the producer reads it only when it seems to have no room.
//! So in the common case the two share nothing but the message: no read-modify-write, no system call, no allocation.
//!
//! SYNC POINT `ring.cell`: the producer's store of the control word (Release) is read by the consumer (Acquire).
//! SYNC POINT `ring.consumed`: the consumer's store (Release) is read by the producer (Acquire) before it reuses what was given back.
//!
//! The protocol follows the single-producer ring of L. Lamport, "Specifying concurrent program modules" (1983),
//! with cell sequence numbers in place of a shared tail, as in UCX's and Open MPI's shared-memory transports.

mod consumer;
mod memory;
mod producer;
mod room;

#[cfg(all(test, not(loom)))]
mod tests;

pub use consumer::{Body, Consumer, Message, Polled};
pub use memory::{RingMemory, Shape};
pub use producer::{Full, Producer};

/// The longest payload in bytes that travels inside one cell.
pub const INLINE: usize = 40;

/// What each further cell of a spread message holds, in bytes.
const MORE: usize = 56;

/// The longest payload in bytes that is spread over cells.
///
/// Up to here neighbouring cells take no more lines than a cell and a block would, and the processor fetches neighbours together;
/// beyond, copying words costs more than that is worth.
pub const SPREAD: usize = INLINE + 2 * MORE;

/// The unit of the byte ring: a cache line.
const UNIT: usize = 64;

/// After how many units the producer tries to begin again at the start of the byte ring: 64 KiB.
///
/// Measured where cores share a cache, the first messages of 256 bytes after shorter ones: 0.165 -> 0.110 us, because their pages are in the cache already.
const LAP: u32 = (64 << 10) / UNIT as u32;

/// After how many units the consumer gives back what it has consumed, if it is not a quarter of the ring before: 96 KiB.
///
/// Streams both ways between cores that share a cache lost a tenth with 32 KiB.
const GIVE_BACK: u32 = (96 << 10) / UNIT as u32;

const INLINE_WORDS: usize = INLINE / 8;

const MORE_WORDS: usize = MORE / 8;

const SPREAD_WORDS: usize = SPREAD / 8;

/// How many cells follow the first one of a message of `len` bytes, at most [`SPREAD`].
#[inline(always)]
fn more_cells(len: usize) -> u32 {
    (len.saturating_sub(INLINE)).div_ceil(MORE) as u32
}

/// Where a message's payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Inline,
    /// In the byte ring, behind the block before.
    Bytes,
    /// In the byte ring, at its start.
    BytesAtStart,
    Elsewhere,
}

/// The control word of a cell, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Control {
    seq: u32,
    am: u8,
    kind: Kind,
    len: usize,
}

/// The longest length a control word can tell.
pub const MAX_LEN: usize = (1 << 20) - 1;

impl Control {
    #[inline(always)]
    fn pack(self) -> u64 {
        debug_assert!(self.len <= MAX_LEN);
        u64::from(self.seq)
            | u64::from(self.am) << 32
            | (self.kind as u64) << 40
            | (self.len as u64) << 44
    }

    /// The control word with the sequence number known to be right; `None` if no producer of ours wrote it.
    #[inline(always)]
    fn unpack(word: u64) -> Option<Control> {
        let kind = match (word >> 40) & 0xf {
            0 => Kind::Inline,
            1 => Kind::Bytes,
            2 => Kind::BytesAtStart,
            3 => Kind::Elsewhere,
            _ => return None,
        };
        Some(Control {
            seq: word as u32,
            am: (word >> 32) as u8,
            kind,
            len: (word >> 44) as usize,
        })
    }
}

/// How many units of the byte ring a block of `len` bytes takes.
#[inline(always)]
fn units_of(len: usize) -> u32 {
    len.div_ceil(UNIT) as u32
}
