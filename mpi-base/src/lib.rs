//! Foundations of the MPI engine: shared memory, atomics, rings, doorbells, parameters.

#![deny(unsafe_code)]
#![warn(missing_docs)]

#[cfg(not(loom))]
pub mod accelerator;
pub mod arena;
pub mod atomic;
pub mod bitmap;
#[cfg(not(loom))]
pub mod caches;
pub mod cells;
#[cfg(not(loom))]
pub mod clock;
#[cfg(not(loom))]
pub mod cma;
pub mod copy;
#[cfg(not(loom))]
pub mod cpu;
#[cfg(not(loom))]
pub mod debug_page;
#[cfg(not(loom))]
pub mod descriptor_doorbell;
pub mod doorbell;
#[cfg(not(loom))]
pub mod environment;
#[cfg(not(loom))]
pub mod fdpass;
pub mod fence;
#[cfg(not(any(loom, miri)))]
pub mod first_pages;
#[cfg(all(any(test, fuzzing), not(loom)))]
pub mod fuzz;
#[cfg(not(loom))]
pub mod hardware;
pub mod inbox;
#[cfg(not(loom))]
pub mod installation;
#[cfg(not(loom))]
mod kept_pages;
#[cfg(not(loom))]
pub mod mem;
#[cfg(not(loom))]
pub mod migrate;
#[cfg(not(loom))]
pub mod node;
pub mod occupancy;
#[cfg(not(loom))]
pub mod param;
#[cfg(not(loom))]
pub mod plugin_file;
#[cfg(not(loom))]
pub mod privilege;
pub mod proc;
#[cfg(not(loom))]
pub mod race_detectors;
pub mod random;
pub mod ranges;
pub mod ring;
#[cfg(not(loom))]
mod ring_socket;
#[cfg(not(loom))]
pub mod shared_core;
pub mod shm_agreement;
pub mod split_copy;
#[cfg(not(loom))]
pub mod state;
#[cfg(not(loom))]
pub mod text;
#[cfg(not(loom))]
pub mod valgrind;
pub mod wait;
pub mod watcher;
pub mod window;
#[cfg(not(loom))]
pub mod xpmem;
pub mod yield_now;

#[cfg(all(test, loom))]
mod loom_models;
