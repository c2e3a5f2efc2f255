//! Succession: a rank whose process has ended is taken over by another process, which uses other memory.
//!
//! A script can run several programs one after the other as the same rank.
//! All of them inherit the memory of the first program. A later program cannot use this memory,
//! whose rings and arenas contain the state of the first one; it gets new memory from the launcher.
//! The claims in the first memory still determine which process is a rank.

use std::os::fd::AsFd;

use rustix::fs::{FallocateFlags, fallocate};

use super::control::Control;
use super::error::NodeError;
use super::file_len;
use super::head::{map, read_head};
use super::layout::Layout;
use crate::atomic::Ordering;
use crate::mem::Segment;

/// Takes over the claim of rank `rank` from process `ended`, which has ended.
/// Of several processes that call this function, one succeeds; the others get the error that this process has claimed the rank.
pub fn succeed(fd: impl AsFd, rank: u32, ended: u32) -> Result<(), NodeError> {
    let layout = read_head(&fd)?;
    let segment = map(&fd, layout.public_len())?;
    replace_process(&segment, &layout, rank, ended)
}

/// Replaces the process ID `from` in the claim of rank `rank` by that of this process; 0 is the ID in an unclaimed rank.
pub(super) fn replace_process(
    segment: &Segment,
    layout: &Layout,
    rank: u32,
    from: u32,
) -> Result<(), NodeError> {
    let nlocal = layout.nlocal;
    if rank >= nlocal {
        return Err(NodeError::NoSuchRank { rank, nlocal });
    }
    let control = segment
        .at::<Control>(layout.control(rank))
        .ok_or(NodeError::NotANode)?;
    // The exchange only selects one process, and no other data depend on it.
    let (to, pid) = (std::process::id(), &control.presence.pid);
    pid.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed)
        .map(drop)
        .map_err(|pid| NodeError::Claimed { rank, pid })
}

/// Frees the memory of rings, fragments and arenas, for a segment whose processes have all ended.
/// The header and the control pages remain.
pub fn free_contents(fd: impl AsFd) -> Result<(), NodeError> {
    let public = read_head(&fd)?.public_len();
    let bytes = file_len(&fd).unwrap_or(0).saturating_sub(public);
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&fd, flags, public as u64, bytes as u64)
        .map_err(|error| NodeError::Map { bytes, error })
}

#[cfg(test)]
mod tests {
    use super::super::Node;
    use super::*;

    #[test]
    fn a_rank_passes_from_an_ended_process_to_one_other() {
        let fd = Node::create(2).unwrap();
        let _first = Node::attach(&fd, 1).unwrap();
        let me = std::process::id();
        // The claim of this process stands for that of the ended one.
        assert_eq!(succeed(&fd, 1, me), Ok(()));
        let claimed = Err(NodeError::Claimed { rank: 1, pid: me });
        assert_eq!(succeed(&fd, 1, me + 1), claimed);
        assert!(matches!(
            succeed(&fd, 2, me),
            Err(NodeError::NoSuchRank { rank: 2, nlocal: 2 })
        ));
        let unclaimed = Err(NodeError::Claimed { rank: 0, pid: 0 });
        assert_eq!(succeed(&fd, 0, me), unclaimed);
    }

    #[test]
    fn the_memory_of_an_ended_program_is_freed_and_its_claims_remain() {
        let fd = Node::create(2).unwrap();
        let nodes: Vec<Node> = (0..2).map(|r| Node::attach(&fd, r).unwrap()).collect();
        let blocks = || rustix::fs::fstat(&fd).unwrap().st_blocks;
        let before = blocks();
        nodes[0].map_rings_ahead();
        assert!(blocks() > before);
        free_contents(&fd).unwrap();
        assert!(blocks() <= before);
        assert!(matches!(
            Node::claim(&fd, 1),
            Err(NodeError::Claimed { rank: 1, .. })
        ));
    }
}
