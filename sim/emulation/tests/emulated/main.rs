//! Tests of the real port drivers without hardware:
//! `barrier_emulation` answers their instructions and system calls.
//!
//! * `rigs`: the emulated ports for the driver's test suite.
//! * `channels`: version 2, programmed and used through parallel ports.
//! * `pi`: barriers on an emulated Raspberry Pi, by its registers and by its character device.
//! * `sleepers`: the lines and edges that wake a process that sleeps in the kernel.
//! * `processes`: sixty processes; each is a node with a port of its own.
//! * `refusals`: the errors of `ports::open` without permission, without a device, or with another user.
//! * `deaths`: the level that a program leaves on its wire when it ends in a barrier.
//! * `stacks`: accesses by a program's own signal handler on a small alternate stack.
//! * `hazards`: faults of wires and nodes at the start, during barriers and at the end.
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
