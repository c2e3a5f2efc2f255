//! The barrier as hardware: sources, test benches, proofs, and the way to a bitstream.
//!
//! `toggle/` is version 1 of the barrier with its eureka line, `channels/` version 2, `shared/` what both are made of; each has the same folders:
//!
//! * `rtl/` is the design, one module in each file and nothing that an old synthesiser would refuse:
//!   Verilog-2001 and its twin in VHDL-93.
//! * `dv/` drives it in a simulator. The cycle-accurate model in the crate `fpga-model` is the reference:
//!   the test `model_and_rtl` compares the two edge by edge, flip-flop by flip-flop.
//! * `formal/` states what is proved of it; [`toggle_claims`], [`board_claims`], [`eureka_claims`] and [`channel_claims`] list it, [`formal`] decides it with yosys and ABC.
//! * `boards/` has the pins; [`fpga`] makes a bitstream and its timing report.
//!
//! Building this crate needs none of the tools; [`tool`] says which Debian package brings each.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod board_claims;
pub mod cache;
pub mod channel_claims;
pub mod cosim;
pub mod elaboration;
pub mod eureka_claims;
pub mod formal;
pub mod fpga;
pub mod icarus;
pub mod kit;
pub mod lines;
mod source;
pub mod toggle_claims;
pub mod tool;
pub mod verilator;
mod yosys;

pub use source::{
    CHANNEL_PIPE_BENCH, CHANNEL_RTL, CHANNEL_TOP, CHANNEL_TRACE_BENCH, CHANNEL_VHDL, EUREKA_RTL,
    EUREKA_TOP, EUREKA_TRACE_BENCH, EUREKA_VHDL, RTL, Source, TOP, TRACE_BENCH, VHDL,
};
