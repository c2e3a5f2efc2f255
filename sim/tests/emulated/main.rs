//! The real drivers of ports, without the hardware: their instructions and system calls are answered by `sim::emulate`.
//!
//! * `rigs`: the emulated ports as rigs of the driver's suite.
//! * `channels`: version 2, programmed and used through parallel ports.
//! * `pi`: the same on an emulated Raspberry Pi, by its registers and by its character device.
//! * `sleepers`: which lines wake a process that sleeps in the kernel, and which edges do.
//! * `processes`: sixty processes, each a node with a port of its own.
//! * `refusals`: what `ports::open` says where it may not, cannot, or finds another program there.
//! * `deaths`: what a program leaves on its wire when it ends in a barrier.
//! * `stacks`: what a program's own signal handler does to its port on a small alternate stack.
//! * `hazards`: what goes wrong with wires and nodes at start, at the end and in the middle.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

mod channels;
mod deaths;
mod hazards;
mod pi;
mod processes;
mod refusals;
mod rigs;
mod sleepers;
mod stacks;
