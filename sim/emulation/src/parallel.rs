//! The registers of a parallel port whose [`Connector`] carries a node's wires.
//!
//! Base+0 is the data register, which keeps the written value and drives D0 to D7.
//! Base+1 is the status register, which reads five lines (BUSY inverted) and three bits that are always 1.
//! Base+2 is the control register; its bit 5 makes the data lines inputs, which pull-ups hold high.
//! Unconnected lines float high, as they do at most ports.
//! The lines and their bits are defined by the driver's table,
//! [`barrier_driver::ports::parallel`], which cites the standard.

use super::cable::{Cable, CableEnd};
use barrier_driver::ports::parallel::{INPUTS, Line};
use std::fmt;

/// Control bit that makes the data lines inputs.
const DATA_ARE_INPUTS: u8 = 1 << 5;
/// The control register after power-on: nSELIN and nINIT are high, as the BIOS sets them,
/// and the two nonexistent bits read as ones.
const CONTROL_AT_POWER_ON: u8 = 0xcc;
/// Status bits without a line; they read as ones.
const NO_LINES: u8 = 0b111;

/// One of the three registers of a parallel port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    /// The data register, at base+0.
    Data,
    /// The status register, at base+1.
    Status,
    /// The control register, at base+2.
    Control,
}

impl Register {
    /// All registers; the index is the offset from the base address.
    pub const ALL: [Self; 3] = [Self::Data, Self::Status, Self::Control];
}

/// The lines of the connector to which a node's two wires are connected.
#[derive(Debug, Clone, Copy)]
pub struct Plug {
    /// The data line that drives the wire to the barrier.
    pub out: Line,
    /// The state of the wire to the barrier.
    pub out_cable: Cable,
    /// The status line that reads the wire from the barrier.
    pub input: Line,
    /// The state of the wire from the barrier.
    pub in_cable: Cable,
}

impl Plug {
    /// Returns a plug with faultless wires at these lines.
    pub const fn straight(out: Line, input: Line) -> Self {
        Self {
            out,
            out_cable: Cable::Straight,
            input,
            in_cable: Cable::Straight,
        }
    }
}

/// The device at a port's connector.
pub trait Connector: Send {
    /// Sets the levels of D0 to D7, the lowest bit first.
    fn drive(&mut self, levels: u8);

    /// Returns the level at this line from the connector; an unconnected line floats high.
    fn level(&mut self, line: Line) -> bool;
}

/// A node's two wires: the lines at the port, and the board's ends.
struct Pair<F> {
    plug: Plug,
    far: F,
}

impl<F: CableEnd> Connector for Pair<F> {
    fn drive(&mut self, levels: u8) {
        let level = levels & self.plug.out.mask() != 0;
        self.far.drive(self.plug.out_cable.carry(level));
    }

    fn level(&mut self, line: Line) -> bool {
        line.name != self.plug.input.name || self.plug.in_cable.carry(self.far.level())
    }
}

/// A parallel port with a device at its connector.
pub struct ParallelPort {
    data: u8,
    control: u8,
    connector: Box<dyn Connector>,
}

impl ParallelPort {
    /// Creates a port after power-on;
    /// `data` is the data register as firmware or a driver has left it.
    pub fn new(plug: Plug, data: u8, far: impl CableEnd + 'static) -> Self {
        Self::with(data, Pair { plug, far })
    }

    /// Creates a port with any device at its connector.
    pub fn with(data: u8, connector: impl Connector + 'static) -> Self {
        let mut port = Self {
            data,
            control: CONTROL_AT_POWER_ON,
            connector: Box::new(connector),
        };
        port.drive();
        port
    }

    /// Returns the value that a program reads from a register.
    pub fn read(&mut self, register: Register) -> u8 {
        match register {
            Register::Data => self.data,
            Register::Status => self.status(),
            Register::Control => self.control,
        }
    }

    /// Performs a program's write to a register; the status register ignores it.
    pub fn write(&mut self, register: Register, value: u8) {
        match register {
            Register::Data => self.data = value,
            Register::Status => return,
            Register::Control => self.control = value | 0xc0,
        }
        self.drive();
    }

    fn drive(&mut self) {
        let floating = self.control & DATA_ARE_INPUTS != 0;
        self.connector
            .drive(if floating { 0xff } else { self.data });
    }

    fn status(&mut self) -> u8 {
        let connector = &mut self.connector;
        INPUTS.iter().fold(NO_LINES, |register, &line| {
            if connector.level(line) != line.inverted {
                register | line.mask()
            } else {
                register
            }
        })
    }
}

impl fmt::Debug for ParallelPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a parallel port with data {:#04x}, control {:#04x}",
            self.data, self.control
        )
    }
}
