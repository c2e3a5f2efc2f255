//! `libmpi_abi.so.1`: the standard MPI 5.0 C interface over the engine, and the composition root of the library.
//!
//! * `api/*.txt` describes the interface; the build script generates [`abi`] (types and constants) and the exported symbols from it.
//! * [`api`] holds the implementations, one file for each subject, with C's types and Rust's errors.
//! * [`call`](mod@call) wraps every exported symbol: it notes the call, keeps panics on this side of the C boundary and
//!   reports failures to the error handlers.
//! * [`object`] holds the objects behind handles, [`state`] their tables, and [`registry`] assigns and removes handles.
//! * [`handle`] issues handles that are numbers, never addresses, so that a stale or invented one is a reported error.
//! * [`error`] owns classes, codes, texts and error handlers; [`raise`](mod@raise) looks up the handler of a failure and calls it.
//!
//! All process-wide state is in this crate; nothing below it is global.

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
mod thrown;
pub mod tool;
pub mod unknown_params;
mod unreceived;
mod unwind;

pub use functions::{FunctionInfo, extensions, functions};
