//! The barrier board that processes share: the cycle-accurate model with wires that several processes drive and read.
//!
//! * [`live`]: a board in shared memory of several processes; the board's clock follows the machine's clock.
//! * [`served`]: the same board over TCP, for nodes on several hosts.
//! * [`tree`]: which node and which board is at which pin of cascaded boards.
//! * [`event`]: the events on the wires, and their record.
//! * [`clock`]: the times of clock edges.
//!
//! An MPI library links this crate to offer the hardware barrier without hardware.
//! The crate writes no files: `barrier-waveform` writes a record to a file, and
//! `barrier-simulator` runs the same model in virtual time.
//!
//! TTL_VAPERS is a precedent for a port-level simulator that is linked into programs
//! in place of the hardware's driver. It simulated Purdue's parallel-port barrier
//! (<http://aggregate.org/EXHIBITS/sc95c.html>).
//!
//! Only module `live::shared` contains `unsafe`: it accesses the caller's memory as atomics.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod clock;
pub mod event;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod live;
pub mod served;
pub mod tree;
