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
//! | `object` | the Verilated barriers of shared objects: the only `unsafe` of this crate |
//! | `flip_flops` | the form in which flip-flops go there and come back |
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

/// Why there is no RTL to simulate.
#[derive(Debug)]
pub enum CosimError {
    /// Verilator or the C++ compiler gave nothing; it may just not be installed.
    Tool(ToolError),
    /// The model, and with it the RTL, has no such number of nodes.
    Nodes(BadNodeCount),
    /// The same of version 2: its nodes or channels are out of range.
    Size(BadSize),
    /// The shared object could not be loaded or lacks a symbol.
    Load(libloading::Error),
    /// The constructor in the shared object had none to give.
    NoMemory,
    /// There are no Verilog files where the user's RTL should be.
    NoVerilog(PathBuf),
    /// The design has flip-flops that a board cannot keep for it.
    HiddenState {
        /// Where design and copy parted, counted from 1 at the start of the trial.
        edge: usize,
    },
    /// The design is not a barrier whose wires to the nodes are one.
    TornOutputs {
        /// The first edge after which the wires differ, counted from 1 at the start of the trial.
        edge: usize,
        /// The levels there, a bit for each node.
        outputs: u64,
    },
    /// The same for the channels of version 2.
    HiddenChannelState {
        /// Where design and copy parted, counted from 1 at the start of the trial.
        edge: usize,
    },
    /// The outputs of version 2 are not what its flip-flops say.
    OtherOutputs {
        /// The first edge where they differ, counted from 1 at the start of the trial.
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

/// Marsaglia's xorshift, "Xorshift RNGs", 2003: the stimulus of trials, the same each time.
struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Random(0x2545_f491_4f6c_dd1d)
    }
}

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
