//! FPGA build with open tools: from Verilog to a bitstream, and its resources: cells, flip-flops, clock frequency.
//!
//! yosys synthesises, nextpnr places and routes, and a packer writes the bitstream.
//! For an iCE40, icetime checks the timing independently; the other families have no such tool.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::source::{CHANNEL_RTL, CHANNEL_TOP, EUREKA_RTL, RTL, Source, source};
use crate::tool::{self, Tool, ToolError};
use crate::yosys::chparam;

const LIMIT: Duration = Duration::from_secs(600);

/// The device families of this project's boards; the open tools support all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Lattice's iCE40, supported by Project IceStorm.
    Ice40,
    /// Lattice's ECP5, supported by Project Trellis.
    Ecp5,
    /// Gowin's LittleBee, supported by Project Apicula.
    Gowin,
}

/// A build target: the design of a board, or a part of a design on a device.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name of the target in reports, and of the folder that contains its files.
    pub name: &'static str,
    /// The top-level Verilog module; if the target is a board, its ports are the pins.
    pub top: &'static str,
    /// Names and values of the parameters that differ from their defaults.
    pub parameters: &'static [(&'static str, usize)],
    /// All source files except the pin constraints.
    pub sources: &'static [Source],
    /// The pin constraints of a board; `None` lets nextpnr choose the pins.
    pub pins: Option<Source>,
    /// Number of synchronised input wires, two flip-flops each.
    pub wires: u32,
    /// The device family, which selects the tools.
    pub family: Family,
    /// The device, as nextpnr and icetime name it.
    pub device: &'static str,
    /// The package of the device, as nextpnr names it.
    pub package: &'static str,
    /// The required clock frequency, MHz.
    pub clock_mhz: f64,
    /// The command that loads the bitstream into the board; the file name follows it.
    pub loader: &'static str,
}

/// Version 1 on Lattice's iCE40HX-8K breakout board, 60 nodes.
pub const ICE40_HX8K: Target = Target {
    name: "ice40-hx8k-ct256",
    top: "ice40_top",
    parameters: &[],
    sources: &[
        source!("boards/ice40-hx8k-ct256/ice40_top.v"),
        INPUTS,
        CLOCK,
        RTL[0],
        RTL[1],
        RTL[2],
        RTL[3],
    ],
    pins: Some(source!("boards/ice40-hx8k-ct256/ice40_top.pcf")),
    wires: 60,
    family: Family::Ice40,
    device: "hx8k",
    package: "ct256",
    clock_mhz: 25.175,
    loader: "iceprog",
};

/// Version 1 on Lattice's iCEstick, 23 nodes.
pub const ICESTICK: Target = Target {
    name: "icestick",
    parameters: &[("N", 23)],
    pins: Some(source!("boards/icestick/icestick_top.pcf")),
    wires: 23,
    device: "hx1k",
    package: "tq144",
    ..ICE40_HX8K
};

/// Version 1 on the iCEstick, as the desk kit of four nodes.
pub const KIT: Target = Target {
    name: "kit-icestick-4",
    parameters: &[("N", 4)],
    pins: Some(source!("boards/kit/kit_top.pcf")),
    wires: 4,
    ..ICESTICK
};

/// The desk kit for two PCs.
/// A barrier waits for all its nodes, so each number of PCs needs its own bitstream.
pub const KIT_2: Target = Target {
    name: "kit-icestick-2",
    parameters: &[("N", 2)],
    wires: 2,
    ..KIT
};

/// The desk kit for three PCs.
pub const KIT_3: Target = Target {
    name: "kit-icestick-3",
    parameters: &[("N", 3)],
    wires: 3,
    ..KIT
};

/// The desk kit of eight nodes, with two boards of the kit.
pub const KIT_8: Target = Target {
    name: "kit-icestick-8",
    parameters: &[("N", 8)],
    wires: 8,
    ..KIT
};

/// Version 1 on the iCEBreaker, 23 nodes.
pub const ICEBREAKER: Target = Target {
    name: "icebreaker",
    sources: &[
        source!("boards/ice40-hx8k-ct256/ice40_top.v"),
        INPUTS,
        source!("boards/icebreaker/ice40_clock.v"),
        RTL[0],
        RTL[1],
        RTL[2],
        RTL[3],
    ],
    pins: Some(source!("boards/icebreaker/icebreaker_top.pcf")),
    device: "up5k",
    package: "sg48",
    ..ICESTICK
};

/// Version 1 on the ULX3S with the largest of its devices, 55 nodes.
pub const ULX3S: Target = Target {
    name: "ulx3s-85f",
    top: "ulx3s_top",
    parameters: &[],
    sources: &[
        source!("boards/ulx3s/ulx3s_top.v"),
        RTL[0],
        RTL[1],
        RTL[2],
        RTL[3],
    ],
    pins: Some(source!("boards/ulx3s/ulx3s_top.lpf")),
    wires: 55,
    family: Family::Ecp5,
    device: "85k",
    package: "CABGA381",
    clock_mhz: 25.0,
    loader: "fujprog",
};

/// Version 1 on the Tang Nano 9K, 16 nodes.
pub const TANG_NANO_9K: Target = Target {
    name: "tang-nano-9k",
    top: "tang_nano_9k_top",
    parameters: &[],
    sources: &[
        source!("boards/tang-nano-9k/tang_nano_9k_top.v"),
        RTL[0],
        RTL[1],
        RTL[2],
        RTL[3],
    ],
    pins: Some(source!("boards/tang-nano-9k/tang_nano_9k_top.cst")),
    wires: 16,
    family: Family::Gowin,
    device: "GW1N-9C",
    package: "GW1NR-LV9QN88PC6/I5",
    clock_mhz: 27.0,
    loader: "openFPGALoader -b tangnano9k",
};

/// Version 1 with a start pulse for instruments on the breakout board, 58 nodes.
pub const ICE40_HX8K_START: Target = Target {
    name: "ice40-hx8k-start-58",
    top: "ice40_start_top",
    sources: &[
        source!("boards/ice40-hx8k-ct256/ice40_start_top.v"),
        INPUTS,
        CLOCK,
        LEVEL_PULSE,
        START_PULSE,
        RTL[0],
        RTL[1],
        RTL[2],
        RTL[3],
    ],
    pins: Some(source!("boards/ice40-hx8k-ct256/ice40_start_top.pcf")),
    wires: 58,
    ..ICE40_HX8K
};

/// Version 1 with a start pulse for instruments on the ULX3S, 53 nodes.
pub const ULX3S_START: Target = Target {
    name: "ulx3s-85f-start-53",
    top: "ulx3s_start_top",
    sources: &[
        source!("boards/ulx3s/ulx3s_start_top.v"),
        LEVEL_PULSE,
        START_PULSE,
        RTL[0],
        RTL[1],
        RTL[2],
        RTL[3],
    ],
    pins: Some(source!("boards/ulx3s/ulx3s_start_top.lpf")),
    wires: 53,
    ..ULX3S
};

/// Version 1 with the eureka line on the breakout board, 19 nodes.
pub const ICE40_HX8K_EUREKA: Target = Target {
    name: "ice40-hx8k-eureka-19",
    top: "ice40_eureka_top",
    sources: &[
        source!("boards/ice40-hx8k-ct256/ice40_eureka_top.v"),
        INPUTS,
        CLOCK,
        RTL[0],
        RTL[1],
        RTL[2],
        RTL[3],
        EUREKA_RTL[0],
        EUREKA_RTL[3],
    ],
    pins: Some(source!("boards/ice40-hx8k-ct256/ice40_eureka_top.pcf")),
    wires: 2 * 19,
    ..ICE40_HX8K
};

/// Version 2 on the breakout board, 6 nodes.
pub const ICE40_HX8K_CHANNELS: Target = Target {
    name: "ice40-hx8k-channels-6",
    top: "ice40_channels_top",
    sources: &[
        source!("boards/ice40-hx8k-ct256/ice40_channels_top.v"),
        INPUTS,
        CLOCK,
        CHANNEL_RTL[0],
        CHANNEL_RTL[1],
        CHANNEL_RTL[2],
        CHANNEL_RTL[3],
        CHANNEL_RTL[4],
        CHANNEL_RTL[5],
        CHANNEL_RTL[6],
    ],
    pins: Some(source!("boards/ice40-hx8k-ct256/ice40_channels_top.pcf")),
    wires: 6 * LINES,
    ..ICE40_HX8K
};

/// Version 2 with 22 nodes, for which the package has just enough pins; there is no such board.
pub const CHANNELS_22: Target = Target {
    name: "channels-22-no-board",
    top: CHANNEL_TOP,
    parameters: &[("N", 22), ("C", 5)],
    sources: &CHANNEL_RTL,
    pins: None,
    wires: 22 * LINES,
    ..ICE40_HX8K
};

/// Number of lines of version 2 from one node: five arrivals, select, clock and data.
const LINES: u32 = 8;

const LEVEL_PULSE: Source = source!("boards/level_pulse.v");

const START_PULSE: Source = source!("shared/rtl/start_pulse.v");

const INPUTS: Source = source!("boards/ice40-hx8k-ct256/ice40_inputs.v");

const CLOCK: Source = source!("boards/ice40-hx8k-ct256/ice40_clock.v");

/// All targets.
pub const TARGETS: &[Target] = &[
    ULX3S,
    TANG_NANO_9K,
    ICE40_HX8K,
    ICESTICK,
    KIT_2,
    KIT_3,
    KIT,
    KIT_8,
    ICEBREAKER,
    ICE40_HX8K_START,
    ULX3S_START,
    ICE40_HX8K_EUREKA,
    ICE40_HX8K_CHANNELS,
    CHANNELS_22,
];

/// The resources of a build, as reported by the tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Number of 4-input look-up tables after synthesis, by yosys.
    pub luts: u32,
    /// Number of flip-flops of all kinds after synthesis, by yosys.
    pub flip_flops: u32,
    /// Number of used logic cells, and number of logic cells of the device.
    pub cells: (u32, u32),
    /// Number of used pins, and number of pins of the device.
    pub pins: (u32, u32),
    /// Maximum clock frequency reported by nextpnr, MHz.
    pub fmax_mhz: f64,
    /// Maximum clock frequency reported by icetime, MHz; icetime analyses the finished iCE40 layout with its own timing tables.
    pub icetime_mhz: Option<f64>,
    /// The bitstream, a file in the build folder for the device's flash memory.
    pub bitstream: PathBuf,
    /// Size of the bitstream in bytes.
    pub bytes: u64,
}

/// The place-and-route tool of a device family, the names of the counted resources in the tools' reports,
/// and the bitstream's file name.
struct Words {
    nextpnr: Tool,
    lut: &'static str,
    flip_flop: &'static str,
    cell: &'static str,
    pin: &'static str,
    bitstream: &'static str,
}

impl Family {
    /// Returns yosys' synthesis command.
    pub(crate) const fn synthesis(self) -> &'static str {
        match self {
            Self::Ice40 => "synth_ice40",
            Self::Ecp5 => "synth_ecp5",
            Self::Gowin => "synth_gowin",
        }
    }

    const fn words(self) -> Words {
        match self {
            Self::Ice40 => Words {
                nextpnr: Tool::NEXTPNR,
                lut: "SB_LUT4",
                flip_flop: "SB_DFF",
                cell: "ICESTORM_LC:",
                pin: "SB_IO:",
                bitstream: "top.bin",
            },
            Self::Ecp5 => Words {
                nextpnr: Tool::NEXTPNR_ECP5,
                lut: "LUT4",
                flip_flop: "TRELLIS_FF",
                cell: "TRELLIS_COMB:",
                pin: "TRELLIS_IO:",
                bitstream: "top.bit",
            },
            Self::Gowin => Words {
                nextpnr: Tool::NEXTPNR_GOWIN,
                lut: "LUT",
                flip_flop: "DFF",
                cell: "LUT4:",
                pin: "IOB:",
                bitstream: "top.fs",
            },
        }
    }
}

/// Builds a target in a folder.
pub fn build(target: &Target, folder: &Path) -> Result<Report, ToolError> {
    let words = target.family.words();
    // Checked before the synthesis, which would be wasted time if nextpnr is missing.
    if !words.nextpnr.is_there() {
        return Err(ToolError::Missing(words.nextpnr));
    }
    for source in target.sources.iter().chain(&target.pins) {
        tool::write(&folder.join(source.name()), source.text)?;
    }
    let names: Vec<_> = target.sources.iter().map(Source::name).collect();
    let top = target.top;
    let script = format!(
        "read_verilog {}\nhierarchy -top {top}{}\nrename -top {top}\n{} -top {top} -json top.json\ntee -o stat.txt stat\n",
        names.join(" "),
        chparam(target.parameters),
        target.family.synthesis(),
    );
    tool::write(&folder.join("synth.ys"), &script)?;
    Tool::YOSYS.run("synthesis", ["-q", "-s", "synth.ys"], folder, LIMIT)?;
    let (placed, timed) = match target.family {
        Family::Ice40 => lay_out_ice40(target, folder)?,
        Family::Ecp5 => lay_out_ecp5(target, folder)?,
        Family::Gowin => lay_out_gowin(target, folder)?,
    };
    tool::write(
        &folder.join("timing.txt"),
        timed.as_deref().unwrap_or(&placed),
    )?;
    let stat = tool::read(&folder.join("stat.txt"))?;
    let bitstream = folder.join(words.bitstream);
    let bytes = std::fs::metadata(&bitstream)
        .map_err(|e| ToolError::Folder(bitstream.display().to_string(), e))?
        .len();
    read_reports(&words, &stat, &placed, timed.as_deref())
        .map(|report| Report {
            bitstream,
            bytes,
            ..report
        })
        .ok_or_else(|| ToolError::Unreadable {
            tool: words.nextpnr,
            what: "cells, pins and clock".to_owned(),
        })
}

/// Builds `top.bin` from `top.json`; returns the output of nextpnr and icetime.
fn lay_out_ice40(target: &Target, folder: &Path) -> Result<(String, Option<String>), ToolError> {
    let (device, package) = (target.device, target.package);
    let flags = [
        format!("--{device}"),
        format!("--freq={}", target.clock_mhz),
    ];
    let fixed = match &target.pins {
        Some(pins) => vec!["--pcf", pins.name()],
        None => Vec::new(),
    };
    let options = "--json top.json --asc top.asc --package";
    let placed = Tool::NEXTPNR.run(
        "place and route",
        flags
            .iter()
            .map(String::as_str)
            .chain(options.split(' '))
            .chain([package])
            .chain(fixed),
        folder,
        LIMIT,
    )?;
    Tool::ICEPACK.run("the bitstream", ["top.asc", "top.bin"], folder, LIMIT)?;
    let timed = Tool::ICETIME.run(
        "the timing",
        ["-d", device, "-P", package, "-mt", "top.asc"],
        folder,
        LIMIT,
    )?;
    Ok((placed, Some(timed)))
}

/// Builds `top.bit` from `top.json`; returns the output of nextpnr.
fn lay_out_ecp5(target: &Target, folder: &Path) -> Result<(String, Option<String>), ToolError> {
    let flags = [
        format!("--{}", target.device),
        format!("--freq={}", target.clock_mhz),
    ];
    let fixed = match &target.pins {
        Some(pins) => vec!["--lpf", pins.name()],
        None => Vec::new(),
    };
    let options = "--json top.json --textcfg top.config --package";
    let placed = Tool::NEXTPNR_ECP5.run(
        "place and route",
        flags
            .iter()
            .map(String::as_str)
            .chain(options.split(' '))
            .chain([target.package])
            .chain(fixed),
        folder,
        LIMIT,
    )?;
    let packed = ["--compress", "top.config", "top.bit"];
    Tool::ECPPACK.run("the bitstream", packed, folder, LIMIT)?;
    Ok((placed, None))
}

/// Builds `top.fs` from `top.json`; returns the output of nextpnr. The package is a part of the device's name.
fn lay_out_gowin(target: &Target, folder: &Path) -> Result<(String, Option<String>), ToolError> {
    let frequency = target.clock_mhz.to_string();
    let family = format!("family={}", target.device);
    let pins = target.pins.map(|pins| format!("cst={}", pins.name()));
    let fixed = pins.iter().flat_map(|pins| ["--vopt", pins]);
    let options = ["--json", "top.json", "--write", "placed.json"];
    let device = ["--device", target.package, "--vopt", &family];
    let placed = Tool::NEXTPNR_GOWIN.run(
        "place and route",
        options
            .into_iter()
            .chain(["--freq", &frequency])
            .chain(device)
            .chain(fixed),
        folder,
        LIMIT,
    )?;
    let packed = ["-d", target.device, "-o", "top.fs", "placed.json"];
    Tool::GOWIN_PACK.run("the bitstream", packed, folder, LIMIT)?;
    Ok((placed, None))
}

/// The resources of a design after synthesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cells {
    /// Number of 4-input look-up tables.
    pub luts: u32,
    /// Number of flip-flops.
    pub flip_flops: u32,
}

/// Synthesises a design in a folder and returns the numbers of its cells.
pub fn cells(
    top: &str,
    sources: &[Source],
    parameters: &[(&str, usize)],
    folder: &Path,
) -> Result<Cells, ToolError> {
    for source in sources {
        tool::write(&folder.join(source.name()), source.text)?;
    }
    let names: Vec<_> = sources.iter().map(Source::name).collect();
    let script = format!(
        "read_verilog {}\nhierarchy -top {top}{}\nrename -top {top}\nsynth_ice40 -top {top}\ntee -o stat.txt stat\n",
        names.join(" "),
        chparam(parameters),
    );
    tool::write(&folder.join("synth.ys"), &script)?;
    Tool::YOSYS.run("synthesis", ["-q", "-s", "synth.ys"], folder, LIMIT)?;
    let stat = tool::read(&folder.join("stat.txt"))?;
    Ok(Cells {
        luts: count(&stat, "SB_LUT4"),
        flip_flops: count(&stat, "SB_DFF"),
    })
}

/// Returns the number of cells in yosys' report whose type begins with this prefix.
fn count(stat: &str, begins: &str) -> u32 {
    stat.lines()
        .map(str::split_whitespace)
        .filter_map(|mut words| {
            words.next()?.starts_with(begins).then_some(())?;
            words.next()?.parse::<u32>().ok()
        })
        .sum::<u32>()
}

fn read_reports(words: &Words, stat: &str, placed: &str, timed: Option<&str>) -> Option<Report> {
    // Parses "Info: ICESTORM_LC:   164/ 7680     2%"; other lines about the same cells differ.
    let used = |what: &str| -> Option<(u32, u32)> {
        placed.lines().find_map(|line| {
            let (_, numbers) = line.split_once(what)?;
            let (used, rest) = numbers.split_once('/')?;
            let all = rest.split_whitespace().next()?;
            Some((used.trim().parse().ok()?, all.parse().ok()?))
        })
    };
    // Parses "Info: Max frequency for clock 'clk': 138.50 MHz (PASS at 25.18 MHz)".
    // The last such line is the frequency after routing.
    let fmax = placed
        .lines()
        .rev()
        .find(|line| line.contains("Max frequency for clock"))?;
    let fmax = fmax.rsplit_once(": ")?.1.split_whitespace().next()?;
    // Parses "Total path delay: 6.99 ns (143.06 MHz)".
    let icetime = |timed: &str| -> Option<f64> {
        let line = timed
            .lines()
            .find(|line| line.contains("Total path delay"))?;
        let mhz = line.split_once('(')?.1.split_whitespace().next()?;
        mhz.parse().ok()
    };
    let icetime_mhz = match timed {
        Some(timed) => Some(icetime(timed)?),
        None => None,
    };
    Some(Report {
        luts: count(stat, words.lut),
        flip_flops: count(stat, words.flip_flop),
        cells: used(words.cell)?,
        pins: used(words.pin)?,
        fmax_mhz: fmax.parse().ok()?,
        icetime_mhz,
        bitstream: PathBuf::new(),
        bytes: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_numbers_are_read() {
        let stat = "     SB_DFF                        121\n     SB_LUT4                        41\n     SB_DFFE     2\n";
        let placed = "Info:     at iteration #1, type ICESTORM_LC: wirelen solved = 1063\nInfo: \t         ICESTORM_LC:   164/ 7680     2%\nInfo: \t               SB_IO:    63/  256    24%\n\
                      Info: Max frequency for clock 'clk': 100.00 MHz (PASS at 25.18 MHz)\n\
                      Info: Max frequency for clock 'clk': 138.50 MHz (PASS at 25.18 MHz)\n";
        let timed = "Total number of logic levels: 4\nTotal path delay: 6.99 ns (143.06 MHz)\n";
        let words = Family::Ice40.words();
        let report = read_reports(&words, stat, placed, Some(timed)).expect("numbers");
        assert_eq!((report.luts, report.flip_flops), (41, 123));
        assert_eq!((report.cells, report.pins), ((164, 7680), (63, 256)));
        assert_eq!((report.fmax_mhz, report.icetime_mhz), (138.5, Some(143.06)));
        assert_eq!(read_reports(&words, stat, "", Some(timed)), None);
        assert_eq!(read_reports(&words, stat, placed, Some("")), None);
    }

    #[test]
    fn those_of_an_ecp5_are_read() {
        let stat = "     LUT4                           43\n     PFUMX     2\n     TRELLIS_FF                    111\n";
        let placed = "Info: \t          TRELLIS_IO:      60/    365    16%\nInfo: \t        TRELLIS_COMB:      46/  83640     0%\n\
                      Info: Max frequency for clock '$glbnet$clk25_i$TRELLIS_IO_IN': 101.67 MHz (PASS at 25.00 MHz)\n";
        let report = read_reports(&Family::Ecp5.words(), stat, placed, None).expect("numbers");
        assert_eq!((report.luts, report.flip_flops), (43, 111));
        assert_eq!((report.cells, report.pins), ((46, 83640), (60, 365)));
        assert_eq!((report.fmax_mhz, report.icetime_mhz), (101.67, None));
    }
}
