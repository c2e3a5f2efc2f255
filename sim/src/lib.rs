//! The barrier simulator: the cycle-accurate model behind wires, shared by real processes.
//!
//! * [`live`]: processes share a board in shared memory, and the board's clock follows the machine's clock.
//! * [`served`]: the same board over TCP, for nodes on several hosts.
//! * [`virtual_time`]: a deterministic run of nodes, ports, cables and the machine, by discrete events.
//! * [`software`]: software barriers under LogP and LogGP; [`study`]: both on the same arrivals, and sweeps.
//! * [`faults`]: campaigns of every fault at every place and moment against the real driver.
//! * [`report`]: all of that as one HTML page.
//! * [`event`]: what happened on the wires.
//! * `emulate` (feature `emulate`): the registers of ports, so that the real drivers run against the board.
//! * [`waves`]: virtual time as a waveform at one picosecond, with clocks and flip-flops.
//! * [`vcd`], [`channel_vcd`] and [`gtkw`]: the events as a waveform, and a save file that shows it with named, grouped signals.
//! * [`wave_files`]: a waveform and the files beside it, named by the user; [`words`]: numbers in sentences.
//!
//! A simulator at the level of the port, linked into programs that otherwise use the hardware, has a precedent:
//! TTL_VAPERS did the same for Purdue's parallel-port barrier
//! (<http://aggregate.org/EXHIBITS/sc95c.html>).
//!
//! `unsafe` has three addresses here: the module `live::shared`, which turns the caller's memory into atomics,
//! `emulate::trap`, whose signal handlers execute port instructions, and one line of `emulate::gpio::machine`.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod channel_vcd;
mod clock;
mod dump;
#[cfg(feature = "emulate")]
pub mod emulate;
mod eureka_wave;
pub mod event;
pub mod faults;
pub mod gtkw;
pub mod live;
pub mod report;
pub mod served;
pub mod software;
pub mod study;
pub mod surfer;
pub mod vcd;
mod view;
pub mod virtual_time;
pub mod wave_files;
pub mod waves;
pub mod words;
