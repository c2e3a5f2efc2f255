//! The shared memory segment of one job on one node.
//!
//! One sparse memfd contains the whole segment (see `layout`):
//! a header, a control page per rank, a ring per ordered pair of ranks,
//! and a private area per rank with its pooled fragments and its arena.
//! The launcher or the first process creates the segment with [`Node::create`].
//! Each rank joins with [`Node::attach`].
//! A rank may be a process or one of several threads of a process.
//! To verify early that no other process has the same local rank,
//! a process can call [`Node::claim`] and join later.
//!
//! Ownership: a rank claims its control page permanently, with one compare-and-swap, and thereby becomes
//! the only producer of the rings from it, the only consumer of the rings to it, and the only allocator in its arena.
//! The segment contains no pointers; every index read from it is checked against the layout before use.
#![allow(unsafe_code)]

mod annex;
mod block;
mod clock;
mod control;
mod error;
mod event_ring;
mod event_ring_head;
mod frags;
mod head;
mod inspect;
mod layout;
mod memory_file;
mod processes;
mod retired;
mod succession;
#[cfg(test)]
mod tests;

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use block::{Contents, ShmBlock, ShmOffset};
pub use error::NodeError;
pub use event_ring::{Event, EventKind, EventRing, Played, Player};
pub use frags::FragPool;
pub use inspect::Inspection;
pub use layout::{Layout, MAX_LOCAL, Sizes};
pub use processes::Processes;
pub use retired::RetiredBlocks;
pub use succession::{free_contents, succeed};

use crate::arena::Arena;
use crate::atomic::{AtomicU64, Ordering};
use crate::inbox::Inbox;
use crate::kept_pages::KeptPages;
use crate::mem::{Held, PAGE, Segment, Shared, fits_file_limit, memfd};
use crate::ring::{Consumer, Producer, RingMemory, Shape};
use crate::split_copy::{Helping, Offers};
use crate::state::{StatePage, ThreadWaits};
use annex::Annex;
use control::Control;
use head::{map, read_head, write_head};
use memory_file::MemoryFile;

/// One rank's handle of a node's memory; all clones of it belong to the same rank.
#[derive(Clone)]
pub struct Node(Arc<Attached>);

struct Attached {
    segment: Arc<Segment>,
    layout: Layout,
    rank: u32,
    inbox: Held<Inbox>,
    arena: Mutex<Arena>,
    memory_file: MemoryFile,
    /// Memory of this rank's free blocks that is kept for the next block.
    kept_pages: Mutex<KeptPages>,
    annex: Annex,
    /// The ring ends that have been taken (producers and consumers, indexed by peer),
    /// and whether the pool of fragments has been taken.
    taken: Mutex<Taken>,
    /// The process ID of each rank whose memory this process has been able to read.
    readable: Box<[OnceLock<u32>]>,
    /// The word that peers read to find out whether they can read this process's memory.
    /// Its address is published in the control page.
    _word: Box<AtomicU64>,
}

/// Maximum number of free bytes whose pages are kept, divided equally among the node's ranks.
const KEPT: usize = 64 << 20;

/// Maximum number of ranks on a node with which each rank maps all of its rings at the start.
const FEW: u32 = 8;

#[derive(Default)]
struct Taken {
    producers: Vec<bool>,
    consumers: Vec<bool>,
    frags: bool,
}

/// A local rank that belongs to this process but is not yet visible to other ranks.
pub struct Claim {
    segment: Arc<Segment>,
    layout: Layout,
    memory_file: MemoryFile,
    /// The length of the memory file in bytes.
    file: usize,
    rank: u32,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim({} of {})", self.rank, self.layout.nlocal)
    }
}

impl Claim {
    /// Returns the local rank that was claimed.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Joins the node: publishes this rank as ready.
    pub fn join(self) -> Result<Node, NodeError> {
        let Claim {
            segment,
            layout,
            memory_file,
            file,
            rank,
        } = self;
        let nlocal = layout.nlocal;
        let control = segment
            .at::<Control>(layout.control(rank))
            .ok_or(NodeError::NotANode)?;
        let word = Box::new(AtomicU64::new(random_word(rank)));
        let address = std::ptr::from_ref(&*word).expose_provenance() as u64;
        let presence = &control.presence;
        presence.address.store(address, Ordering::Relaxed);
        presence
            .word
            .store(word.load(Ordering::Relaxed), Ordering::Relaxed);
        // SYNC POINT node.ready: `is_attached` loads this word.
        presence.ready.store(1, Ordering::Release);
        let inbox_at = layout.control(rank) + std::mem::offset_of!(Control, inbox);
        let inbox = Held::new(&segment, inbox_at).ok_or(NodeError::NotANode)?;
        let n = nlocal as usize;
        Ok(Node(Arc::new(Attached {
            inbox,
            arena: Mutex::new(Arena::new(layout.arena_len())),
            memory_file,
            kept_pages: Mutex::new(KeptPages::new(KEPT / n)),
            annex: Annex::new(layout.total(), file, nlocal, rank),
            taken: Mutex::new(Taken {
                producers: vec![false; n],
                consumers: vec![false; n],
                frags: false,
            }),
            readable: (0..n).map(|_| OnceLock::new()).collect(),
            segment,
            layout,
            rank,
            _word: word,
        })))
    }
}

/// Returns the description of the waits of a rank's threads.
pub fn thread_waits(node: &Node, rank: u32) -> Result<Held<ThreadWaits>, NodeError> {
    node.held(rank, std::mem::offset_of!(Control, threads))
}

impl Node {
    /// Creates the shared memory of `nlocal` ranks;
    /// the sizes depend on that number and on the machine's caches.
    pub fn create(nlocal: u32) -> Result<OwnedFd, NodeError> {
        let mut sizes = Sizes::for_this_machine(nlocal);
        // If the address space is limited (`ulimit -v`),
        // arenas shrink until all arenas take a quarter of the limit.
        let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
        let share = limit.map_or(u64::MAX, |limit| limit / 4);
        while sizes.arena_len > 1 << 20 && sizes.arena_len.saturating_mul(nlocal.into()) > share {
            sizes.arena_len /= 2;
        }
        // If file sizes are limited (`ulimit -f`), which includes memory files,
        // arenas and pools shrink until the file fits.
        let fits = |sizes| match Layout::new(nlocal, sizes) {
            Some(layout) => fits_file_limit(layout.total() as u64).is_ok(),
            None => true,
        };
        while !fits(sizes) && (sizes.arena_len > 64 << 10 || sizes.frags > 8) {
            if sizes.arena_len > 64 << 10 {
                sizes.arena_len /= 2;
            } else {
                sizes.frags /= 2;
            }
        }
        Node::create_with(nlocal, sizes)
    }

    /// Creates the shared memory of `nlocal` ranks with the given sizes.
    pub fn create_with(nlocal: u32, sizes: Sizes) -> Result<OwnedFd, NodeError> {
        let layout = Layout::new(nlocal, sizes).ok_or(NodeError::Sizes { nlocal })?;
        let bytes = layout.total();
        // The annex for large blocks follows the other parts of the file.
        // If file sizes are limited, there is no annex.
        let all = bytes as u64 + u64::from(nlocal) * annex::LEN as u64;
        let all = match fits_file_limit(all) {
            Ok(()) => all,
            Err(_) => bytes as u64,
        };
        let fd =
            memfd("portcullis-node", all).map_err(|error| NodeError::Create { bytes, error })?;
        write_head(&fd, nlocal, sizes)?;
        Ok(fd)
    }

    /// Joins as local rank `rank`; the node keeps its own descriptor of the memory.
    pub fn attach(fd: impl AsFd, rank: u32) -> Result<Node, NodeError> {
        Node::claim(fd, rank)?.join()
    }

    /// Claims local rank `rank` for this process, until the memory is freed.
    /// The caller may close its descriptor.
    pub fn claim(fd: impl AsFd, rank: u32) -> Result<Claim, NodeError> {
        let layout = read_head(&fd)?;
        let segment = map(&fd, layout.total())?;
        succession::replace_process(&segment, &layout, rank, 0)?;
        Ok(Claim {
            file: file_len(&fd).unwrap_or(0),
            memory_file: MemoryFile::keep(&fd),
            segment,
            layout,
            rank,
        })
    }

    /// Returns this process's rank on the node.
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// Returns the number of ranks of the node, including ranks that have not attached.
    pub fn nlocal(&self) -> u32 {
        self.0.layout.nlocal
    }

    /// Returns the size of every ring.
    pub fn ring_shape(&self) -> Shape {
        self.0.layout.ring_shape
    }

    /// Returns the number of bytes of each byte ring that senders use initially.
    pub fn ring_span(&self) -> usize {
        self.0.layout.sizes.ring_span as usize
    }

    /// Returns the inbox of a rank.
    pub fn inbox(&self, rank: u32) -> Result<Held<Inbox>, NodeError> {
        self.held(rank, std::mem::offset_of!(Control, inbox))
    }

    /// Returns this rank's own inbox, whose doorbell this rank sleeps on.
    pub fn my_inbox(&self) -> &Held<Inbox> {
        &self.0.inbox
    }

    /// Returns the state page of a rank; only that rank writes the page.
    pub fn state(&self, rank: u32) -> Result<Held<StatePage>, NodeError> {
        self.held(rank, std::mem::offset_of!(Control, state))
    }

    /// Returns the copies that a rank offers to share with the ranks that send messages to it.
    pub fn offers(&self, rank: u32) -> Result<Held<Offers>, NodeError> {
        self.held(rank, std::mem::offset_of!(Control, offers))
    }

    /// Returns the word that names the copy in which a rank helps; only that rank writes the word.
    pub fn helping(&self, rank: u32) -> Result<Held<Helping>, NodeError> {
        self.held(rank, std::mem::offset_of!(Control, helping))
    }

    /// Returns the view of the ranks' processes.
    pub fn processes(&self) -> Processes<'_> {
        Processes(self)
    }

    /// Returns the writing end of the ring to rank `to`; succeeds only one time per rank.
    pub fn producer(&self, to: u32) -> Result<Producer, NodeError> {
        self.end(self.rank(), to, "writing end", |taken| &mut taken.producers)
            // SAFETY: this rank is claimed once (`Node::claim`) and `end` has marked this end in
            // `taken`, so this is the only producer.
            .map(|memory| unsafe { Producer::new(memory) })
    }

    /// Returns the reading end of the ring from rank `from`; succeeds only one time per rank.
    pub fn consumer(&self, from: u32) -> Result<Consumer, NodeError> {
        self.end(from, self.rank(), "reading end", |taken| {
            &mut taken.consumers
        })
        // SAFETY: this rank is claimed once (`Node::claim`) and `end` has marked this end in
        // `taken`, so this is the only consumer.
        .map(|memory| unsafe { Consumer::new(memory) })
    }

    /// Maps the first page of each ring from and to this rank, if the node has few ranks.
    /// Then the first message to a peer causes no page fault.
    pub fn map_rings_ahead(&self) {
        if self.nlocal() > FEW {
            return;
        }
        let me = self.rank();
        for peer in (0..self.nlocal()).filter(|peer| *peer != me) {
            for (from, to) in [(me, peer), (peer, me)] {
                let at = self.0.layout.ring(from, to);
                if let Some(start) = self.0.segment.range(at, PAGE) {
                    crate::mem::map_present(start, PAGE);
                }
            }
        }
    }

    /// Returns this rank's pool of fragments; succeeds only one time.
    pub fn frags(&self) -> Result<FragPool, NodeError> {
        let rank = self.rank();
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut taken.frags, true) {
            return Err(NodeError::PoolTaken { rank });
        }
        Ok(FragPool::new(
            Arc::clone(&self.0.segment),
            self.0.layout,
            rank,
        ))
    }

    /// Calls `f` on a fragment of `owner`'s pool and then returns the fragment to the pool.
    /// Returns `None` if `token` and `len` identify no outstanding fragment.
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
        // SAFETY: the range is page-aligned and inside the segment that the Arc keeps mapped,
        // and `Layout` assigns it to no other part.
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
        self.inbox.doorbell().leave();
    }
}

fn file_len(fd: impl AsFd) -> Option<usize> {
    let size = rustix::fs::fstat(fd).ok()?.st_size;
    usize::try_from(size).ok()
}

/// Returns a word that another process is unlikely to have at the same address.
fn random_word(rank: u32) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one((std::process::id(), rank))
}
