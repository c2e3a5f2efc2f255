//! A lock-free ring from one process to another, for small messages.
//!
//! A message is one 64-byte *cell*: a control word, two header words, five payload words.
//! An 8-byte message therefore transfers exactly one cache line.
//! A payload of up to [`SPREAD`] bytes continues in the following cells, with seven words in each;
//! the control words of these cells contain only their sequence numbers.
//! Longer payloads are blocks in a byte ring after the cells, contiguous and 64-byte aligned.
//! If the payload is elsewhere (in a pooled fragment), the first payload word is its token.
//!
//! ```text
//! control word:  63      44 43  40 39    32 31                 0
//!                [ length ][ kind ][ number ][ sequence number ]
//! ```
//!
//! A cell is valid when its sequence number is the one that the consumer expects next.
//! The first word of a cell contains only control words,
//! so the consumer cannot mistake an old cell for a new one, and nothing is zeroed in advance.
//! Sequence numbers start at 1, in memory that is initially zero.
//!
//! The offset of a block in the byte ring is not sent:
//! a block follows the previous one or, if a bit of the control word is set, begins at the start.
//! The producer alone decides this, from the number of released units (`LapSpace`).
//! The producer can limit itself to the first part of the byte ring, the span
//! ([`Producer::set_span`]):
//! * The producer restarts at the ring's start when a block would exceed the span
//!   and the blocks at the start have been released.
//! * If the span is at most [`NEAR`] long, the producer also restarts when it has written a `LAP`
//!   and all of the `LAP` has been released.
//!
//! So more than a `LAP` of a short span is used only if the consumer lags;
//! otherwise few pages are used, and they stay in the caches that both cores share.
//! A longer span is used cyclically as a whole, for cores that share only the last cache:
//! a line that is written again has left the inner caches of the consumer's core,
//! and is not fetched from these caches.
//!
//! Ownership: only the producer writes cells and bytes; only the consumer writes `consumed`,
//! a word in its own cache line with the number of cells and of 64-byte units that it has released.
//! The consumer writes that word every quarter ring, every 96 KiB, or when it finds the ring empty.
//! The producer reads the word only when it appears to have no space.
//! So the two sides usually transfer only the message.
//! They use no read-modify-write instruction, no system call and no allocation.
//!
//! SYNC POINT `ring.cell`: the producer stores the control word with Release;
//! the consumer loads it with Acquire.
//! SYNC POINT `ring.consumed`: the consumer stores `consumed` with Release;
//! the producer loads it with Acquire before it reuses released cells and bytes.
//!
//! The protocol follows the single-producer ring of L. Lamport, "Specifying concurrent program modules" (1983),
//! with cell sequence numbers instead of a shared tail, as in UCX's and Open MPI's shared-memory transports.

mod consumer;
mod lap_space;
mod memory;
mod producer;

#[cfg(all(test, not(loom)))]
mod tests;

pub use consumer::{Body, Consumer, Message, Polled};
pub use memory::{RingMemory, Shape};
pub use producer::{Full, Producer};

/// The longest payload in bytes that fits into one cell.
pub const INLINE: usize = 40;

/// Number of payload bytes in each further cell of a spread message.
const MORE: usize = 56;

/// Maximum length in bytes of a payload that is stored in consecutive cells ("spread").
///
/// Up to this length the consecutive cells use no more lines than a cell and a block would,
/// and the processor prefetches adjacent lines.
/// For longer payloads, copying word by word costs more than that saves.
pub const SPREAD: usize = INLINE + 2 * MORE;

/// The unit of the byte ring in bytes: a cache line.
const UNIT: usize = 64;

/// Number of units after which the producer tries to restart at the start of the byte ring: 64 KiB.
///
/// Measured on cores that share a cache, for the first 256-byte messages after shorter ones: 0.110
/// instead of 0.165 us, because the pages at the start are already in the cache.
#[cfg(not(loom))]
const LAP: u32 = (64 << 10) / UNIT as u32;

/// Number of units of a lap in the models, whose rings are short.
#[cfg(loom)]
const LAP: u32 = 8;

/// Maximum length in bytes of a span that stays in the inner caches (see the module's head).
#[cfg(not(loom))]
pub const NEAR: usize = 384 << 10;

/// Maximum length in bytes of such a span in the models.
#[cfg(loom)]
pub const NEAR: usize = 2 * LAP as usize * UNIT;

/// Number of units (96 KiB) after which the consumer releases consumed units,
/// unless a quarter of the ring comes first.
///
/// With 32 KiB, bidirectional streams between cores that share a cache were slower by a tenth.
const GIVE_BACK: u32 = (96 << 10) / UNIT as u32;

const INLINE_WORDS: usize = INLINE / 8;

const MORE_WORDS: usize = MORE / 8;

const SPREAD_WORDS: usize = SPREAD / 8;

/// Returns the number of cells after the first one for `len` bytes, at most [`SPREAD`].
#[inline(always)]
fn more_cells(len: usize) -> u32 {
    (len.saturating_sub(INLINE)).div_ceil(MORE) as u32
}

/// The location of a message's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Inline,
    /// The payload is in the byte ring, after the previous block.
    Bytes,
    /// The payload is at the start of the byte ring.
    BytesAtStart,
    Elsewhere,
}

/// The decoded control word of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Control {
    seq: u32,
    am: u8,
    kind: Kind,
    len: usize,
}

/// The largest length that a control word can encode.
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

    /// Decodes a control word whose sequence number the caller has checked.
    /// Returns `None` if its kind is unknown, which a correct producer never writes.
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

/// Returns the number of units of the byte ring that a block of `len` bytes occupies.
#[inline(always)]
fn units_of(len: usize) -> u32 {
    len.div_ceil(UNIT) as u32
}
