//! List of the source files of this crate, each with its path and its text.

use std::path::{Path, PathBuf};

/// A source file of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The file's path relative to the crate's folder.
    pub file: &'static str,
    /// The file's text, compiled in so that programs also run without the sources.
    pub text: &'static str,
}

impl Source {
    /// Returns the file's absolute path, as it was when this crate was built.
    pub fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.file)
    }

    /// Returns the file name without the folder.
    pub fn name(&self) -> &'static str {
        self.file.rsplit('/').next().unwrap_or(self.file)
    }
}

/// Returns a [`Source`] with a file's path and its text.
macro_rules! source {
    ($file:literal) => {
        $crate::source::Source {
            file: $file,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $file)),
        }
    };
}
pub(crate) use source;

/// The top module of version 1; its parameters are `N`, the number of nodes (default 60), and `FILTER`, the number of equal samples that make a level (default 1).
pub const TOP: &str = "toggle_barrier";

/// The Verilog files of version 1, the top module first.
pub const RTL: [Source; 4] = [
    source!("toggle/rtl/toggle_barrier.v"),
    source!("shared/rtl/synchroniser.v"),
    source!("shared/rtl/level_filter.v"),
    source!("toggle/rtl/toggle_machine.v"),
];

/// The top module of the eureka line, with the parameters of [`TOP`].
pub const EUREKA_TOP: &str = "eureka_line";

/// The Verilog files of the eureka line, the top module first.
pub const EUREKA_RTL: [Source; 4] = [
    source!("toggle/rtl/eureka_line.v"),
    source!("shared/rtl/synchroniser.v"),
    source!("shared/rtl/level_filter.v"),
    source!("toggle/rtl/eureka_machine.v"),
];

/// The top module of version 2: `N` nodes, `C` channels, and a lease of `2^LEASE_BITS` clock edges.
pub const CHANNEL_TOP: &str = "channel_barrier";

/// The Verilog files of version 2, the top module first.
pub const CHANNEL_RTL: [Source; 7] = [
    source!("channels/rtl/channel_barrier.v"),
    source!("shared/rtl/synchroniser.v"),
    source!("channels/rtl/channel_machine.v"),
    source!("channels/rtl/channel_line.v"),
    source!("channels/rtl/channel_arbiter.v"),
    source!("channels/rtl/channel_frame.v"),
    source!("channels/rtl/channel_command.v"),
];

/// The VHDL-93 files of version 1, in analysis order.
pub const VHDL: [Source; 5] = [
    source!("shared/rtl/barrier_logic.vhd"),
    source!("shared/rtl/synchroniser.vhd"),
    source!("shared/rtl/level_filter.vhd"),
    source!("toggle/rtl/toggle_machine.vhd"),
    source!("toggle/rtl/toggle_barrier.vhd"),
];

/// The VHDL-93 files of the eureka line, in analysis order.
pub const EUREKA_VHDL: [Source; 5] = [
    VHDL[0],
    VHDL[1],
    VHDL[2],
    source!("toggle/rtl/eureka_machine.vhd"),
    source!("toggle/rtl/eureka_line.vhd"),
];

/// The VHDL-93 files of version 2, in analysis order.
pub const CHANNEL_VHDL: [Source; 8] = [
    VHDL[0],
    VHDL[1],
    source!("channels/rtl/channel_line.vhd"),
    source!("channels/rtl/channel_arbiter.vhd"),
    source!("channels/rtl/channel_frame.vhd"),
    source!("channels/rtl/channel_machine.vhd"),
    source!("channels/rtl/channel_command.vhd"),
    source!("channels/rtl/channel_barrier.vhd"),
];

/// The top module of the register block: `N` nodes in `G` groups, with `SYNC` synchroniser stages.
pub const REGISTER_TOP: &str = "barrier_regs";

/// The register block in Verilog without a bus, the top module first. Only its contract needs the last file.
pub const REGISTER_RTL: [Source; 5] = [
    source!("registers/rtl/barrier_regs.v"),
    source!("shared/rtl/synchroniser.v"),
    source!("channels/rtl/channel_machine.v"),
    source!("shared/rtl/start_pulse.v"),
    source!("toggle/rtl/toggle_machine.v"),
];

/// The VHDL-93 files of the register block, in analysis order.
pub const REGISTER_VHDL: [Source; 5] = [
    VHDL[0],
    VHDL[1],
    source!("channels/rtl/channel_machine.vhd"),
    source!("shared/rtl/start_pulse.vhd"),
    source!("registers/rtl/barrier_regs.vhd"),
];

/// Returns the Verilog files of the register block with a bus: the top module,
/// the front (the adapter from the bus protocol to the register block, such as `apb_front`),
/// and the files of the register block without its contract.
macro_rules! bus {
    ($top:literal, $front:literal) => {
        [
            source!($top),
            source!($front),
            REGISTER_RTL[0],
            REGISTER_RTL[1],
            REGISTER_RTL[2],
            REGISTER_RTL[3],
        ]
    };
}

/// Like `bus`, for the VHDL-93 files, in analysis order.
macro_rules! vhdl_bus {
    ($top:literal, $front:literal) => {
        [
            REGISTER_VHDL[0],
            REGISTER_VHDL[1],
            REGISTER_VHDL[2],
            REGISTER_VHDL[3],
            REGISTER_VHDL[4],
            source!($front),
            source!($top),
        ]
    };
}

/// The register block in Verilog with an AXI4-Lite bus.
pub const AXI4LITE_RTL: [Source; 6] = bus!(
    "registers/rtl/barrier_axi4lite.v",
    "registers/rtl/axi4lite_front.v"
);
/// The register block in VHDL-93 with an AXI4-Lite bus.
pub const AXI4LITE_VHDL: [Source; 7] = vhdl_bus!(
    "registers/rtl/barrier_axi4lite.vhd",
    "registers/rtl/axi4lite_front.vhd"
);
/// The register block in Verilog with a Wishbone bus.
pub const WISHBONE_RTL: [Source; 6] = bus!(
    "registers/rtl/barrier_wishbone.v",
    "registers/rtl/wishbone_front.v"
);
/// The register block in VHDL-93 with a Wishbone bus.
pub const WISHBONE_VHDL: [Source; 7] = vhdl_bus!(
    "registers/rtl/barrier_wishbone.vhd",
    "registers/rtl/wishbone_front.vhd"
);
/// The register block in Verilog with an APB bus.
pub const APB_RTL: [Source; 6] = bus!("registers/rtl/barrier_apb.v", "registers/rtl/apb_front.v");
/// The register block in VHDL-93 with an APB bus.
pub const APB_VHDL: [Source; 7] = vhdl_bus!(
    "registers/rtl/barrier_apb.vhd",
    "registers/rtl/apb_front.vhd"
);

/// The testbench of version 1, which reads a stimulus file and writes a trace file.
/// Its header describes both formats.
pub const TRACE_BENCH: Source = source!("toggle/dv/trace_tb.v");

/// The testbench of the eureka line.
pub const EUREKA_TRACE_BENCH: Source = source!("toggle/dv/eureka_trace_tb.v");

/// The testbench of version 2.
pub const CHANNEL_TRACE_BENCH: Source = source!("channels/dv/channel_trace_tb.v");

/// The testbench that applies pulses of every width and phase to a serial line; its header describes the format.
pub const CHANNEL_LINE_BENCH: Source = source!("channels/dv/channel_line_tb.v");

/// The testbench of version 2 on standard input and output; its header describes the format.
pub const CHANNEL_PIPE_BENCH: Source = source!("channels/dv/channel_pipe_tb.v");

#[cfg(test)]
mod tests {
    use super::*;

    fn stem(source: &Source) -> &'static str {
        source.name().split('.').next().unwrap_or_default()
    }

    #[test]
    fn each_verilog_file_holds_the_one_module_it_is_named_after() {
        let all = RTL.into_iter().chain(CHANNEL_RTL).chain(EUREKA_RTL);
        let buses = AXI4LITE_RTL.into_iter().chain(WISHBONE_RTL).chain(APB_RTL);
        let all = all.chain(buses);
        for source in all.chain([
            TRACE_BENCH,
            EUREKA_TRACE_BENCH,
            CHANNEL_TRACE_BENCH,
            CHANNEL_LINE_BENCH,
            CHANNEL_PIPE_BENCH,
        ]) {
            let modules: Vec<_> = source
                .text
                .lines()
                .filter_map(|line| line.strip_prefix("module "))
                .map(|rest| rest.trim_end_matches([' ', '#', '(', ';']))
                .collect();
            assert_eq!(modules, [stem(&source)], "{}", source.file);
            assert!(source.path().is_file());
        }
    }

    #[test]
    fn each_vhdl_file_holds_the_one_unit_it_is_named_after() {
        let all = VHDL.into_iter().chain(CHANNEL_VHDL).chain(EUREKA_VHDL);
        let buses = AXI4LITE_VHDL.into_iter();
        let buses = buses.chain(WISHBONE_VHDL).chain(APB_VHDL);
        for source in all.chain(buses) {
            let units: Vec<_> = source
                .text
                .lines()
                .filter(|line| !line.starts_with("package body"))
                .filter_map(|line| {
                    line.strip_prefix("entity ")
                        .or_else(|| line.strip_prefix("package "))
                })
                .map(|rest| rest.trim_end_matches(" is"))
                .collect();
            assert_eq!(units, [stem(&source)], "{}", source.file);
        }
    }
}
