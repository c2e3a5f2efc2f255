//! The hardware barrier as a component of the coll framework.
//!
//! T. Hoefler, J. Squyres, T. Mehlan, F. Mietke, W. Rehm, "Implementing a Hardware-based Barrier in Open MPI",
//! Chemnitzer Informatik-Berichte, 2005.
//!
//! Version 1, the default, works as in the paper: it serves `MPI_Barrier`, `MPI_Ibarrier` and
//! `MPI_Barrier_init` on `MPI_COMM_WORLD`
//! with one rank per wire. It refuses other communicators with a reason, and the next component serves them.
//! Version 2 (`channels`) assigns one of five channels to any intracommunicator while one is free.
//!
//! The code is written one time, for the tables of the plugin ABI:
//! Portcullis links [`TABLE`], and the plugin file exports it.
//!
//! # The life cycle of a module
//!
//! * Query: checks that the communicator is `MPI_COMM_WORLD`, that a port is configured,
//!   and that the port reaches every rank.
//! * Enable: version 2 first agrees on a channel.
//!   Then every node opens its wires, before and after one software fence,
//!   all nodes agree that all have succeeded,
//!   and a self-test is performed in which one node is late.
//!   After any failure the component refuses, with a message that names the node; the wire stays idle.
//!   For `MPI_COMM_WORLD`, the library also warns, or ends the job (`coll_hwbarr_required`).
//! * Barrier: writes the opposite level, then polls and lets MPI progress between polls;
//!   a release wakes the sleeping ranks.
//! * Failure: if a barrier is not released within `coll_hwbarr_timeout`, or a port fails,
//!   the members stop using the hardware together
//!   (see `fallback_agreement`), with one warning that names the missing nodes or the failed port's node.
//!   From then on the next component performs the barriers.
//! * Disable, free, unwinding: the wire returns to idle, on a real port also if the process just ends
//!   (`barrier_driver::last_resort`).
//!
//! If the port has a eureka line (simulated boards have one), rounds of `MPIX_Eureka_...` on
//! `MPI_COMM_WORLD` use it (see `eureka`).
//!
//! With `coll_hwbarr_reboot` each barrier changes the wires twice,
//! to the other level and back to idle, so a node that reboots during a barrier releases no node.
//!
//! | module | content |
//! |---|---|
//! | `settings` | parses the parameters |
//! | `choice` | the user's choice of port |
//! | `port` | the trait of a node's wires, and the types of ports |
//! | `port::sim` | the simulated board in the node's shared memory |
//! | `port::boards` | simulated cascaded boards, for jobs with more ranks than one board has wires |
//! | `port::sim_files` | the simulator's files: waveform and report |
//! | `port::rtl` | the Verilated RTL, which replaces the model of the simulated board |
//! | `port::served` | a simulated board in another process, accessed by TCP, for ranks on several hosts |
//! | `port::wired` | a real port of this machine |
//! | `channels` | version 2: channels for communicators, several ranks per node |
//! | `setup_group` | collective setup steps, with an agreement after each |
//! | `setup` | opening and testing the wires |
//! | `port::line` | a node's wires of the eureka line |
//! | `eureka` | rounds of the eureka line |
//! | `queue` | the barriers that were started, in order, and their states |
//! | `fallback_agreement` | the members' agreement to stop using the hardware |
//! | `sentence` | lists of node names in messages |
//! | `module` | the component as a module of the plugin ABI |

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod channels;
mod choice;
#[cfg(test)]
mod defect;
mod eureka;
mod fallback_agreement;
mod module;
mod port;
mod queue;
mod sentence;
mod settings;
mod setup;
mod setup_group;
#[cfg(test)]
mod tests;

use mpi_core::plugin::abi::Param;
use mpi_core::plugin::guest::{BuiltIn, Comm, Guest};
use std::ffi::CStr;

/// The component's table, which the library links.
pub const TABLE: BuiltIn = BuiltIn::of::<HwBarr>();

/// The component's type; its functions are in `module`.
pub struct HwBarr;

impl Guest for HwBarr {
    const NAME: &'static CStr = c"hwbarr";
    const VERSION: &'static CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"0",
        };
    /// The priority exceeds those of all software components, so a configured port is used.
    const PRIORITY: i32 = 100;
    const PARAMS: &'static [Param] = &settings::PARAMS;
    const ASKED_BY: Option<&'static CStr> = Some(settings::PORT);
    type Module = module::Module;

    fn query(comm: Comm) -> Result<module::Module, String> {
        module::Module::new(comm)
    }
}
