//! The layout of a node's segment.
//!
//! ```text
//! header | control page of each rank | ring of each ordered pair | private area of each rank
//!                                                                  [ fragment states | fragments | arena ]
//! ```
//!
//! Every offset is computed from [`Sizes`] and the number of ranks.
//! The segment contains these numbers and no pointers.
//! Rings to the same receiver are adjacent.
//! Memory is allocated on first access, so rings between ranks that never communicate use none.

use crate::caches::Caches;
use crate::mem::PAGE;
use crate::ring::{NEAR, Shape};

/// The sizes of the parts of a node's segment.
/// The sizes are generous, because unused parts need only addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Number of cells in each ring.
    pub ring_cells: u32,
    /// Number of bytes in each ring's byte ring.
    pub ring_bytes: u32,
    /// Number of bytes of the byte ring that senders use initially (the span).
    pub ring_span: u32,
    /// Number of pooled fragments of each rank.
    pub frags: u32,
    /// Number of bytes in a pooled fragment.
    pub frag_len: u32,
    /// Number of bytes in each rank's arena.
    pub arena_len: u64,
}

impl Sizes {
    /// Returns the sizes for `nlocal` ranks on cores with unknown caches. With few ranks, rings are long;
    /// with many ranks, rings are short, because all pairs may communicate.
    ///
    /// With few ranks a pair initially uses a part of its ring (the span).
    /// The pair uses the whole ring if a measurement shows that the whole ring is faster
    /// (`mpi-core/transport/src/btl/sm/span.rs`).
    /// The unused part needs addresses and no memory.
    ///
    /// If all pairs communicate, rings use 5 MiB for 4 ranks (13 MiB if long data between all of
    /// them use whole rings), 17 MiB for 8, 34 MiB for 32 and 56 MiB for 60.
    /// A benchmark's window of 64 messages of three cells each fits into 256 cells:
    /// a stream of 128-byte messages reached 2.4 GB/s with 128 cells and 3.4 GB/s with 256.
    pub fn for_ranks(nlocal: u32) -> Sizes {
        let (ring_cells, ring_bytes) = match nlocal {
            0..=4 => (256, 1 << 20),
            5..=FEW => (256, 256 << 10),
            9..=32 => (64, 32 << 10),
            // Cells, byte ring and the consumer's line fill four pages exactly.
            _ => (32, (16 << 10) - (32 * 64) - 128),
        };
        Sizes {
            ring_cells,
            ring_bytes,
            ring_span: ring_bytes.min(NEAR as u32),
            frags: 64,
            frag_len: 32 << 10,
            arena_len: 1 << 30,
        }
    }

    /// Returns the sizes for `nlocal` ranks on the processors that this process may use.
    pub fn for_this_machine(nlocal: u32) -> Sizes {
        // With more ranks than `FEW`, no size depends on the caches,
        // and reading the kernel's cache files takes 0.1 ms.
        let caches = (2..=FEW)
            .contains(&nlocal)
            .then(|| Caches::for_ranks(nlocal));
        Sizes::for_caches(nlocal, caches.flatten())
    }

    /// Returns the sizes for `nlocal` ranks on cores with these caches.
    ///
    /// If each core has its own level 2 cache, a sender cyclically uses a span of twice that
    /// cache's size. A line that is written again has by then moved from the receiver's level 2
    /// cache to the shared level 3 cache.
    /// The spans of all rings of the node together are at most as long as the level 3 cache.
    /// A ring that is shorter than its span gets the length of the span.
    pub fn for_caches(nlocal: u32, caches: Option<Caches>) -> Sizes {
        let sizes = Sizes::for_ranks(nlocal);
        let span = caches.and_then(|caches| cycled_span(nlocal, caches));
        match span {
            Some(span) => Sizes {
                ring_bytes: sizes.ring_bytes.max(span),
                ring_span: span,
                ..sizes
            },
            None => sizes,
        }
    }
}

/// Maximum number of ranks with long rings, which can hold long data of all pairs at the same time.
const FEW: u32 = 8;

/// Maximum length in bytes of a span that [`cycled_span`] chooses, whatever the cache sizes are.
const LONGEST_SPAN: usize = 4 << 20;

/// Returns the span of each ring in bytes: twice the size of the level 2 cache, but at most
/// [`LONGEST_SPAN`] and the ring's share of the level 3 cache.
///
/// Returns `None`, so that rings have the spans of [`Sizes::for_ranks`], if cores share a level 2
/// cache, with more than [`FEW`] ranks or only one, without a level 3 cache,
/// or if the span would be at most [`NEAR`] bytes.
fn cycled_span(nlocal: u32, caches: Caches) -> Option<u32> {
    let pairs = nlocal as usize * nlocal.saturating_sub(1) as usize;
    if !caches.level_2_is_private || nlocal > FEW {
        return None;
    }
    let share = caches.level_3?.checked_div(pairs)? / GRAIN * GRAIN;
    let span = (2 * caches.level_2).min(share).min(LONGEST_SPAN);
    u32::try_from(span).ok().filter(|_| span > NEAR)
}

/// Spans are multiples of this number of bytes (64 KiB).
const GRAIN: usize = 64 << 10;

/// Maximum number of ranks on one node.
pub const MAX_LOCAL: u32 = crate::bitmap::BITS as u32;

/// Distance between two fragment state words in bytes:
/// two cache lines, because the words have different readers.
pub(super) const FRAG_STATE: usize = 128;

/// The checked layout of one segment; every offset in it is less than `total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of ranks that share the segment, from 1 to [`MAX_LOCAL`].
    pub nlocal: u32,
    /// The sizes of the parts, as stored in the segment's header.
    pub sizes: Sizes,
    /// The size of every ring ([`Sizes::ring_cells`] and [`Sizes::ring_bytes`]), checked.
    pub ring_shape: Shape,
    ring_stride: usize,
    rings_at: usize,
    areas_at: usize,
    area_len: usize,
    frags_at: usize,
    arena_at: usize,
    total: usize,
}

impl Layout {
    /// Computes the layout; `None` if a number is out of range or the total exceeds 2^46 bytes.
    pub fn new(nlocal: u32, sizes: Sizes) -> Option<Layout> {
        if nlocal == 0 || nlocal > MAX_LOCAL {
            return None;
        }
        let ring_shape = Shape::new(sizes.ring_cells, sizes.ring_bytes)?;
        let n = nlocal as usize;
        let frag_ok = (64..=crate::ring::MAX_LEN).contains(&(sizes.frag_len as usize))
            && sizes.frag_len.is_multiple_of(64)
            && sizes.frags <= 1 << 16;
        if !frag_ok {
            return None;
        }
        let page = |bytes: usize| bytes.checked_next_multiple_of(PAGE);
        let rings_at = PAGE * (1 + n);
        let ring_stride = page(ring_shape.footprint())?;
        let areas_at = n
            .checked_mul(n)?
            .checked_mul(ring_stride)?
            .checked_add(rings_at)?;
        let frags_at = page(sizes.frags as usize * FRAG_STATE)?;
        let arena_at = page(frags_at + sizes.frags as usize * sizes.frag_len as usize)?;
        let area_len = page(arena_at.checked_add(usize::try_from(sizes.arena_len).ok()?)?)?;
        let total = area_len.checked_mul(n)?.checked_add(areas_at)?;
        // Linux gives a process 47 bits of addresses;
        // half of that is more than this library ever needs.
        (total < 1 << 46).then_some(Layout {
            nlocal,
            sizes,
            ring_shape,
            ring_stride,
            rings_at,
            areas_at,
            area_len,
            frags_at,
            arena_at,
            total,
        })
    }

    /// Returns the length of the node's file without the annex, in bytes;
    /// most of it is never accessed.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns the length of the public part (header and control pages) in bytes.
    pub fn public_len(&self) -> usize {
        self.rings_at
    }

    pub(super) fn control(&self, rank: u32) -> usize {
        PAGE * (1 + rank as usize)
    }

    pub(super) fn ring(&self, from: u32, to: u32) -> usize {
        self.rings_at + (to as usize * self.nlocal as usize + from as usize) * self.ring_stride
    }

    fn area(&self, rank: u32) -> usize {
        self.areas_at + rank as usize * self.area_len
    }

    pub(super) fn frag_state(&self, rank: u32, frag: u32) -> usize {
        self.area(rank) + frag as usize * FRAG_STATE
    }

    pub(super) fn frag(&self, rank: u32, frag: u32) -> usize {
        self.area(rank) + self.frags_at + frag as usize * self.sizes.frag_len as usize
    }

    pub(super) fn arena(&self, rank: u32) -> usize {
        self.area(rank) + self.arena_at
    }

    pub(super) fn arena_len(&self) -> usize {
        self.area_len - self.arena_at
    }

    /// Returns the rank whose arena contains all of the `len` bytes at `offset`, if any.
    pub(super) fn owner(&self, offset: usize, len: usize) -> Option<u32> {
        let into = offset.checked_sub(self.areas_at)?;
        let rank = u32::try_from(into / self.area_len).ok()?;
        let in_area = into % self.area_len;
        let inside = in_area >= self.arena_at && in_area.checked_add(len)? <= self.area_len;
        (rank < self.nlocal && inside).then_some(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_ring_among_sixty_ranks_fills_four_pages() {
        let layout = Layout::new(60, Sizes::for_ranks(60)).unwrap();
        assert_eq!(layout.ring_stride, 4 * PAGE);
    }

    /// Caches of cores that share only their level 3 cache.
    const APART: Caches = Caches {
        level_2: 1 << 20,
        level_2_is_private: true,
        level_3: Some(32 << 20),
    };

    #[test]
    fn where_only_the_last_cache_is_shared_a_ring_has_twice_level_2() {
        let span = |nlocal, caches| Sizes::for_caches(nlocal, Some(caches)).ring_span as usize;
        assert_eq!(span(2, APART), 2 << 20);
        assert_eq!(span(4, APART), 2 << 20);
        let larger = Caches {
            level_2: 2 << 20,
            level_3: Some(64 << 20),
            ..APART
        };
        assert_eq!(span(2, larger), 4 << 20);
        // A smaller level 2 cache needs a shorter span.
        let smaller = Caches {
            level_2: 256 << 10,
            ..APART
        };
        assert_eq!(span(2, smaller), 512 << 10);
        let ring = Sizes::for_caches(2, Some(smaller)).ring_bytes;
        assert_eq!(ring, Sizes::for_ranks(2).ring_bytes);
    }

    #[test]
    fn all_rings_of_a_node_together_fit_its_last_cache_or_are_as_short_as_ever() {
        for nlocal in 2..=300 {
            let sizes = Sizes::for_caches(nlocal, Some(APART));
            let used = (nlocal * (nlocal - 1)) as usize * sizes.ring_bytes as usize;
            let fits = used <= 32 << 20 && sizes.ring_span == sizes.ring_bytes;
            assert!(fits || sizes == Sizes::for_ranks(nlocal), "{nlocal} ranks");
        }
    }

    #[test]
    fn where_cores_share_level_2_or_nothing_is_known_a_span_stays_near() {
        let shared = Caches {
            level_2_is_private: false,
            ..APART
        };
        let without_level_3 = Caches {
            level_3: None,
            ..APART
        };
        for nlocal in 1..70 {
            for caches in [None, Some(shared), Some(without_level_3)] {
                let sizes = Sizes::for_caches(nlocal, caches);
                assert_eq!(sizes, Sizes::for_ranks(nlocal));
                assert!(sizes.ring_span as usize <= NEAR);
            }
        }
    }

    proptest! {
        #[test]
        fn parts_never_overlap(n in 1u32..70, frags in 0u32..9, kib in 1u64..999) {
            let sizes = Sizes { frags, arena_len: kib << 10, ..Sizes::for_ranks(n) };
            let l = Layout::new(n, sizes).unwrap();
            let mut parts = vec![(0, PAGE)];
            for r in 0..n {
                parts.push((l.control(r), PAGE));
                parts.push((l.arena(r), l.arena_len()));
                for s in 0..n {
                    parts.push((l.ring(s, r), l.ring_shape.footprint()));
                }
                for f in 0..frags {
                    parts.push((l.frag_state(r, f), FRAG_STATE));
                    parts.push((l.frag(r, f), sizes.frag_len as usize));
                }
            }
            parts.sort_unstable();
            for two in parts.windows(2) {
                prop_assert!(two[0].0 + two[0].1 <= two[1].0);
            }
            let (at, len) = parts[parts.len() - 1];
            prop_assert!(at + len <= l.total());
        }

        #[test]
        fn only_an_arena_has_an_owner(n in 1u32..5, at in 0usize..1 << 24, len in 0usize..1 << 22) {
            let sizes = Sizes { arena_len: 1 << 20, ..Sizes::for_ranks(n) };
            let l = Layout::new(n, sizes).unwrap();
            let expected = (0..n).find(|&r| at >= l.arena(r) && at + len <= l.arena(r) + l.arena_len());
            prop_assert_eq!(l.owner(at, len), expected);
        }
    }
}
