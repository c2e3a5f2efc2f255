//! The live board: processes share a barrier in shared memory, and its clock follows the machine's clock.
//!
//! No process or thread runs in the background.
//! A process that accesses a wire steps the model from the last simulated edge to the present one.
//! This is a constant amount of work for any elapsed time ([`fpga_model::ToggleMachine::fast_forward`]).
//! Edge `k` of the board's clock is at `k / 25.175 MHz` of `CLOCK_MONOTONIC` after the board was created,
//! so all processes of a machine agree on it.
//!
//! # The protocol: copy and commit, no lock
//!
//! The board's state (levels, flip-flops, edge, events) is a *slot* of 16 words.
//! The slot of a version 2 board has 64 words, the slot of the eureka line 8.
//! One *head* word has the index of the current slot, and a version that each commit increments.
//! `slots.rs` implements the protocol; `state.rs`, `channels.rs` and `line.rs` define the states.
//!
//! 1. Read the head, copy the slot it names, read the head again; start over if it has changed.
//! 2. Step the copy to the present edge and apply the change.
//! 3. Write the result into a slot of this handle that is not current, and compare-and-swap the
//!    head to that slot. If another process has changed the head since step 1, start over.
//!
//! Each wire handle owns two slots, so it always has one that is not current.
//! A process that is killed at any instant leaves at most a slot that no process will ever read:
//! no lock stays locked, and no process sees a torn state.
//! The protocol is lock-free: in every interleaving some process makes progress.
//! A reader writes nothing if nothing has changed.
//!
//! # Cascaded boards
//!
//! [`Boards`] are the boards of a tree, for more nodes than one board has wires. A board's output
//! drives a wire of the board above. Here, too, no process runs in the background: the last node of
//! a board propagates its level upwards, see the head of `boards.rs`.
//!
//! # The eureka line
//!
//! Each board has a line by which one node notifies all others that it has found a result
//! ([`fpga_model::eureka`]). The line has separate slots and a separate head word
//! after those of the board; [`Board::eureka`] returns a node's wires. See the head of `line.rs`.
//! Cascaded boards have no eureka line.
//!
//! # Gates
//!
//! [`Board::with_gates`] replaces the model by another machine, such as the RTL under a simulator.
//! The flip-flops stay in the shared slots; a process that steps the gates
//! loads the flip-flops into its own copy of the gates and stores them back.
//!
//! # Writers
//!
//! | memory                  | written by                                             |
//! |-------------------------|--------------------------------------------------------|
//! | geometry, origin        | [`Board::init`], before the magic number appears       |
//! | claim of a node         | the process that claims its wires, by compare-and-swap |
//! | the two slots of a handle | that handle, while the slot is not current           |
//! | head                    | any handle, by compare-and-swap                        |
//! | wire to the board above | any node below this wire; it copies the level of its node wire |
//! | entries of the record   | any process, but always the same value (next paragraph) |
//!
//! Observers ([`Window`], found by [`boards`]) map the memory read-only and write nothing.
//!
//! # The record
//!
//! A commit that changes a wire stores its events in its slot, with their indices in the record.
//! The events are copied to the record after the commit. If the process dies in between, the next
//! commit writes the same values to the same entries before it replaces the slot.
//! So no event is lost, and a late writer is harmless.
//! The record keeps the first events and counts those that did not fit.
//!
//! # Wake-ups
//!
//! The handle whose commit contains a release calls its `ring(node)` for every other node,
//! after a sequentially consistent fence. So a node may sleep by the usual protocol:
//! announce sleep, fence, read the wire once more, sleep.
//! A write that makes a release inevitable waits three edges (119 ns) and commits the release
//! itself;
//! otherwise a node that enters and then computes would leave the others asleep.
//! If that process is killed between write and wake-up, no process wakes the others,
//! so nodes must sleep with a time limit.

mod board;
mod boards;
mod channel_look;
mod channels;
mod claim;
mod engine;
mod eureka;
mod find;
mod line;
mod shared;
mod slots;
mod state;
#[cfg(test)]
mod tests;
mod wires;

pub use board::{AttachError, Board, InitError, LineLook, Look, Snapshot};
pub use boards::{Boards, NodeIn, NodeMarks, NodeOut, NodeWires};
pub use channel_look::ChannelLook;
pub use channels::{ChannelBoard, NodeLines};
pub use claim::WiresError;
pub use eureka::{EurekaInput, EurekaWires, RaiseWire};
pub use find::{Found, boards, boards_of};
pub use shared::{Memory, MemoryError, Window};
pub use wires::{InWire, Marks, OutWire, Wires};

use crate::clock::Clock;

/// The board's clock, which counts in nanoseconds from the board's creation.
const CLOCK: Clock = Clock {
    hz: fpga_model::CLOCK_HZ,
    units_per_s: 1_000_000_000,
};
