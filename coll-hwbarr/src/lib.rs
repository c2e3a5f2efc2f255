//! The hardware barrier as a component of the coll framework.
//!
//! T. Hoefler, J. Squyres, T. Mehlan, F. Mietke, W. Rehm, "Implementing a Hardware-based Barrier in Open MPI",
//! Chemnitzer Informatik-Berichte, 2005.
//!
//! Version 1, the default, is as in the paper: it serves `MPI_Barrier`, `MPI_Ibarrier` and `MPI_Barrier_init` on `MPI_COMM_WORLD`
//! with one rank for each wire, and refuses everything else with a reason, so that the next component serves it.
//! Version 2 (`channels`) gives any intracommunicator one of five channels, while they last.
//!
//! It is written once, against the tables of the plugin ABI:
//! the library builds in [`TABLE`], and the plugin file exports it.
//!
//! # The life of a module
//!
//! * Query: is it the world, is a port configured, does the port reach every rank?
//! * Enable: in version 2 a channel is agreed on first; then every node opens its wires around one software fence, all agree that all could, then a self-test in which one node is late.
//!   Any doubt refuses with a sentence that names the node; the driver leaves the wire idle.
//!   Where `MPI_COMM_WORLD` is refused the library warns, or ends the job (`coll_hwbarr_required`).
//! * Barrier: write the opposite level, then poll and let MPI progress between polls; a release rings the ranks that sleep.
//! * When a barrier has not been released for `coll_hwbarr_timeout`, or a port fails, the members leave the hardware together
//!   (see `parley`), with one warning that names the missing nodes or the one whose port has failed, and the next component serves from then on.
//! * Disable, free, unwinding: the wire goes back to idle; a real port's also when the process ends without any of them
//!   (`barrier_driver::last_resort`).
//!
//! Where the port has a eureka line, which the simulator's board has in memory and served, rounds of `MPIX_Eureka_...` on
//! `MPI_COMM_WORLD` go over it (see `eureka`).
//!
//! With `coll_hwbarr_reboot` each barrier goes there and back, so that a node that reboots in the middle releases none.
//!
//! | module | what it is |
//! |---|---|
//! | `settings` | the parameters, read |
//! | `port` | what carries a node's wires: the promise, and which ports there are |
//! | `port::sim` | the simulator's live board in the node's shared memory |
//! | `port::boards` | the simulator's cascaded boards, for jobs of more ranks than one board has wires |
//! | `port::sim_files` | the waveform and the report that they leave |
//! | `port::rtl` | the Verilated RTL in the place of that board's model |
//! | `port::served` | the simulator's board of another process, over TCP, for ranks on several hosts |
//! | `port::wired` | a real port of this machine |
//! | `channels` | version 2: channels for communicators, several ranks at a node |
//! | `circle` | members that set something up together |
//! | `setup` | opening, testing |
//! | `port::line` | a node's end of the eureka line beside the barrier |
//! | `eureka` | rounds of that line |
//! | `queue` | barriers that were started, in order, and whether each is over |
//! | `parley` | how the members leave the hardware together |
//! | `module` | all of it as a module of the plugin ABI |

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

/// The component, to be built in.
pub const TABLE: BuiltIn = BuiltIn::of::<HwBarr>();

/// The component's type; what it does is in its module.
pub struct HwBarr;

impl Guest for HwBarr {
    const NAME: &'static CStr = c"hwbarr";
    const VERSION: &'static CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"0",
        };
    /// The hardware is above all components in software: a user who wires machines up wants the wires used.
    const PRIORITY: i32 = 100;
    const PARAMS: &'static [Param] = &settings::PARAMS;
    const ASKED_BY: Option<&'static CStr> = Some(settings::PORT);
    type Module = module::Module;

    fn query(comm: Comm) -> Result<module::Module, String> {
        module::Module::new(comm)
    }
}
