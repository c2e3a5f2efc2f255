//! `libmpi_abi.so.1`: the MPI 5.0 C interface over the engine, and its composition root.
//!
//! * `api/*.txt` describes the interface.
//!   The build script generates [`abi`] and the exported symbols.
//! * [`api`] has the implementations, one file per subject, with C argument types and Rust errors.
//! * [`call`](mod@call) wraps every exported symbol: call accounting, panics and error handlers.
//!   A panic never crosses the C boundary.
//! * [`object`] has the objects behind handles, and [`state`] has their tables.
//!   [`registry`] assigns and removes handles.
//! * [`handle`] issues integers as handles, so that a stale or invalid handle is a reported error.
//! * [`error`] has error classes, codes, texts and handlers.
//!   [`raise`](mod@raise) calls the handlers.
//!
//! All process-wide state is in this crate; the crates below have no global state.

#![deny(unsafe_code)]

pub mod abi;
mod abort;
pub mod api;
pub mod call;
mod checkpoint;
pub mod components;
pub mod convert;
mod crash;
pub mod debug_page;
mod device;
pub mod error;
pub mod explain;
mod exports;
mod forked;
pub mod frameworks;
pub mod functions;
pub mod handle;
mod helper;
mod host;
pub mod info;
pub mod init;
pub mod initial_handler;
mod lane_tools;
mod lanes;
mod leak_report;
mod lock;
pub mod memory_rights;
pub mod object;
mod origin;
pub mod other_abis;
pub mod params;
pub mod phase;
pub mod raise;
pub mod registry;
pub mod state;
pub mod stdio;
mod thread_waits;
mod thrown;
pub mod tool;
pub mod unknown_params;
mod unreceived;
mod unwind;

pub use functions::{FunctionInfo, extensions, functions};
