//! From Verilog to a bitstream with open tools, and what it costs: cells, flip-flops, clock.
//!
//! yosys synthesises, nextpnr places and routes, icepack writes the bitstream, icetime gives a second opinion on the timing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::formal::chparam;
use crate::source::{CHANNEL_RTL, CHANNEL_TOP, RTL, Source, source};
use crate::tool::{self, Tool, ToolError};

const LIMIT: Duration = Duration::from_secs(600);

/// A board, or a part of a design on a device, that the open tools build.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// How reports call it; the folder with its files has this name too.
    pub name: &'static str,
    /// The Verilog module at the top: of a board the one whose ports are its pins.
    pub top: &'static str,
    /// Names and values of the top's parameters that are not to keep their defaults.
    pub parameters: &'static [(&'static str, usize)],
    /// Everything but the pins.
    pub sources: &'static [Source],
    /// The pins, for a target that is a board; otherwise they are placed wherever they fit.
    pub pins: Option<Source>,
    /// nextpnr's device and package, and icetime's name of the device.
    pub device: &'static str,
    /// The package of the device, in the words of nextpnr.
    pub package: &'static str,
    /// What the clock has to reach, MHz.
    pub clock_mhz: f64,
}

/// Version 1 on Lattice's iCE40HX-8K breakout board, 60 nodes.
pub const ICE40_HX8K: Target = Target {
    name: "ice40-hx8k-ct256",
    top: "ice40_top",
    parameters: &[],
    sources: &[
        source!("boards/ice40-hx8k-ct256/ice40_top.v"),
        CLOCK,
        RTL[0],
        RTL[1],
        RTL[2],
        RTL[3],
    ],
    pins: Some(source!("boards/ice40-hx8k-ct256/ice40_top.pcf")),
    device: "hx8k",
    package: "ct256",
    clock_mhz: 25.175,
};

/// Version 2 on the same board, 6 nodes.
pub const ICE40_HX8K_CHANNELS: Target = Target {
    name: "ice40-hx8k-channels-6",
    top: "ice40_channels_top",
    sources: &[
        source!("boards/ice40-hx8k-ct256/ice40_channels_top.v"),
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
    ..ICE40_HX8K
};

/// Version 2 for as many nodes as the package has pins for; no board.
pub const CHANNELS_22: Target = Target {
    name: "channels-22-no-board",
    top: CHANNEL_TOP,
    parameters: &[("N", 22), ("C", 5)],
    sources: &CHANNEL_RTL,
    pins: None,
    ..ICE40_HX8K
};

const CLOCK: Source = source!("boards/ice40-hx8k-ct256/ice40_clock.v");

/// Every target.
pub const TARGETS: &[Target] = &[ICE40_HX8K, ICE40_HX8K_CHANNELS, CHANNELS_22];

/// What a build needs of the device, as the tools report it.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Look-up tables with four inputs, cells of the kind `SB_LUT4`.
    pub luts: u32,
    /// Cells of every kind `SB_DFF…`, as yosys counts them after synthesis.
    pub flip_flops: u32,
    /// Logic cells in use, and how many the device has.
    pub cells: (u32, u32),
    /// Pins in use, and how many the device has.
    pub pins: (u32, u32),
    /// The fastest clock by nextpnr and by icetime, MHz.
    pub fmax_mhz: f64,
    /// By icetime alone, which judges the finished layout by tables of its own.
    pub icetime_mhz: f64,
    /// The file for the device's flash memory, in the folder of the build.
    pub bitstream: PathBuf,
    /// The bitstream's length.
    pub bytes: u64,
}

/// Builds a target in a folder.
pub fn build(target: &Target, folder: &Path) -> Result<Report, ToolError> {
    for source in target.sources.iter().chain(&target.pins) {
        tool::write(&folder.join(source.name()), source.text)?;
    }
    let names: Vec<_> = target.sources.iter().map(Source::name).collect();
    let Target {
        top,
        parameters,
        device,
        package,
        pins,
        clock_mhz,
        ..
    } = target;
    let script = format!(
        "read_verilog {}\nhierarchy -top {top}{}\nrename -top {top}\nsynth_ice40 -top {top} -json top.json\ntee -o stat.txt stat\n",
        names.join(" "),
        chparam(parameters),
    );
    tool::write(&folder.join("synth.ys"), &script)?;
    Tool::YOSYS.run("synthesis", ["-q", "-s", "synth.ys"], folder, LIMIT)?;
    let flags = [format!("--{device}"), format!("--freq={clock_mhz}")];
    let fixed = match pins {
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
            .chain([*package])
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
    tool::write(&folder.join("timing.txt"), &timed)?;
    let stat = tool::read(&folder.join("stat.txt"))?;
    let bitstream = folder.join("top.bin");
    let bytes = std::fs::metadata(&bitstream)
        .map_err(|e| ToolError::Folder(bitstream.display().to_string(), e))?
        .len();
    read_reports(&stat, &placed, &timed)
        .map(|report| Report {
            bitstream,
            bytes,
            ..report
        })
        .ok_or_else(|| ToolError::Failed {
            tool: Tool::NEXTPNR,
            what: "a report that can be read".to_owned(),
            log: placed,
        })
}

/// What synthesis alone says a design needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cells {
    /// Look-up tables with four inputs.
    pub luts: u32,
    /// Flip-flops.
    pub flip_flops: u32,
}

/// Synthesises a design in a folder and counts its cells.
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

/// How many cells yosys has counted whose kind begins so.
fn count(stat: &str, begins: &str) -> u32 {
    stat.lines()
        .map(str::split_whitespace)
        .filter_map(|mut words| {
            words.next()?.starts_with(begins).then_some(())?;
            words.next()?.parse::<u32>().ok()
        })
        .sum::<u32>()
}

/// The numbers in the tools' own words.
fn read_reports(stat: &str, placed: &str, timed: &str) -> Option<Report> {
    // "Info: ICESTORM_LC:   164/ 7680     2%", among other lines about the same cells.
    let used = |what: &str| -> Option<(u32, u32)> {
        placed.lines().find_map(|line| {
            let (_, numbers) = line.split_once(what)?;
            let (used, rest) = numbers.split_once('/')?;
            let all = rest.split_whitespace().next()?;
            Some((used.trim().parse().ok()?, all.parse().ok()?))
        })
    };
    // "Info: Max frequency for clock 'clk': 138.50 MHz (PASS at 25.18 MHz)"; the last is after routing.
    let fmax = placed
        .lines()
        .rev()
        .find(|line| line.contains("Max frequency for clock"))?;
    let fmax = fmax.rsplit_once(": ")?.1.split_whitespace().next()?;
    // "Total path delay: 6.99 ns (143.06 MHz)"
    let icetime = timed
        .lines()
        .find(|line| line.contains("Total path delay"))?;
    let icetime = icetime.split_once('(')?.1.split_whitespace().next()?;
    Some(Report {
        luts: count(stat, "SB_LUT4"),
        flip_flops: count(stat, "SB_DFF"),
        cells: used("ICESTORM_LC:")?,
        pins: used("SB_IO:")?,
        fmax_mhz: fmax.parse().ok()?,
        icetime_mhz: icetime.parse().ok()?,
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
        let report = read_reports(stat, placed, timed).expect("numbers");
        assert_eq!((report.luts, report.flip_flops), (41, 123));
        assert_eq!((report.cells, report.pins), ((164, 7680), (63, 256)));
        assert_eq!((report.fmax_mhz, report.icetime_mhz), (138.5, 143.06));
        assert_eq!(read_reports(stat, "", timed), None);
    }
}
