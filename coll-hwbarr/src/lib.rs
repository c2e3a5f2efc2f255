//! The hardware barrier as a component of the coll framework.
//!
//! T. Hoefler, J. Squyres, T. Mehlan, F. Mietke, W. Rehm, "Implementing a Hardware-based Barrier in Open MPI",
//! Chemnitzer Informatik-Berichte, 2005.
//!
//! Version 1, the default, works as in the paper: it serves `MPI_Barrier`, `MPI_Ibarrier` and
//! `MPI_Barrier_init` on `MPI_COMM_WORLD`
//! with one rank per wire, and refuses every other communicator with a reason, so the next component serves it.
//! Version 2 (`channels`) gives any intracommunicator one of five channels, as long as one is free.
//!
//! The code is written once, against the tables of the plugin ABI:
//! the library links [`TABLE`], and the plugin file exports it.
//!
//! # The life cycle of a module
//!
//! * Query: checks that the communicator is `MPI_COMM_WORLD`, that a port is configured, and that the port reaches every rank.
//! * Enable: version 2 first agrees on a channel.
//!   Then every node opens its wires around one software fence,
//!   all nodes agree that all have succeeded,
//!   and a self-test runs in which one node is late.
//!   Any failure refuses the communicator with a message that names the node; the driver leaves the wire idle.
//!   If `MPI_COMM_WORLD` is refused, the library warns, or ends the job (`coll_hwbarr_required`).
//! * Barrier: writes the opposite level, then polls and lets MPI progress between polls; a release wakes the sleeping ranks.
//! * Failure: if a barrier is not released within `coll_hwbarr_timeout`, or a port fails, the members leave the hardware together
//!   (see `fallback_agreement`), with one warning that names the missing nodes or the node with the failed port. The next component serves from then on.
//! * Disable, free, unwinding: the wire returns to idle; the wire of a real port also does if the process ends without any of them
//!   (`barrier_driver::last_resort`).
//!
//! If the port has a eureka line (the simulator's board has one, in memory and served), rounds of `MPIX_Eureka_...` on
//! `MPI_COMM_WORLD` use it (see `eureka`).
//!
//! With `coll_hwbarr_reboot` each barrier changes the wires twice,
//! to the other level and back to idle, so a node that reboots during a barrier releases no node.
//!
//! | module | what it is |
//! |---|---|
//! | `settings` | parses the parameters |
//! | `choice` | the choice of port |
//! | `port` | the trait of a node's wires, and the kinds of ports |
//! | `port::sim` | the simulator's live board in the node's shared memory |
//! | `port::boards` | the simulator's cascaded boards, for jobs with more ranks than one board has wires |
//! | `port::sim_files` | the simulator's waveform and report |
//! | `port::rtl` | the Verilated RTL, which replaces that board's model |
//! | `port::served` | the simulator's board in another process, over TCP, for ranks on several hosts |
//! | `port::wired` | a real port of this machine |
//! | `channels` | version 2: channels for communicators, several ranks per node |
//! | `setup_group` | collective setup steps, with an agreement after each |
//! | `setup` | opening and testing the wires |
//! | `port::line` | a node's end of the eureka line |
//! | `eureka` | rounds of the eureka line |
//! | `queue` | the started barriers, in order, and their states |
//! | `fallback_agreement` | how the members leave the hardware together |
//! | `sentence` | names of nodes in messages |
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

/// The component's type; its behaviour is in `module`.
pub struct HwBarr;

impl Guest for HwBarr {
    const NAME: &'static CStr = c"hwbarr";
    const VERSION: &'static CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"0",
        };
    /// The priority is above those of all software components: a configured port is used.
    const PRIORITY: i32 = 100;
    const PARAMS: &'static [Param] = &settings::PARAMS;
    const ASKED_BY: Option<&'static CStr> = Some(settings::PORT);
    type Module = module::Module;

    fn query(comm: Comm) -> Result<module::Module, String> {
        module::Module::new(comm)
    }
}
