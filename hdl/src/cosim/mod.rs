//! Co-simulation: the Verilated RTL replaces the Rust model.
//!
//! The module has two interfaces:
//!
//! * An [`RtlBoard`] is one barrier in this process with embedded-hal pins, usable from any thread.
//!   Time advances with pin accesses: each access runs a configured number of clock edges (before a read, after a write),
//!   so a run can be repeated if the order of the accesses is the same.
//! * An [`Rtl`] is the next-state function of a board whose flip-flops are stored elsewhere, such as the simulator's in shared memory:
//!   It loads the flip-flops, evaluates one edge, and returns the new flip-flops.
//!   So several processes can share one RTL machine although no process hosts it,
//!   and no state is lost when a process dies.
//!   The result is correct only if the design has no other flip-flops, which a trial at the start checks.
//!
//! | module | what it is |
//! |---|---|
//! | `design` | the RTL to simulate |
//! | `object` | loads the Verilated barriers as shared objects; has the only `unsafe` of this crate |
//! | `flip_flops` | the structs of the shared objects' C interfaces |
//! | `gates` | [`Rtl`] |
//! | `channel_gates` | [`ChannelRtl`], the same for version 2 |
//! | `pins` | [`RtlBoard`] |

mod channel_gates;
mod design;
mod flip_flops;
mod gates;
mod object;
mod pins;

pub use channel_gates::ChannelRtl;
pub use design::{ChannelDesign, Design};
pub use gates::Rtl;
pub use pins::{RtlBoard, RtlPin};

use std::fmt;
use std::path::PathBuf;

use fpga_model::BadNodeCount;
use fpga_model::channels::BadSize;

use crate::tool::ToolError;

/// The reason why the RTL cannot be simulated.
#[derive(Debug)]
pub enum CosimError {
    /// Verilator or the C++ compiler failed, or is not installed.
    Tool(ToolError),
    /// The model and the RTL do not support this number of nodes.
    Nodes(BadNodeCount),
    /// Version 2 does not support this number of nodes or channels.
    Size(BadSize),
    /// The shared object could not be loaded or lacks a symbol.
    Load(libloading::Error),
    /// The constructor in the shared object returned null.
    NoMemory,
    /// The folder of the user's RTL has no Verilog files.
    NoVerilog(PathBuf),
    /// The design has flip-flops outside those that a board stores.
    HiddenState {
        /// The edge of the first difference, counted from 1 at the start of the trial.
        edge: usize,
    },
    /// The design drives its wires to the nodes with different levels.
    TornOutputs {
        /// The first edge after which the levels differ, counted from 1 at the start of the trial.
        edge: usize,
        /// The levels of the wires after that edge, one bit per node.
        outputs: u64,
    },
    /// The version 2 design has flip-flops outside those that a board stores.
    HiddenChannelState {
        /// The edge of the first difference, counted from 1 at the start of the trial.
        edge: usize,
    },
    /// Outputs of version 2 differ from those of the model with the same flip-flops.
    OtherOutputs {
        /// The first edge at which the outputs differ, counted from 1 at the start of the trial.
        edge: usize,
    },
}

impl fmt::Display for CosimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(error) => error.fmt(f),
            Self::Nodes(error) => error.fmt(f),
            Self::Size(error) => error.fmt(f),
            Self::Load(error) => write!(f, "the Verilated barrier cannot be loaded: {error}"),
            Self::NoMemory => write!(f, "there is no memory for a Verilated barrier"),
            Self::NoVerilog(folder) => {
                write!(
                    f,
                    "there are no Verilog files (*.v) in {}",
                    folder.display()
                )
            }
            Self::HiddenState { edge } => write!(
                f,
                "the RTL remembers more than sync.stage1_q, sync.stage2_q and machine.level_q, \
                 which the board keeps for it: at edge {edge} of a trial it did otherwise than its copy"
            ),
            Self::TornOutputs { edge, outputs } => write!(
                f,
                "the wires to the nodes do not all have one level: {outputs:#x} at edge {edge} of a trial"
            ),
            Self::HiddenChannelState { edge } => write!(
                f,
                "the RTL remembers more than the flip-flops of channel_barrier, \
                 which the board keeps for it: at edge {edge} of a trial it did otherwise than its copy"
            ),
            Self::OtherOutputs { edge } => write!(
                f,
                "the releases and replies of the RTL are not those of its flip-flops at edge {edge} of a trial"
            ),
        }
    }
}

impl std::error::Error for CosimError {}
