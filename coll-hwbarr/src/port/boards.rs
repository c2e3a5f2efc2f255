//! The simulator's cascaded boards in the memory that the ranks of a node share, as a port.
//!
//! Memory: a [`Desk`] of our own, a word for each node ([`Attendance`]), then the boards (crate `sim`, [`Boards`]), laid out by
//! rank 0 and found by the others after a fence. Which rank touches what is as in [`sim`](super::sim).
#![allow(unsafe_code)]

use super::attendance::Attendance;
use super::sim_files::{self, Releases, Report};
use super::{Fence, Gate, Mark, Pair, Port, Way, Wire};
use crate::choice::SimFiles;
use barrier_driver::ToggleBarrier;
use mpi_base::atomic::{AtomicU32, AtomicU64, Ordering};
use mpi_core::plugin::guest::{Comm, SharedMemory};
use sim::live::{Boards, NodeWires};
use sim::virtual_time::Tree;
use std::ptr::NonNull;

/// What the nodes tell each other beside the wires.
#[repr(C)]
struct Desk {
    /// How many nodes have put their wire back for good, or died.
    ended: AtomicU32,
    /// Whether the user has been warned.
    warned: AtomicU32,
    /// Releases of the time before the program's first barrier.
    before: AtomicU64,
}

/// The counts of barriers begin here.
const COUNTS: usize = 64;
const ALIGN: usize = 128;
const _: () =
    assert!(size_of::<Desk>() <= COUNTS && COUNTS.is_multiple_of(align_of::<AtomicU64>()));

pub struct SimBoards {
    comm: Comm,
    files: SimFiles,
    desk: &'static Desk,
    /// How each node has ended.
    barriers: &'static [AtomicU64],
    boards: Boards<'static>,
    /// How the program's barriers go over the wires.
    way: Way,
    /// Notes in the record that this node comes or goes; `None` without a record.
    marks: Option<Box<dyn FnMut(Mark)>>,
}

/// So many ranks on no more than so many lowest boards, none of which is empty.
fn tree(ranks: usize, boards: usize) -> Tree {
    let share = ranks.div_ceil(boards);
    Tree::new(ranks, ranks.div_ceil(share))
}

impl SimBoards {
    /// Makes or finds the boards; every node calls, and all meet in one fence.
    pub fn attach(comm: &Comm, files: &SimFiles, boards: u32) -> Result<SimBoards, String> {
        let nodes = comm.size() as usize;
        let tree = tree(nodes, boards as usize);
        let start = (COUNTS + nodes * size_of::<AtomicU64>()).next_multiple_of(ALIGN);
        let bytes = start.saturating_add(Boards::layout_size(&tree, files.record));
        let SharedMemory { at, len } = comm.shared_memory(bytes, ALIGN)?;
        // SAFETY: `start` is inside the memory, whose length includes it.
        let (place, len) = (unsafe { at.add(start) }, len - start);
        let made = if comm.rank() == 0 {
            // SAFETY: zeroed memory beyond the counts, which all ranks use as these boards only.
            // It stays until the last of them frees its module, and modules own what borrows from it; so nothing outlives it.
            unsafe { Boards::<'static>::init(place, len, &tree, files.record) }
                .map(|_| ())
                .map_err(|e| e.to_string())
        } else {
            Ok(())
        };
        comm.fence()?;
        made?;
        // SAFETY: as above.
        let boards = unsafe { Boards::<'static>::attach(place, len, &tree, files.record) }
            .map_err(|e| e.to_string())?;
        // SAFETY: zeroed, aligned, of the desk's size, used as a desk by all ranks, and it stays as the boards do.
        let desk = unsafe { at.cast::<Desk>().as_ref() };
        // SAFETY: inside the memory, before `start`; aligned, and used as counts by all ranks; it stays as the boards do.
        let barriers = unsafe {
            NonNull::slice_from_raw_parts(at.add(COUNTS).cast::<AtomicU64>(), nodes).as_ref()
        };
        Ok(SimBoards {
            comm: comm.clone(),
            files: files.clone(),
            desk,
            barriers,
            boards,
            way: Way::There,
            marks: None,
        })
    }

    fn attendance(&self) -> Attendance<'_> {
        Attendance {
            nodes: self.barriers,
            ended: &self.desk.ended,
        }
    }

    /// Writes the files; called by the last node to close.
    fn write(&self) -> Result<(), String> {
        let report = || {
            let before = self.desk.before.load(Ordering::Relaxed);
            let counted = Releases {
                before,
                changes: self.boards.releases() - before,
            };
            let all = self.attendance();
            Report::of_model(self.boards.boards(), self.way, counted, all.barriers())
                .without(all.dead())
        };
        sim_files::write(&self.comm, &self.files, || self.boards.record(), report)
    }
}

impl Pair for SimBoards {
    fn open(&mut self, fence: Fence) -> Result<Box<dyn Wire>, String> {
        let bells = self.comm.clone();
        let ring = move |node| bells.ring(node as u32);
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
    fn ready(&mut self, way: Way) {
        self.way = way;
        if self.comm.rank() == 0 {
            // No barrier of the program can be over before rank 0 enters it, which it does after this.
            self.desk
                .before
                .store(self.boards.releases(), Ordering::Relaxed);
        }
    }

    fn missing(&self) -> Result<Option<Vec<u32>>, String> {
        let missing = self.boards.missing().into_iter();
        Ok(Some(missing.map(|node| node as u32).collect()))
    }

    fn may_warn(&self) -> bool {
        self.desk.warned.swap(1, Ordering::Relaxed) == 0
    }

    fn mark(&mut self, mark: Mark) {
        if let Some(marks) = &mut self.marks {
            marks(mark);
        }
    }

    fn lose(&mut self, gate: Option<Box<dyn Gate>>, dead: &[u32]) {
        drop(gate);
        self.attendance().bury(dead);
    }

    fn close(&mut self, gate: Option<Box<dyn Gate>>, barriers: u64) -> Result<(), String> {
        drop(gate);
        self.marks = None;
        // A node may have died after the last barrier.
        self.attendance().bury(&self.comm.failed_ranks());
        if self.attendance().close(self.comm.rank(), barriers) {
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
