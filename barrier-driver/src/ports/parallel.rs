//! The parallel port: which line is which bit of which register, and pins over whoever reads and writes the registers.
//!
//! IEEE 1284-1994, compatibility mode; the pins are those of the DB25 connector.
//! The data register drives eight lines, the status register reads five, and BUSY alone is inverted between wire and register.
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
//! # Who may touch what
//!
//! The data register has eight lines and belongs to all of them: whoever changes a bit holds the lock over the remembered
//! register, so that lines of several barriers on one port do not undo each other's changes.
//! The status register is only read.

use super::spec::Spec;
use super::{BoxedIn, BoxedOut, BoxedWires, PortError, WireError};
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use rustix::io::Errno;
use std::sync::{Arc, Mutex, PoisonError};

/// One line of the connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Its name in IEEE 1284.
    pub name: &'static str,
    /// Its pin at the DB25 connector.
    pub pin: u8,
    /// Its place in the register.
    pub bit: u8,
    /// Whether a high wire reads as 0.
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

/// Whoever reads and writes the registers of one port.
pub(super) trait Registers: Send + Sync + 'static {
    fn data(&self) -> Result<u8, Errno>;
    fn set_data(&self, value: u8) -> Result<(), Errno>;
    fn status(&self) -> Result<u8, Errno>;
}

/// The two lines that a text asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines {
    out: Chosen,
    input: Chosen,
}

/// A line, and what is between it and a high wire.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    line: Line,
    /// Whether wire and register differ: by the port, by the wiring, or by neither or both.
    inverted: bool,
}

impl Lines {
    /// Reads `out=` and `in=`.
    pub fn of(spec: &Spec<'_>) -> Result<Self, PortError> {
        spec.finish(&["out", "in"])?;
        Ok(Self {
            out: Chosen::find(spec, "out", &OUTPUTS)?,
            input: Chosen::find(spec, "in", &INPUTS)?,
        })
    }
}

impl Chosen {
    fn find(spec: &Spec<'_>, key: &str, lines: &[Line]) -> Result<Self, PortError> {
        let wanted = spec.line(key)?;
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

/// A claimed port, given back by its registers' `Drop`.
struct Port<R> {
    registers: R,
    name: String,
    /// The data register as it was written last.
    data: Mutex<u8>,
}

struct OutPin<R> {
    port: Arc<Port<R>>,
    chosen: Chosen,
}

struct InPin<R> {
    port: Arc<Port<R>>,
    chosen: Chosen,
}

/// Pins over the registers of the port that people know as `name`; moves no wire.
pub(super) fn wires<R: Registers>(
    registers: R,
    name: String,
    lines: Lines,
) -> Result<BoxedWires, PortError> {
    let data = registers.data().map_err(|errno| PortError::Refused {
        port: name.clone(),
        step: "read the data register",
        cause: errno.to_string(),
    })?;
    let port = Arc::new(Port {
        registers,
        name,
        data: Mutex::new(data),
    });
    let (out, input) = (lines.out, lines.input);
    Ok(BoxedWires {
        out: BoxedOut::new(
            out.name(&port.name),
            OutPin {
                port: port.clone(),
                chosen: out,
            },
        ),
        input: BoxedIn::new(
            input.name(&port.name),
            InPin {
                port,
                chosen: input,
            },
        ),
    })
}

impl<R> Port<R> {
    fn failed(&self, chosen: Chosen, errno: Errno) -> WireError {
        WireError {
            wire: chosen.name(&self.name),
            cause: errno.to_string(),
        }
    }
}

impl<R: Registers> OutPin<R> {
    fn set(&self, high: bool) -> Result<(), WireError> {
        let Port {
            registers, data, ..
        } = &*self.port;
        // A byte is whole whoever panicked while holding it.
        let mut data = data.lock().unwrap_or_else(PoisonError::into_inner);
        let mask = self.chosen.line.mask();
        *data = if high != self.chosen.inverted {
            *data | mask
        } else {
            *data & !mask
        };
        registers
            .set_data(*data)
            .map_err(|errno| self.port.failed(self.chosen, errno))
    }
}

impl<R: Registers> InPin<R> {
    fn get(&self) -> Result<bool, WireError> {
        let status = self
            .port
            .registers
            .status()
            .map_err(|errno| self.port.failed(self.chosen, errno))?;
        Ok((status & self.chosen.line.mask() != 0) != self.chosen.inverted)
    }
}

impl<R> ErrorType for OutPin<R> {
    type Error = WireError;
}

impl<R> ErrorType for InPin<R> {
    type Error = WireError;
}

impl<R: Registers> OutputPin for OutPin<R> {
    fn set_low(&mut self) -> Result<(), WireError> {
        self.set(false)
    }

    fn set_high(&mut self) -> Result<(), WireError> {
        self.set(true)
    }
}

impl<R: Registers> InputPin for InPin<R> {
    fn is_high(&mut self) -> Result<bool, WireError> {
        self.get()
    }

    fn is_low(&mut self) -> Result<bool, WireError> {
        self.get().map(|high| !high)
    }
}
