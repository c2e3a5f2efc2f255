//! The barrier as hardware: sources, testbenches, proofs, and the FPGA build.
//!
//! `toggle/` is version 1 of the barrier with its eureka line, `channels/` is version 2,
//! `registers/` has the barrier as registers
//! on a bus, and `shared/` has the modules that several of them use. Each has the same folders:
//!
//! * `rtl/` is the design, one module per file, in the subset that old synthesisers accept:
//!   Verilog-2001, and an equivalent description in VHDL-93.
//! * `dv/` has the testbenches. The cycle-accurate model in crate `fpga-model` is the reference:
//!   the test `model_and_rtl` compares both edge by edge, flip-flop by flip-flop.
//! * `formal/` has the assertions; [`toggle_claims`], [`board_claims`], [`eureka_claims`], [`channel_claims`] and [`register_claims`] list the claims, and [`formal`] decides them with yosys and ABC.
//! * `boards/` has the pin constraints of the boards; [`fpga`] builds a bitstream and a timing report.
//!
//! This crate can be built without any of the tools; [`tool`] lists the Debian package of each tool.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod board_claims;
pub mod cache;
pub mod channel_claims;
pub mod cores;
pub mod cosim;
pub mod coverage;
pub mod elaboration;
pub mod eureka_claims;
pub mod formal;
pub mod fpga;
pub mod icarus;
pub mod masters;
pub mod metastability;
pub mod mutation;
pub mod play;
pub mod power;
pub mod random;
pub mod register_claims;
pub mod register_device;
mod source;
pub mod timed_netlist;
pub mod toggle_claims;
pub mod tool;
pub mod vcd;
pub mod verilator;
mod yosys;

pub use source::{
    CHANNEL_PIPE_BENCH, CHANNEL_RTL, CHANNEL_TOP, CHANNEL_TRACE_BENCH, CHANNEL_VHDL, EUREKA_RTL,
    EUREKA_TOP, EUREKA_TRACE_BENCH, EUREKA_VHDL, REGISTER_RTL, REGISTER_TOP, REGISTER_VHDL, RTL,
    Source, TOP, TRACE_BENCH, VHDL,
};
