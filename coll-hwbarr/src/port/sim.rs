//! The simulator's live board in the memory that the ranks of a node share, as a port.
//!
//! Memory: a [`Desk`] of our own, then the board (crate `sim`), laid out by rank 0 and found by the others after a fence.
//! Which rank touches what on the desk: rank 0 writes `before` once; each node adds its edges and then ends in `ended` and `barriers`
//! ([`Attendance`]), and the last to end writes the files. `warned` is for the first to come.
#![allow(unsafe_code)]

use super::attendance::Attendance;
use super::line::{LineWires, Three};
use super::sim_files::{self, Releases, Report};
use super::{Fence, Gate, MOST_NODES, Mark, Pair, Port, Way, Wire, missing_of, rtl};
use crate::choice::{RtlSource, SimFiles};
use barrier_driver::{InputEvents, ToggleBarrier};
use embedded_hal::digital::OutputPin;
use hdl::cosim::Rtl;
use mpi_base::atomic::{AtomicU32, AtomicU64, Ordering};
use mpi_core::plugin::guest::{Comm, SharedMemory};
use sim::live::{Board, EurekaWires, Wires};
use std::convert::Infallible;

/// What the nodes of one board tell each other beside the wires.
#[repr(C)]
struct Desk {
    /// How many nodes have put their wire back for good, or died.
    ended: AtomicU32,
    /// Whether the user has been warned.
    warned: AtomicU32,
    /// Releases of the time before the program's first barrier.
    before: AtomicU64,
    /// Edges that the nodes' copies of the RTL have evaluated.
    rtl_edges: AtomicU64,
    /// How each node has ended.
    barriers: [AtomicU64; MOST_NODES as usize],
}

/// The board begins here; it wants a multiple of 128.
const BOARD: usize = 1024;
const ALIGN: usize = 128;
const _: () = assert!(size_of::<Desk>() <= BOARD && BOARD.is_multiple_of(ALIGN));

pub struct Sim {
    comm: Comm,
    files: SimFiles,
    desk: &'static Desk,
    board: Board<'static>,
    /// What is behind the wires, if it is not the model.
    rtl: Option<&'static Rtl>,
    /// How the program's barriers go over the wires.
    way: Way,
    /// Notes in the record that this node comes or goes; `None` without a record.
    marks: Option<Box<dyn FnMut(Mark)>>,
}

pub fn suits(comm: &Comm) -> Result<(), String> {
    let here = comm.node_ranks();
    match (0..comm.size()).find(|rank| here.binary_search(rank).is_err()) {
        None => Ok(()),
        Some(rank) => Err(format!(
            "the simulator's board is shared memory, and rank {rank} is on another node than rank {}",
            comm.rank()
        )),
    }
}

impl Sim {
    /// Makes or finds the board; every node calls, and all meet in one fence.
    pub fn attach(comm: &Comm, files: &SimFiles, rtl: Option<&RtlSource>) -> Result<Sim, String> {
        let nodes = comm.size() as usize;
        let rtl = rtl.map(|source| rtl::load(source, nodes)).transpose();
        let bytes = BOARD.saturating_add(Board::layout_size(nodes, files.record));
        let SharedMemory { at, len } = comm.shared_memory(bytes, ALIGN)?;
        // SAFETY: `BOARD` is inside the memory, whose length includes it.
        let (place, len) = (unsafe { at.add(BOARD) }, len - BOARD);
        let made = if comm.rank() == 0 {
            // SAFETY: zeroed memory beyond the desk, which all ranks use as a board only.
            // It stays until the last of them frees its module, and modules own what borrows from it; so nothing outlives it.
            unsafe { Board::<'static>::init(place, len, nodes, files.record) }
                .map(|_| ())
                .map_err(|e| e.to_string())
        } else {
            Ok(())
        };
        comm.fence()?;
        made?;
        let rtl = rtl?;
        // SAFETY: as above.
        let mut board =
            unsafe { Board::<'static>::attach(place, len) }.map_err(|e| e.to_string())?;
        if let Some(rtl) = rtl {
            board = board.with_gates(rtl);
        }
        // SAFETY: zeroed, aligned, of the desk's size, used as a desk by all ranks, and it stays as the board does.
        let desk = unsafe { at.cast::<Desk>().as_ref() };
        Ok(Sim {
            comm: comm.clone(),
            files: files.clone(),
            desk,
            board,
            rtl,
            way: Way::There,
            marks: None,
        })
    }

    /// Takes this node's wires.
    pub(super) fn pins(
        &mut self,
    ) -> Result<
        (
            impl OutputPin<Error = Infallible> + use<>,
            impl InputEvents<Error = Infallible> + use<>,
        ),
        String,
    > {
        let bells = self.comm.clone();
        let ring = move |node| bells.ring(node as u32);
        let wires = self
            .board
            .wires(self.comm.rank() as usize, ring)
            .map_err(|e| e.to_string())?;
        let Wires {
            out,
            input,
            mut marks,
        } = wires;
        if self.board.is_recording() {
            self.marks = Some(Box::new(move |mark| match mark {
                Mark::Enter => marks.enter(),
                Mark::Leave => marks.leave(),
            }));
        }
        Ok((out, input))
    }

    /// Takes this node's wires at the eureka line.
    pub(super) fn line_wires(
        &self,
    ) -> Result<EurekaWires<'static, impl Fn(usize) + use<>>, String> {
        let bells = self.comm.clone();
        let ring = move |node| bells.ring(node as u32);
        let wires = self.board.eureka(self.comm.rank() as usize, ring);
        wires.map_err(|e| e.to_string())
    }

    fn attendance(&self) -> Attendance<'_> {
        Attendance {
            nodes: &self.desk.barriers[..self.board.nodes()],
            ended: &self.desk.ended,
        }
    }

    /// Writes the files; called by the last node to close.
    fn write(&self) -> Result<(), String> {
        let report = || {
            let before = self.desk.before.load(Ordering::Relaxed);
            let counted = Releases {
                before,
                changes: self.board.releases() - before,
            };
            let all = self.attendance();
            let report = Report::of_model(1, self.way, counted, all.barriers()).without(all.dead());
            match self.rtl {
                Some(_) => report.of_rtl(self.desk.rtl_edges.load(Ordering::Relaxed)),
                None => report,
            }
        };
        sim_files::write(&self.comm, &self.files, || self.board.record(), report)
    }
}

impl Pair for Sim {
    fn open(&mut self, fence: Fence) -> Result<Box<dyn Wire>, String> {
        let (out, input) = self.pins()?;
        Ok(Box::new(
            ToggleBarrier::open(out, input, fence).map_err(|e| e.to_string())?,
        ))
    }
}

impl Port for Sim {
    fn ready(&mut self, way: Way) {
        self.way = way;
        if self.comm.rank() == 0 {
            // No barrier of the program can be over before rank 0 enters it, which it does after this.
            self.desk
                .before
                .store(self.board.releases(), Ordering::Relaxed);
        }
    }

    fn missing(&self) -> Result<Option<Vec<u32>>, String> {
        let arrived = self.board.snapshot().arrived();
        Ok(Some(missing_of(arrived, self.comm.size())))
    }

    fn may_warn(&self) -> bool {
        self.desk.warned.swap(1, Ordering::Relaxed) == 0
    }

    fn has_line(&self) -> bool {
        true
    }

    fn line(&mut self) -> Result<Box<dyn LineWires>, String> {
        let EurekaWires { out, found, first } = self.line_wires()?;
        Ok(Box::new(Three { out, found, first }))
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
        let edges = self.rtl.map_or(0, Rtl::edges);
        self.desk.rtl_edges.fetch_add(edges, Ordering::Relaxed);
        // A node may have died after the last barrier.
        self.attendance().bury(&self.comm.failed_ranks());
        if self.attendance().close(self.comm.rank(), barriers) {
            self.write()?;
        }
        Ok(())
    }
}
