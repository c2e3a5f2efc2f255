//! The memory that the processes of one job share on one node.
//!
//! One sparse memfd holds everything (see [`layout`]): a header, a control page for each rank, a ring for each ordered pair,
//! and a private area for each rank with its pooled fragments and its arena.
//! The launcher or the first process makes it with [`Node::create`]; each rank comes with [`Node::attach`],
//! whether it is a process or one of several threads of a process.
//!
//! Who touches what: a rank claims its control page once and for all, in one compare-and-swap, and by that becomes
//! the only producer of the rings from it, the only consumer of the rings to it, and the only one that hands out its arena.
//! Nothing in the segment is a pointer; every index read from it is checked against the layout before use.

mod frags;
mod layout;
#[cfg(test)]
mod tests;

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;

pub use frags::FragPool;
pub use layout::{Layout, MAX_LOCAL, Sizes};

use crate::arena::Arena;
use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::cma;
use crate::inbox::Inbox;
use crate::mem::{Held, PAGE, Segment, Shared, memfd};
use crate::ring::{Consumer, Producer, RingMemory};
use crate::state::StatePage;

const MAGIC: u64 = u64::from_le_bytes(*b"PORTCULL");
const VERSION: u32 = 1;

/// What an attaching process needs to know about the segment.
#[repr(C)]
struct Head {
    magic: AtomicU64,
    version: AtomicU32,
    nlocal: AtomicU32,
    ring_cells: AtomicU32,
    ring_bytes: AtomicU32,
    frags: AtomicU32,
    frag_len: AtomicU32,
    arena_len: AtomicU64,
}

// SAFETY: atomics only.
unsafe impl Shared for Head {}

/// The part of the segment that tells others about one rank.
#[repr(C)]
struct Control {
    inbox: Inbox,
    presence: Presence,
    state: StatePage,
}

// SAFETY: atomics only, apart from padding that nobody writes.
unsafe impl Shared for Control {}
// SAFETY: atomics only, apart from padding that nobody writes.
unsafe impl Shared for StatePage {}

const _: () = assert!(size_of::<Control>() <= PAGE && size_of::<Head>() <= PAGE);

/// Who a rank is, written by the rank when it attaches.
#[repr(C, align(128))]
struct Presence {
    /// Zero until a process has claimed the rank, then its number.
    pid: AtomicU32,
    /// Set after the fields below.
    ready: AtomicU32,
    /// Where the rank's memory holds `word`; see [`cma`].
    address: AtomicU64,
    word: AtomicU64,
}

/// Why a node could not be made or joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeError {
    Sizes {
        nlocal: u32,
    },
    Create {
        bytes: usize,
        error: Errno,
    },
    Map {
        bytes: usize,
        error: Errno,
    },
    NotANode,
    Version {
        found: u32,
    },
    NoSuchRank {
        rank: u32,
        nlocal: u32,
    },
    Claimed {
        rank: u32,
        pid: u32,
    },
    Taken {
        what: &'static str,
        from: u32,
        to: u32,
    },
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeError::Sizes { nlocal } => write!(
                f,
                "shared memory for {nlocal} ranks on one node cannot be laid out (at most {MAX_LOCAL} ranks)"
            ),
            NodeError::Create { bytes, error } => {
                write!(
                    f,
                    "a memory file of {bytes} bytes could not be made: {error}"
                )
            }
            NodeError::Map { bytes, error } => write!(
                f,
                "the node's shared memory ({bytes} bytes of addresses) could not be mapped: {error}"
            ),
            NodeError::NotANode => {
                write!(f, "the descriptor given is not a node's shared memory")
            }
            NodeError::Version { found } => write!(
                f,
                "the node's shared memory was made by another version ({found}, we are {VERSION})"
            ),
            NodeError::NoSuchRank { rank, nlocal } => {
                write!(f, "there is no local rank {rank} among {nlocal} ranks")
            }
            NodeError::Claimed { rank, pid } => {
                write!(f, "local rank {rank} is process {pid} already")
            }
            NodeError::Taken { what, from, to } => {
                write!(
                    f,
                    "the {what} of the ring from local rank {from} to {to} is in use already"
                )
            }
        }
    }
}

impl std::error::Error for NodeError {}

/// A block of shared memory as others are told of it: its place in the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShmOffset(pub u64);

/// A node's public part as a tool outside the job sees it: who is there and what each is doing.
#[derive(Debug)]
pub struct Gallery {
    segment: Arc<Segment>,
    nlocal: u32,
}

impl Gallery {
    /// Maps header and control pages only.
    pub fn open(fd: impl AsFd) -> Result<Gallery, NodeError> {
        let layout = read_head(&fd)?;
        let segment = map(&fd, layout.public_len())?;
        Ok(Gallery {
            segment,
            nlocal: layout.nlocal,
        })
    }

    pub fn nlocal(&self) -> u32 {
        self.nlocal
    }

    /// The process number of a rank, once it has attached.
    pub fn pid(&self, rank: u32) -> Option<u32> {
        let pid = self.control(rank)?.presence.pid.load(Ordering::Relaxed);
        (pid != 0).then_some(pid)
    }

    /// A rank's state page.
    pub fn state(&self, rank: u32) -> Option<&StatePage> {
        Some(&self.control(rank)?.state)
    }

    /// Tells everybody who sends to `rank` that it has died, and wakes everybody to find out.
    pub fn mark_gone(&self, rank: u32) {
        if let Some(control) = self.control(rank) {
            control.inbox.bell().leave();
        }
        for control in (0..self.nlocal).filter_map(|rank| self.control(rank)) {
            control.inbox.bell().ring();
        }
    }

    fn control(&self, rank: u32) -> Option<&Control> {
        if rank >= self.nlocal {
            return None;
        }
        self.segment.at(PAGE * (1 + rank as usize))
    }
}

/// A node's memory as one of its ranks sees it; a value that may be cloned, all clones being the same rank.
#[derive(Clone)]
pub struct Node(Arc<Attached>);

struct Attached {
    segment: Arc<Segment>,
    layout: Layout,
    rank: u32,
    inbox: Held<Inbox>,
    arena: Mutex<Arena>,
    /// Which ends of which rings are handed out, one bit for each peer: producers, consumers; then the pool.
    taken: Mutex<Taken>,
    /// The word that peers read to see whether they may read this process's memory; its address is published.
    _word: Box<AtomicU64>,
}

#[derive(Default)]
struct Taken {
    producers: Vec<bool>,
    consumers: Vec<bool>,
    frags: bool,
}

impl Node {
    /// Makes the shared memory of `nlocal` ranks, with sizes that suit the number.
    pub fn create(nlocal: u32) -> Result<OwnedFd, NodeError> {
        let mut sizes = Sizes::for_ranks(nlocal);
        // Where addresses are limited (ulimit -v), arenas shrink until all of it is a quarter of the limit.
        let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
        let share = limit.map_or(u64::MAX, |limit| limit / 4);
        while sizes.arena_len > 1 << 20 && sizes.arena_len.saturating_mul(nlocal.into()) > share {
            sizes.arena_len /= 2;
        }
        Node::create_with(nlocal, sizes)
    }

    /// Makes the shared memory of `nlocal` ranks with sizes of the caller's.
    pub fn create_with(nlocal: u32, sizes: Sizes) -> Result<OwnedFd, NodeError> {
        let layout = Layout::new(nlocal, sizes).ok_or(NodeError::Sizes { nlocal })?;
        let bytes = layout.total();
        let fd = memfd("portcullis-node", bytes as u64)
            .map_err(|error| NodeError::Create { bytes, error })?;
        let segment = map(&fd, PAGE)?;
        let head = segment.at::<Head>(0).ok_or(NodeError::NotANode)?;
        head.version.store(VERSION, Ordering::Relaxed);
        head.nlocal.store(nlocal, Ordering::Relaxed);
        head.ring_cells.store(sizes.ring_cells, Ordering::Relaxed);
        head.ring_bytes.store(sizes.ring_bytes, Ordering::Relaxed);
        head.frags.store(sizes.frags, Ordering::Relaxed);
        head.frag_len.store(sizes.frag_len, Ordering::Relaxed);
        head.arena_len.store(sizes.arena_len, Ordering::Relaxed);
        head.magic.store(MAGIC, Ordering::Release);
        Ok(fd)
    }

    /// Joins as local rank `rank`; the mapping stays when the descriptor is closed.
    pub fn attach(fd: impl AsFd, rank: u32) -> Result<Node, NodeError> {
        let layout = read_head(&fd)?;
        let nlocal = layout.nlocal;
        if rank >= nlocal {
            return Err(NodeError::NoSuchRank { rank, nlocal });
        }
        let segment = map(&fd, layout.total())?;
        let control = segment
            .at::<Control>(layout.control(rank))
            .ok_or(NodeError::NotANode)?;
        let pid = std::process::id();
        control
            .presence
            .pid
            .compare_exchange(0, pid, Ordering::Relaxed, Ordering::Relaxed)
            .map_err(|pid| NodeError::Claimed { rank, pid })?;
        let word = Box::new(AtomicU64::new(random_word(rank)));
        let address = std::ptr::from_ref(&*word).expose_provenance() as u64;
        cma::allow_peers();
        let presence = &control.presence;
        presence.address.store(address, Ordering::Relaxed);
        presence
            .word
            .store(word.load(Ordering::Relaxed), Ordering::Relaxed);
        // SYNC POINT node.ready: read by `peer_is_readable`.
        presence.ready.store(1, Ordering::Release);
        let inbox_at = layout.control(rank) + std::mem::offset_of!(Control, inbox);
        let inbox = Held::new(&segment, inbox_at).ok_or(NodeError::NotANode)?;
        let n = nlocal as usize;
        Ok(Node(Arc::new(Attached {
            inbox,
            arena: Mutex::new(Arena::new(layout.arena_len())),
            taken: Mutex::new(Taken {
                producers: vec![false; n],
                consumers: vec![false; n],
                frags: false,
            }),
            segment,
            layout,
            rank,
            _word: word,
        })))
    }

    /// Our own rank on this node.
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// How many ranks the node has, attached or not.
    pub fn nlocal(&self) -> u32 {
        self.0.layout.nlocal
    }

    /// The inbox of a rank.
    pub fn inbox(&self, rank: u32) -> Result<Held<Inbox>, NodeError> {
        self.held(rank, std::mem::offset_of!(Control, inbox))
    }

    /// Our own inbox, with the bell we sleep on.
    pub fn my_inbox(&self) -> &Held<Inbox> {
        &self.0.inbox
    }

    /// The state page of a rank; ours to write, others' to read.
    pub fn state(&self, rank: u32) -> Result<Held<StatePage>, NodeError> {
        self.held(rank, std::mem::offset_of!(Control, state))
    }

    /// The process number of a rank as this process knows it, once it has attached.
    pub fn pid(&self, rank: u32) -> Option<u32> {
        let pid = self.control(rank)?.presence.pid.load(Ordering::Relaxed);
        (pid != 0).then_some(pid)
    }

    /// The process number of a rank if its memory can really be read from here, tried now.
    pub fn readable_pid(&self, rank: u32) -> Option<u32> {
        let presence = &self.control(rank)?.presence;
        // SYNC POINT node.ready
        if presence.ready.load(Ordering::Acquire) == 0 {
            return None;
        }
        let pid = presence.pid.load(Ordering::Relaxed);
        let address = presence.address.load(Ordering::Relaxed);
        let word = presence.word.load(Ordering::Relaxed);
        cma::probe(pid, address, word).then_some(pid)
    }

    /// The writing end of the ring to `to`; handed out once.
    pub fn producer(&self, to: u32) -> Result<Producer, NodeError> {
        self.end(self.rank(), to, "writing end", |taken| &mut taken.producers)
            // SAFETY: our claim on the rank and the mark in `taken` make it the only one.
            .map(|memory| unsafe { Producer::new(memory) })
    }

    /// The reading end of the ring from `from`; handed out once.
    pub fn consumer(&self, from: u32) -> Result<Consumer, NodeError> {
        self.end(from, self.rank(), "reading end", |taken| {
            &mut taken.consumers
        })
        // SAFETY: our claim on the rank and the mark in `taken` make it the only one.
        .map(|memory| unsafe { Consumer::new(memory) })
    }

    /// Our pool of fragments; handed out once.
    pub fn frags(&self) -> Result<FragPool, NodeError> {
        let rank = self.rank();
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut taken.frags, true) {
            return Err(NodeError::Taken {
                what: "fragment pool",
                from: rank,
                to: rank,
            });
        }
        Ok(FragPool::new(
            Arc::clone(&self.0.segment),
            self.0.layout,
            rank,
        ))
    }

    /// Shows a fragment of `owner`'s pool to `f` and gives it back; `None` if `token` and `len` name none.
    #[inline]
    pub fn read_frag<R>(
        &self,
        owner: u32,
        token: u64,
        len: usize,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        frags::read(&self.0.segment, &self.0.layout, owner, token, len, f)
    }

    /// Takes zeroed memory from our arena for others to see; `None` if there is none of that length.
    pub fn alloc(&self, len: usize, align: usize) -> Option<ShmBlock> {
        if !align.is_power_of_two() {
            return None;
        }
        let at = self.arena().take(len, align)?;
        Some(ShmBlock {
            node: self.clone(),
            at,
            len,
            kept: false,
        })
    }

    /// The address here of a block that its owner named by its place, if it is inside somebody's arena.
    pub fn resolve(&self, place: ShmOffset, len: usize) -> Option<*mut u8> {
        let at = usize::try_from(place.0).ok()?;
        self.0.layout.owner(at, len)?;
        Some(self.0.segment.range(at, len)?.as_ptr())
    }

    /// `count` shared values in a block that its owner named by its place, if they are inside somebody's arena.
    ///
    /// Whoever uses a block this way must not use the same bytes through [`Node::resolve`] at the same time.
    pub fn shared<T: Shared>(&self, place: ShmOffset, count: usize) -> Option<&[T]> {
        let at = usize::try_from(place.0).ok()?;
        self.0
            .layout
            .owner(at, size_of::<T>().checked_mul(count)?)?;
        self.0.segment.slice(at, count)
    }

    /// Like [`Node::shared`] for one value, kept together with the node's memory.
    pub fn hold<T: Shared>(&self, place: ShmOffset) -> Option<Held<T>> {
        let at = usize::try_from(place.0).ok()?;
        self.0.layout.owner(at, size_of::<T>())?;
        Held::new(&self.0.segment, at)
    }

    fn arena(&self) -> std::sync::MutexGuard<'_, Arena> {
        self.0.arena.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn control(&self, rank: u32) -> Option<&Control> {
        if rank >= self.nlocal() {
            return None;
        }
        self.0.segment.at(self.0.layout.control(rank))
    }

    fn held<T: Shared>(&self, rank: u32, field: usize) -> Result<Held<T>, NodeError> {
        let nlocal = self.nlocal();
        let no_such = NodeError::NoSuchRank { rank, nlocal };
        if rank >= nlocal {
            return Err(no_such);
        }
        Held::new(&self.0.segment, self.0.layout.control(rank) + field).ok_or(no_such)
    }

    fn end(
        &self,
        from: u32,
        to: u32,
        what: &'static str,
        ends: impl FnOnce(&mut Taken) -> &mut Vec<bool>,
    ) -> Result<RingMemory, NodeError> {
        let me = self.rank();
        let peer = if from == me { to } else { from };
        let nlocal = self.nlocal();
        let no_such = NodeError::NoSuchRank { rank: peer, nlocal };
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let end = ends(&mut taken)
            .get_mut(peer as usize)
            .ok_or(no_such.clone())?;
        if std::mem::replace(end, true) {
            return Err(NodeError::Taken { what, from, to });
        }
        let shape = self.0.layout.ring_shape;
        let base = self
            .0
            .segment
            .range(self.0.layout.ring(from, to), shape.footprint())
            .ok_or(no_such)?;
        // SAFETY: page-aligned, inside the segment that the Arc keeps, and the layout gives it to nothing else.
        Ok(unsafe { RingMemory::at(base, shape, Arc::clone(&self.0.segment) as _) })
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("rank", &self.rank())
            .field("nlocal", &self.nlocal())
            .finish_non_exhaustive()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.inbox.bell().leave();
    }
}

/// A block of our arena; returned when dropped, its memory zeroed or given back to the system.
///
/// The owner sees to it that nobody uses the block any more when it drops it.
#[derive(Debug)]
pub struct ShmBlock {
    node: Node,
    at: usize,
    len: usize,
    /// Others may use it for as long as the node's memory exists.
    kept: bool,
}

/// From this length on, memory of a returned block goes back to the system.
const PUNCH: usize = 64 << 10;

impl ShmBlock {
    /// The block's name for others.
    pub fn place(&self) -> ShmOffset {
        ShmOffset(self.offset() as u64)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The block's address here.
    pub fn as_ptr(&self) -> *mut u8 {
        self.node
            .0
            .segment
            .range(self.offset(), self.len)
            .map_or(std::ptr::null_mut(), |p| p.as_ptr())
    }

    /// Leaves the block as it is for as long as the node's memory exists, for an owner that goes before its users.
    pub fn abandon(mut self) {
        self.kept = true;
    }

    fn offset(&self) -> usize {
        self.node.0.layout.arena(self.node.rank()) + self.at
    }
}

impl Drop for ShmBlock {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let segment = &self.node.0.segment;
        let (from, to) = (self.offset(), self.offset() + self.len);
        let (first_page, last_page) = (from.next_multiple_of(PAGE), to / PAGE * PAGE);
        // SAFETY: the block is ours and out of use by the owner's promise; it becomes free only below.
        let punched = self.len >= PUNCH
            && unsafe { segment.punch_hole(first_page, last_page - first_page) }.is_ok();
        let dirty = if punched {
            [(from, first_page), (last_page, to)]
        } else {
            [(from, to), (to, to)]
        };
        for (from, to) in dirty {
            if let Some(p) = segment.range(from, to - from) {
                // SAFETY: inside the block, which nobody uses any more.
                unsafe { p.as_ptr().write_bytes(0, to - from) };
            }
        }
        self.node.arena().give(self.at);
    }
}

fn map(fd: impl AsFd, bytes: usize) -> Result<Arc<Segment>, NodeError> {
    Segment::map(fd, bytes)
        .map(Arc::new)
        .map_err(|error| NodeError::Map { bytes, error })
}

fn read_head(fd: impl AsFd) -> Result<Layout, NodeError> {
    let segment = Segment::map(fd, PAGE).map_err(|_| NodeError::NotANode)?;
    let head = segment.at::<Head>(0).ok_or(NodeError::NotANode)?;
    if head.magic.load(Ordering::Acquire) != MAGIC {
        return Err(NodeError::NotANode);
    }
    let found = head.version.load(Ordering::Relaxed);
    if found != VERSION {
        return Err(NodeError::Version { found });
    }
    let nlocal = head.nlocal.load(Ordering::Relaxed);
    let sizes = Sizes {
        ring_cells: head.ring_cells.load(Ordering::Relaxed),
        ring_bytes: head.ring_bytes.load(Ordering::Relaxed),
        frags: head.frags.load(Ordering::Relaxed),
        frag_len: head.frag_len.load(Ordering::Relaxed),
        arena_len: head.arena_len.load(Ordering::Relaxed),
    };
    Layout::new(nlocal, sizes).ok_or(NodeError::Sizes { nlocal })
}

/// A word that is unlikely to lie at the same address of another process.
fn random_word(rank: u32) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one((std::process::id(), rank))
}
