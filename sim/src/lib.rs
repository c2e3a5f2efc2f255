//! The barrier simulator: the cycle-accurate model with wires that several processes share.
//!
//! * [`live`]: a board in shared memory of several processes; the board's clock follows the machine's clock.
//! * [`served`]: the same board over TCP, for nodes on several hosts.
//! * [`virtual_time`]: a deterministic discrete-event simulation of nodes, ports, cables and the machine.
//! * [`software`]: software barriers under LogP and LogGP; [`study`]: both on the same arrivals, and parameter sweeps.
//! * [`faults`]: campaigns of every fault at every place and moment against the real driver.
//! * [`report`]: all results as one HTML page.
//! * [`event`]: the events on the wires.
//! * `emulate` (feature `emulate`): emulated port registers, so that the real drivers run against the board.
//! * [`waves`]: virtual time as a waveform with a resolution of one picosecond, with clocks and flip-flops.
//! * [`vcd`], [`channel_vcd`] and [`gtkw`]: the events as a waveform, and a save file that shows it with named, grouped signals.
//! * [`wave_files`]: a waveform with a user's file name, and the viewers' files beside it; [`words`]: numbers in sentences.
//!
//! A port-level simulator that is linked into programs instead of the hardware's driver has a precedent:
//! TTL_VAPERS did the same for Purdue's parallel-port barrier
//! (<http://aggregate.org/EXHIBITS/sc95c.html>).
//!
//! `unsafe` is in three places: module `live::shared`, which accesses the caller's memory as atomics,
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
#[cfg(any(test, fuzzing))]
pub mod fuzz;
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
