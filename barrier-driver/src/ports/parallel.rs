//! The parallel port: which line is which register bit, and pins on top of any implementation of the register accesses.
//!
//! The port is used in compatibility mode (IEEE 1284-1994); the pin numbers are those of the DB25 connector.
//! The data register drives eight lines and the status register reads five; the port inverts only BUSY.
//!
//! | DB25 | line | register bit | inverted by the port |
//! |------|--------|----|-----|
//! | 2..9 | D0..D7 | data 0..7 | no |
//! | 15 | nERROR | status 3 | no |
//! | 13 | SELECT | status 4 | no |
//! | 12 | PE | status 5 | no |
//! | 10 | nACK | status 6 | no |
//! | 11 | BUSY | status 7 | yes |
//!
//! # The interrupt
//!
//! If control bit 4 is set, the port raises its interrupt when nACK goes from low to high; no other edge raises an interrupt.
//! So only one of the barrier's two levels wakes a sleeping process, and a sleep for the other level ends after a millisecond.
//! An inverting buffer (`in=!nACK`) only exchanges the roles of the two levels.
//! So no wiring gives an interrupt on both edges.
//!
//! # Locking
//!
//! The data register has eight lines. A write holds the lock over the stored value of the
//! register, so that lines of several barriers on one port do not undo each other's changes.
//! The status register is only read.
//! When the process ends, the code does not wait for the lock and reads the register itself instead.

use super::PortError;
use super::claimed::{Claimed, Wanted};
use super::error::Failure;
use super::spec::{LineName, Spec};
use rustix::io::Errno;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// One line of the connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The line's name in IEEE 1284.
    pub name: &'static str,
    /// The line's pin at the DB25 connector.
    pub pin: u8,
    /// The line's bit number in the register.
    pub bit: u8,
    /// True if a high wire reads as 0.
    pub inverted: bool,
}

/// The lines that the data register drives.
pub const OUTPUTS: [Line; 8] = [
    data("D0", 0),
    data("D1", 1),
    data("D2", 2),
    data("D3", 3),
    data("D4", 4),
    data("D5", 5),
    data("D6", 6),
    data("D7", 7),
];

/// The lines that the status register reads.
pub const INPUTS: [Line; 5] = [
    status("nERROR", 15, 3, false),
    status("SELECT", 13, 4, false),
    status("PE", 12, 5, false),
    status("nACK", 10, 6, false),
    status("BUSY", 11, 7, true),
];

const fn data(name: &'static str, bit: u8) -> Line {
    status(name, bit + 2, bit, false)
}

const fn status(name: &'static str, pin: u8, bit: u8, inverted: bool) -> Line {
    Line {
        name,
        pin,
        bit,
        inverted,
    }
}

impl Line {
    /// The line's bit in its register.
    pub const fn mask(self) -> u8 {
        1 << self.bit
    }
}

/// Access to the registers of one port.
pub(super) trait Registers: Send + Sync + 'static {
    fn data(&self) -> Result<u8, Errno>;
    fn set_data(&self, value: u8) -> Result<(), Errno>;
    fn status(&self) -> Result<u8, Errno>;

    /// Returns true if the port's interrupt wakes a process that sleeps in the kernel.
    fn has_interrupts(&self) -> bool {
        false
    }

    /// Discards all earlier interrupts.
    fn forget_interrupts(&self) -> Result<(), Errno> {
        Ok(())
    }

    /// Sleeps until an interrupt has occurred after the last `forget_interrupts`, for at most `limit`.
    fn sleep_until_interrupt(&self, _limit: Duration) -> Result<(), Errno> {
        Ok(())
    }
}

/// The line whose rising edge raises the port's interrupt; no other edge of any line does.
const INTERRUPTS: &str = "nACK";

/// The limit of a sleep for the level whose edge raises no interrupt.
const WITHOUT_INTERRUPT: Duration = Duration::from_millis(1);

/// The default lines of version 2: the arrivals and the serial lines, then the releases.
pub(super) const USUAL: (&[&str], &[&str]) = (
    &["D0", "D1", "D2", "D3", "D4", "D5", "D6", "D7"],
    &["nERROR", "SELECT", "PE", "nACK", "BUSY"],
);

/// The lines that a port's text requests.
#[derive(Debug)]
pub(super) struct Lines {
    outs: Vec<Chosen>,
    ins: Vec<Chosen>,
}

/// A requested line and its inversion.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    line: Line,
    /// True if the wire's level and the register bit differ, because exactly one of port and wiring inverts the line.
    inverted: bool,
}

impl Lines {
    /// Finds the lines that the text requests.
    pub fn of(spec: &Spec<'_>, wanted: &Wanted<'_>) -> Result<Self, PortError> {
        let find = |names: &[LineName<'_>], key, lines| -> Result<Vec<_>, PortError> {
            let mut found = Vec::new();
            for &name in names {
                let line = Chosen::find(spec, key, name, lines)?;
                if found.iter().any(|other: &Chosen| other.line == line.line) {
                    return Err(spec.wrong(format!("{key}= names {} twice", line.line.name)));
                }
                found.push(line);
            }
            Ok(found)
        };
        Ok(Self {
            outs: find(&wanted.outs, "out", &OUTPUTS)?,
            ins: find(&wanted.ins, "in", &INPUTS)?,
        })
    }
}

impl Chosen {
    fn find(
        spec: &Spec<'_>,
        key: &str,
        wanted: LineName<'_>,
        lines: &[Line],
    ) -> Result<Self, PortError> {
        let line = lines
            .iter()
            .find(|line| line.name.eq_ignore_ascii_case(wanted.name))
            .ok_or_else(|| {
                let names: Vec<_> = lines.iter().map(|line| line.name).collect();
                spec.wrong(format!(
                    "{key}={} is none of {}",
                    wanted.name,
                    names.join(", ")
                ))
            })?;
        Ok(Self {
            line: *line,
            inverted: line.inverted ^ wanted.inverted,
        })
    }

    fn name(self, port: &str) -> String {
        format!("{} (pin {}) of {port}", self.line.name, self.line.pin)
    }
}

/// A claimed port; dropping its `registers` releases the port.
struct Port<R> {
    registers: R,
    name: String,
    lines: Lines,
    /// The last value written to the data register.
    data: Mutex<u8>,
}

/// Makes a port of its registers without changing any level; `name` is used in messages.
pub(super) fn claimed<R: Registers>(
    registers: R,
    name: String,
    lines: Lines,
) -> Result<Arc<dyn Claimed>, PortError> {
    let data = registers.data().map_err(|errno| PortError::Refused {
        port: name.clone(),
        step: "read the data register",
        cause: errno.to_string(),
    })?;
    Ok(Arc::new(Port {
        registers,
        name,
        lines,
        data: Mutex::new(data),
    }))
}

impl<R: Registers> Port<R> {
    fn write(&self, data: &mut u8, out: usize, high: bool) -> Result<(), Failure> {
        let chosen = self.lines.outs[out];
        let mask = chosen.line.mask();
        *data = if high != chosen.inverted {
            *data | mask
        } else {
            *data & !mask
        };
        Ok(self.registers.set_data(*data)?)
    }

    fn lock(&self) -> MutexGuard<'_, u8> {
        // A byte is consistent even if a thread panicked while it held the lock.
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Registers> Claimed for Port<R> {
    fn set(&self, out: usize, high: bool) -> Result<(), Failure> {
        self.write(&mut self.lock(), out, high)
    }

    fn get(&self, input: usize) -> Result<bool, Failure> {
        let chosen = self.lines.ins[input];
        let status = self.registers.status()?;
        Ok((status & chosen.line.mask() != 0) != chosen.inverted)
    }

    fn set_at_the_end(&self, out: usize, high: bool) -> Result<(), Failure> {
        match self.data.try_lock() {
            Ok(mut data) => self.write(&mut data, out, high),
            Err(TryLockError::Poisoned(poisoned)) => {
                self.write(&mut poisoned.into_inner(), out, high)
            }
            Err(TryLockError::WouldBlock) => self.write(&mut self.registers.data()?, out, high),
        }
    }

    fn wakes_sleepers(&self, input: usize) -> bool {
        self.lines.ins[input].line.name == INTERRUPTS && self.registers.has_interrupts()
    }

    fn arm(&self, _input: usize) -> Result<(), Failure> {
        Ok(self.registers.forget_interrupts()?)
    }

    fn sleep(&self, input: usize, high: bool, limit: Duration) -> Result<(), Failure> {
        let rises = high != self.lines.ins[input].inverted;
        let limit = if rises {
            limit
        } else {
            limit.min(WITHOUT_INTERRUPT)
        };
        Ok(self.registers.sleep_until_interrupt(limit)?)
    }

    fn out_name(&self, out: usize) -> String {
        self.lines.outs[out].name(&self.name)
    }

    fn in_name(&self, input: usize) -> String {
        self.lines.ins[input].name(&self.name)
    }
}
