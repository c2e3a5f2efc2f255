//! Emulated port hardware, so that the real drivers run against the simulator.
//!
//! * [`parallel`]: the registers of a parallel port, with a node's wires at its connector.
//! * [`cable`]: the effect of a cable on a wire, including cabling faults.
//! * [`channels`]: a version 2 board at the connectors of parallel ports.
//! * [`gpio`]: a GPIO chip, its registers, its character device, and the machine that has them.
//! * [`supervised`]: GPIO chips for a command and all processes that it starts, by notifications of seccomp.
//! * `bpf`: instructions of seccomp filters.
//! * [`trap`]: emulates the port instructions and `ioperm` of this process, its accesses to
//!   `/dev/gpiomem`, and the ioctls of `/dev/gpiochip0` (x86-64 Linux only).
//! * [`registers`]: the register block of the barrier behind a file that programs map.
//! * [`uio`]: the interrupts of that block's nodes, as UIO device files of Linux,
//!   by a file system in user space.
//! * [`ppdev`]: answers the ioctls of `/dev/parportN` for any process, from a file system in user space.
//!
//! No part of the driver is replaced: its port instructions trap, its system calls are executed,
//! and the emulation handles both.
//! Precedents for the trapped instructions are Wine, dosemu2 and Xen's emulation of privileged operations.
//!
//! `unsafe` is in three modules: [`trap`], whose signal handlers execute port instructions,
//! [`supervised`], which reads and writes the memory of processes for the ioctls of seccomp's listener, and one line of `gpio::machine`.

#![deny(unsafe_code)]
#![warn(missing_docs)]

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod bpf;
pub mod cable;
pub mod channels;
#[cfg(target_os = "linux")]
mod device_folder;
#[cfg(target_os = "linux")]
pub mod gpio;
pub mod parallel;
#[cfg(target_os = "linux")]
pub mod ppdev;
#[cfg(target_os = "linux")]
pub mod registers;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub mod supervised;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
pub mod trap;
#[cfg(target_os = "linux")]
pub mod uio;
