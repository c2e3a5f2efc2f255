//! The barrier simulator: nodes, ports, cables and boards in virtual time.
//!
//! * [`virtual_time`]: a deterministic discrete-event simulation of nodes, ports, cables and the machine.
//! * [`software`]: software barriers under LogP and LogGP.
//! * [`study`]: hardware and software barriers on the same arrivals, and parameter sweeps.
//! * [`faults`]: campaigns of every fault at every place and moment against the real driver.
//! * [`waves`]: virtual time as a waveform with a resolution of one picosecond, with clocks and flip-flops.
//!
//! Crate `barrier-board` has the board that real processes share;
//! this crate uses its events and its tree of boards.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod faults;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod software;
pub mod study;
pub mod virtual_time;
pub mod waves;
