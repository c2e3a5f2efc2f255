//! `libmpi_abi.so.1`: the standard MPI 5.0 C interface over the engine, and the composition root of the library.
//!
//! * `api/*.txt` describes the interface; the build script makes [`abi`] (types and constants) and the exported symbols from it.
//! * [`api`] holds the implementations, one file for each subject, in C's types but with Rust's errors.
//! * [`call`](mod@call) is what every exported symbol passes through: it notes the call, keeps panics on this side of the C boundary and
//!   takes failures to the error handlers.
//! * [`object`] holds what handles stand for, [`state`] the tables of it, and [`registry`] gives objects handles and takes them back.
//! * [`handle`] gives out handles that are numbers, never addresses, so that a stale or invented one is an error with a sentence.
//! * [`error`] owns classes, codes, texts and error handlers.
//!
//! Nothing below this crate is global; everything process-wide is here.

#![deny(unsafe_code)]

pub mod abi;
mod abort;
pub mod api;
pub mod call;
pub mod components;
pub mod convert;
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
mod lock;
pub mod memory_rights;
pub mod object;
pub mod other_abis;
pub mod params;
pub mod phase;
pub mod registry;
pub mod state;
pub mod stdio;
mod thrown;
pub mod tool;
mod unfreed;
pub mod unknown_params;
mod unreceived;

pub use functions::{FunctionInfo, extensions, functions};
