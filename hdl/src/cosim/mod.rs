//! Co-simulation: the RTL itself, Verilated, in place of the model.
//!
//! Two ways to use it:
//!
//! * A [`RtlBoard`] is one barrier in this process with embedded-hal pins, which may go to any thread.
//!   Time is counted in accesses: each lets the clock tick as often as the board says, before it reads or after it writes,
//!   so a run is repeatable if the order of accesses is.
//! * An [`Rtl`] are the gates of a board whose flip-flops are elsewhere, such as the simulator's in shared memory:
//!   they are loaded, one edge is evaluated, and they are taken out again.
//!   So many processes share one machine of RTL, none of them is its host, and there is nothing to lose when one dies.
//!   That is sound while the design has no other flip-flops, which a trial at the start finds out.
//!
//! | module | what it is |
//! |---|---|
//! | `design` | which RTL |
//! | `object` | the Verilated barrier of a shared object: the only `unsafe` of this crate |
//! | `gates` | [`Rtl`] |
//! | `pins` | [`RtlBoard`] |

mod design;
mod gates;
mod object;
mod pins;

pub use design::Design;
pub use gates::Rtl;
pub use pins::{RtlBoard, RtlPin};

use std::fmt;
use std::path::PathBuf;

use fpga_model::BadNodeCount;

use crate::tool::ToolError;

/// Why there is no RTL to simulate.
#[derive(Debug)]
pub enum CosimError {
    Tool(ToolError),
    Nodes(BadNodeCount),
    /// The shared object could not be loaded or lacks a symbol.
    Load(libloading::Error),
    NoMemory,
    /// There are no Verilog files where the user's RTL should be.
    NoVerilog(PathBuf),
    /// The design has flip-flops that a board cannot keep for it.
    HiddenState {
        edge: usize,
    },
    /// The design is not a barrier whose wires to the nodes are one.
    TornOutputs {
        edge: usize,
        outputs: u64,
    },
}

impl fmt::Display for CosimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(error) => error.fmt(f),
            Self::Nodes(error) => error.fmt(f),
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
        }
    }
}

impl std::error::Error for CosimError {}
