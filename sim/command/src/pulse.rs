//! `hwbarr pulse`: shows and sets the start pulse of a register block: groups, width and polarity.

use crate::{Failure, say};
use barrier_driver::registers::{RegisterBlock, StartPulse};
use clap::Args;
use std::fs::File;
use std::path::PathBuf;

/// Show or set the start pulse of a register block: its line start_o is active for some cycles after a release.
///
/// Without --cycles the settings are printed and kept. The block's line is for instruments: an oscilloscope, a camera, a data acquisition card.
#[derive(Args)]
pub struct Pulse {
    /// The file with the registers: a UIO device, or a resource file of a PCI device.
    file: PathBuf,
    /// Where the registers begin in the file, such as 0x1000.
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = number)]
    offset: u64,
    /// Cycles of a pulse, 0 for no more pulses.
    #[arg(long)]
    cycles: Option<u16>,
    /// Groups whose releases start a pulse, such as 0+2.
    #[arg(long, default_value = "0", value_parser = groups)]
    groups: u8,
    /// The line is low in a pulse and high otherwise.
    #[arg(long)]
    low: bool,
}

/// Parses a decimal number, or a hexadecimal one after `0x`.
fn number(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("'{text}' is no number of bytes such as 4096 or 0x1000"))
}

/// Parses groups such as `0+2`.
fn groups(text: &str) -> Result<u8, String> {
    text.split('+').try_fold(0, |all, group| {
        let group = group.parse::<u32>().ok().filter(|group| *group < 8);
        let group = group.ok_or_else(|| format!("'{text}' is no list of groups such as 0+2"))?;
        Ok(all | 1 << group)
    })
}

impl Pulse {
    pub fn execute(self) -> Result<(), Failure> {
        let name = format!("the register block in {}", self.file.display());
        let file = File::options().read(true).write(true).open(&self.file);
        let file = file.map_err(|e| format!("{name} cannot be opened: {e}"))?;
        let block = RegisterBlock::map(&file, self.offset, &name)?;
        let Some(old) = block.start_pulse() else {
            return Err(
                format!("{name} has no start pulse: bit PULSE of its register CAPS is 0").into(),
            );
        };
        let count = block.sizes().groups;
        if self.cycles.is_some() && u32::from(self.groups) >> count != 0 {
            return Err(format!("{name} has {count} groups, counted from 0").into());
        }
        let wanted = self.cycles.map(|cycles| StartPulse {
            groups: self.groups,
            cycles,
            is_inverted: self.low,
        });
        if let Some(wanted) = wanted {
            block.set_start_pulse(wanted);
        }
        say(&described(
            wanted.unwrap_or(old),
            block.clock_hz(),
            block.start_time(),
        ))
    }
}

/// Describes the settings in words, and the clock cycle of the release that began the last pulse.
fn described(pulse: StartPulse, clock_hz: u32, started: u32) -> String {
    let groups: Vec<String> = (0..8)
        .filter(|group| pulse.groups >> group & 1 == 1)
        .map(|group| group.to_string())
        .collect();
    let settings = match (pulse.cycles, groups.as_slice()) {
        (0, _) | (_, []) => "no release starts a pulse".to_owned(),
        (cycles, groups) => {
            let level = if pulse.is_inverted { "low" } else { "high" };
            let time = match clock_hz {
                0 => String::new(),
                hz => format!(" ({:.3} us)", f64::from(cycles) * 1e6 / f64::from(hz)),
            };
            let which = match groups {
                [one] => format!("group {one}"),
                several => format!("groups {}", several.join(" and ")),
            };
            format!("start_o is {level} for {cycles} cycles{time} after each release of {which}")
        }
    };
    let last = match started {
        0 => "none since the reset".to_owned(),
        cycle => format!("after the release in cycle {cycle}"),
    };
    format!("{settings}; last pulse: {last}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_the_last_pulse_are_described() {
        let pulse = StartPulse {
            groups: 0b101,
            cycles: 50,
            is_inverted: true,
        };
        assert_eq!(
            described(pulse, 25_000_000, 7),
            "start_o is low for 50 cycles (2.000 us) after each release of groups 0 and 2; last pulse: after the release in cycle 7\n"
        );
        let off = StartPulse { cycles: 0, ..pulse };
        assert_eq!(
            described(off, 0, 0),
            "no release starts a pulse; last pulse: none since the reset\n"
        );
        assert_eq!(groups("0+2"), Ok(0b101));
        assert!(groups("8").is_err() && groups("").is_err());
        assert_eq!(number("0x10"), Ok(16));
        assert!(number("x").is_err());
    }
}
