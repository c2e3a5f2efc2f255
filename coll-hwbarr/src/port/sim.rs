//! The port of the simulated board, in memory that the ranks of a node share.
//!
//! Memory layout: a [`SharedRecord`], then the board ([`Board`]).
//! Rank 0 initialises them, and the others attach after a fence.
//! Writers of the shared record: rank 0 writes `before` one time.
//! Each node adds its clock edges, and records its end in `ended` and `barriers`
//! ([`EndedNodes`]); the last to end writes the files. The first node that warns the user sets `warned`.
#![allow(unsafe_code)]

use super::ended_nodes::EndedNodes;
use super::line::{EurekaPins, LineWires};
use super::sim_files::{self, Releases, Report};
use super::{Barrier, Fence, LevelChanges, MOST_NODES, Mark, Pair, Port, Wire, missing_of, rtl};
use crate::choice::{RtlSource, SimFiles};
use barrier_board::live::{Board, EurekaWires, Wires};
use barrier_driver::{InputEvents, ToggleBarrier};
use embedded_hal::digital::OutputPin;
use hdl::cosim::Rtl;
use mpi_base::atomic::{AtomicU32, AtomicU64, Ordering};
use mpi_core::plugin::guest::{Comm, SharedMemory};
use std::convert::Infallible;

/// The record that the nodes of a board share in addition to the wires.
#[repr(C)]
struct SharedRecord {
    /// Number of nodes that have closed or died.
    ended: AtomicU32,
    /// Nonzero after a node was chosen to name the missing nodes to the user.
    warned: AtomicU32,
    /// Number of releases of the board before the program's first barrier.
    before: AtomicU64,
    /// Number of clock edges evaluated by the nodes' copies of the RTL.
    rtl_edges: AtomicU64,
    /// One word per node in the encoding of [`EndedNodes`].
    barriers: [AtomicU64; MOST_NODES as usize],
}

/// Offset of the board in the shared memory, in bytes; a board requires a multiple of 128.
const BOARD: usize = 1024;
const ALIGN: usize = 128;
const _: () = assert!(size_of::<SharedRecord>() <= BOARD && BOARD.is_multiple_of(ALIGN));

pub struct Sim {
    comm: Comm,
    files: SimFiles,
    shared_record: &'static SharedRecord,
    board: Board<'static>,
    /// The RTL that computes the board's outputs, if it replaces the model.
    rtl: Option<&'static Rtl>,
    /// Whether a barrier of the program changes the wires one time or twice.
    level_changes: LevelChanges,
    /// Records the start and end of this node's barriers for the waveform; `None` without a waveform.
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
    /// Creates the board, or attaches to rank 0's; collective over the nodes, with one fence.
    pub fn attach(comm: &Comm, files: &SimFiles, rtl: Option<&RtlSource>) -> Result<Sim, String> {
        let nodes = comm.size() as usize;
        let rtl = rtl.map(|source| rtl::load(source, nodes)).transpose();
        let bytes = BOARD.saturating_add(Board::layout_size(nodes, files.record));
        let SharedMemory { at, len } = comm.shared_memory(bytes, ALIGN)?;
        // SAFETY: `shared_memory` returned at least `BOARD` bytes, so the offset is inside the allocation.
        let (place, len) = (unsafe { at.add(BOARD) }, len - BOARD);
        let made = if comm.rank() == 0 {
            // SAFETY: `shared_memory` returned zeroed, aligned memory, and all ranks use the bytes after the shared record only as a board.
            // It stays mapped until the last rank frees its module, and modules own all borrows of it.
            unsafe { Board::<'static>::init(place, len, nodes, files.record) }
                .map(|_| ())
                .map_err(|e| e.to_string())
        } else {
            Ok(())
        };
        comm.fence()?;
        made?;
        let rtl = rtl?;
        // SAFETY: rank 0 has initialised the board before the fence, and all ranks use this memory only as a board.
        // It stays mapped until the last rank frees its module, and modules own all borrows of it.
        let mut board =
            unsafe { Board::<'static>::attach(place, len) }.map_err(|e| e.to_string())?;
        if let Some(rtl) = rtl {
            board = board.with_gates(rtl);
        }
        // SAFETY: the memory is zeroed, aligned and has at least `BOARD` bytes (asserted above).
        // All ranks use it as a shared record. It stays mapped as long as the board.
        let shared_record = unsafe { at.cast::<SharedRecord>().as_ref() };
        Ok(Sim {
            comm: comm.clone(),
            files: files.clone(),
            shared_record,
            board,
            rtl,
            level_changes: LevelChanges::Once,
            marks: None,
        })
    }

    /// Opens this node's wires.
    pub(super) fn pins(
        &mut self,
    ) -> Result<
        (
            impl OutputPin<Error = Infallible> + use<>,
            impl InputEvents<Error = Infallible> + use<>,
        ),
        String,
    > {
        let members = self.comm.clone();
        let ring = move |node| members.ring(node as u32);
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

    /// Opens this node's wires of the eureka line.
    pub(super) fn line_wires(
        &self,
    ) -> Result<EurekaWires<'static, impl Fn(usize) + use<>>, String> {
        let members = self.comm.clone();
        let ring = move |node| members.ring(node as u32);
        let wires = self.board.eureka(self.comm.rank() as usize, ring);
        wires.map_err(|e| e.to_string())
    }

    fn ended_nodes(&self) -> EndedNodes<'_> {
        EndedNodes {
            nodes: &self.shared_record.barriers[..self.board.nodes()],
            ended: &self.shared_record.ended,
        }
    }

    /// Writes the waveform and the report; only the last node to close calls this.
    fn write(&self) -> Result<(), String> {
        let report = || {
            let before = self.shared_record.before.load(Ordering::Relaxed);
            let counted = Releases {
                before,
                changes: self.board.releases() - before,
            };
            let all = self.ended_nodes();
            let report = Report::of_model(1, self.level_changes, counted, all.barriers())
                .without(all.dead());
            match self.rtl {
                Some(_) => report.of_rtl(self.shared_record.rtl_edges.load(Ordering::Relaxed)),
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
    fn ready(&mut self, level_changes: LevelChanges) {
        self.level_changes = level_changes;
        if self.comm.rank() == 0 {
            // Rank 0 enters the program's first barrier only after it has read this count,
            // so the count includes no release of the program's barriers.
            self.shared_record
                .before
                .store(self.board.releases(), Ordering::Relaxed);
        }
    }

    fn missing(&self) -> Result<Option<Vec<u32>>, String> {
        let arrived = self.board.snapshot().arrived();
        Ok(Some(missing_of(arrived, self.comm.size())))
    }

    fn may_warn(&self) -> bool {
        self.shared_record.warned.swap(1, Ordering::Relaxed) == 0
    }

    fn has_line(&self) -> bool {
        true
    }

    fn line(&mut self) -> Result<Box<dyn LineWires>, String> {
        let EurekaWires { out, found, first } = self.line_wires()?;
        Ok(Box::new(EurekaPins { out, found, first }))
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
        let edges = self.rtl.map_or(0, Rtl::edges);
        self.shared_record
            .rtl_edges
            .fetch_add(edges, Ordering::Relaxed);
        // A node may have died after the last barrier, so deaths are recorded again.
        self.ended_nodes().record_dead(&self.comm.failed_ranks());
        if self.ended_nodes().close(self.comm.rank(), barriers) {
            self.write()?;
        }
        Ok(())
    }
}
