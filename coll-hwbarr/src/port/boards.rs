//! The port of simulated cascaded boards, in memory that the ranks of a node share.
//!
//! Memory layout: a [`SharedRecord`], a word per node ([`EndedNodes`]), then the boards ([`Boards`]).
//! Rank 0 initialises them, and the other ranks attach after a fence.
//! Each field is written by the same ranks as in [`sim`](super::sim).
#![allow(unsafe_code)]

use super::ended_nodes::EndedNodes;
use super::sim_files::{self, Releases, Report};
use super::{Barrier, Fence, LevelChanges, Mark, Pair, Port, Wire};
use crate::choice::SimFiles;
use barrier_board::live::{Boards, NodeWires};
use barrier_board::tree::Tree;
use barrier_driver::ToggleBarrier;
use mpi_base::atomic::{AtomicU32, AtomicU64, Ordering};
use mpi_core::plugin::guest::{Comm, SharedMemory};
use std::ptr::NonNull;

/// The record that the nodes share in addition to the wires.
#[repr(C)]
struct SharedRecord {
    /// Number of nodes that have closed or died.
    ended: AtomicU32,
    /// Nonzero after a node was chosen to name the missing nodes to the user.
    warned: AtomicU32,
    /// Number of releases of the board before the program's first barrier.
    before: AtomicU64,
}

/// Offset of the nodes' words in the shared memory, in bytes.
const COUNTS: usize = 64;
const ALIGN: usize = 128;
const _: () =
    assert!(size_of::<SharedRecord>() <= COUNTS && COUNTS.is_multiple_of(align_of::<AtomicU64>()));

pub struct SimBoards {
    comm: Comm,
    files: SimFiles,
    shared_record: &'static SharedRecord,
    /// One word per node in the encoding of [`EndedNodes`].
    barriers: &'static [AtomicU64],
    boards: Boards<'static>,
    /// Whether a barrier of the program changes the wires one time or twice.
    level_changes: LevelChanges,
    /// Records the start and end of this node's barriers for the waveform; `None` without a waveform.
    marks: Option<Box<dyn FnMut(Mark)>>,
}

/// Returns the tree for `ranks` ranks on at most `boards` leaf boards, each with a rank or more.
fn tree(ranks: usize, boards: usize) -> Tree {
    let share = ranks.div_ceil(boards);
    Tree::new(ranks, ranks.div_ceil(share))
}

impl SimBoards {
    /// Creates the boards, or attaches to rank 0's; collective over the nodes, with one fence.
    pub fn attach(comm: &Comm, files: &SimFiles, boards: u32) -> Result<SimBoards, String> {
        let nodes = comm.size() as usize;
        let tree = tree(nodes, boards as usize);
        let start = (COUNTS + nodes * size_of::<AtomicU64>()).next_multiple_of(ALIGN);
        let bytes = start.saturating_add(Boards::layout_size(&tree, files.record));
        let SharedMemory { at, len } = comm.shared_memory(bytes, ALIGN)?;
        // SAFETY: `shared_memory` returned at least `start` bytes, so the offset is inside the allocation.
        let (place, len) = (unsafe { at.add(start) }, len - start);
        let made = if comm.rank() == 0 {
            // SAFETY: `shared_memory` returned zeroed, aligned memory, and all ranks use the bytes after the counts only as these boards.
            // It stays mapped until the last rank frees its module, and modules own all borrows of it.
            unsafe { Boards::<'static>::init(place, len, &tree, files.record) }
                .map(|_| ())
                .map_err(|e| e.to_string())
        } else {
            Ok(())
        };
        comm.fence()?;
        made?;
        // SAFETY: rank 0 has initialised the boards before the fence, and all ranks use this memory only as these boards.
        // It stays mapped until the last rank frees its module, and modules own all borrows of it.
        let boards = unsafe { Boards::<'static>::attach(place, len, &tree, files.record) }
            .map_err(|e| e.to_string())?;
        // SAFETY: the memory is zeroed, aligned and of the record's size.
        // All ranks use it as a shared record. It stays mapped as long as the boards.
        let shared_record = unsafe { at.cast::<SharedRecord>().as_ref() };
        // SAFETY: the `nodes` words between `COUNTS` and `start` are zeroed and aligned.
        // All ranks use them as counts. They stay mapped as long as the boards.
        let barriers = unsafe {
            NonNull::slice_from_raw_parts(at.add(COUNTS).cast::<AtomicU64>(), nodes).as_ref()
        };
        Ok(SimBoards {
            comm: comm.clone(),
            files: files.clone(),
            shared_record,
            barriers,
            boards,
            level_changes: LevelChanges::Once,
            marks: None,
        })
    }

    fn ended_nodes(&self) -> EndedNodes<'_> {
        EndedNodes {
            nodes: self.barriers,
            ended: &self.shared_record.ended,
        }
    }

    /// Writes the waveform and the report; only the last node to close calls this.
    fn write(&self) -> Result<(), String> {
        let report = || {
            let before = self.shared_record.before.load(Ordering::Relaxed);
            let counted = Releases {
                before,
                changes: self.boards.releases() - before,
            };
            let all = self.ended_nodes();
            Report::of_model(
                self.boards.boards(),
                self.level_changes,
                counted,
                all.barriers(),
            )
            .without(all.dead())
        };
        sim_files::write(&self.comm, &self.files, || self.boards.record(), report)
    }
}

impl Pair for SimBoards {
    fn open(&mut self, fence: Fence) -> Result<Box<dyn Wire>, String> {
        let members = self.comm.clone();
        let ring = move |node| members.ring(node as u32);
        let NodeWires {
            out,
            input,
            mut marks,
        } = self
            .boards
            .wires(self.comm.rank() as usize, ring)
            .map_err(|e| e.to_string())?;
        if self.boards.is_recording() {
            self.marks = Some(Box::new(move |mark| match mark {
                Mark::Enter => marks.enter(),
                Mark::Leave => marks.leave(),
            }));
        }
        Ok(Box::new(
            ToggleBarrier::open(out, input, fence).map_err(|e| e.to_string())?,
        ))
    }
}

impl Port for SimBoards {
    fn ready(&mut self, level_changes: LevelChanges) {
        self.level_changes = level_changes;
        if self.comm.rank() == 0 {
            // Rank 0 enters the program's first barrier only after it has read this count,
            // so the count includes no release of the program's barriers.
            self.shared_record
                .before
                .store(self.boards.releases(), Ordering::Relaxed);
        }
    }

    fn missing(&self) -> Result<Option<Vec<u32>>, String> {
        let missing = self.boards.missing().into_iter();
        Ok(Some(missing.map(|node| node as u32).collect()))
    }

    fn may_warn(&self) -> bool {
        self.shared_record.warned.swap(1, Ordering::Relaxed) == 0
    }

    fn mark(&mut self, mark: Mark) {
        if let Some(marks) = &mut self.marks {
            marks(mark);
        }
    }

    fn lose(&mut self, barrier: Option<Box<dyn Barrier>>, dead: &[u32]) {
        drop(barrier);
        self.ended_nodes().record_dead(dead);
    }

    fn close(&mut self, barrier: Option<Box<dyn Barrier>>, barriers: u64) -> Result<(), String> {
        drop(barrier);
        self.marks = None;
        // A node may have died after the last barrier, so deaths are recorded again.
        self.ended_nodes().record_dead(&self.comm.failed_ranks());
        if self.ended_nodes().close(self.comm.rank(), barriers) {
            self.write()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::tree;

    #[test]
    fn no_board_is_empty() {
        for (ranks, boards, lowest) in [(6, 3, 3), (6, 2, 2), (5, 4, 3), (3, 9, 3), (130, 3, 3)] {
            let tree = tree(ranks, boards);
            assert_eq!(tree.lowest(), lowest, "{ranks} ranks, {boards} boards");
            assert!((0..tree.boards()).all(|board| tree.pins(board) > 0));
        }
    }
}
