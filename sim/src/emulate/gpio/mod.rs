//! A GPIO chip with nodes' wires at its lines, as the Raspberry Pi 4 has one, and the two ways to it.
//!
//! * [`registers`]: the page of registers that `/dev/gpiomem` maps, which crate `rppal` reads and writes.
//! * [`chardev`]: the ioctls of `/dev/gpiochip0`, which crate `gpiocdev` speaks, and which `rppal` asks for the chip's name.
//! * [`machine`]: a `/dev` with these two files and a `/proc/cpuinfo` that says Raspberry Pi, for one thread and its children.
//!
//! Both ways lead to one [`GpioChip`], as in the machine; [`trap`](super::trap) is how a program's accesses get here.
//!
//! # The lines
//!
//! A line is an input until a program makes it an output, and its latch keeps what was written in either state.
//! A wire to the barrier whose line is an input floats high, and a line at which nothing is plugged in reads high.

pub mod chardev;
pub mod machine;
pub mod registers;

use super::cable::Far;
use std::fmt;

/// Lines of the chip, as many as a BCM2711 has.
pub const LINES: u32 = 58;

/// What a pin does: the codes of the function select registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// 0.
    Input,
    /// 1.
    Output,
    /// One of the pin's peripherals, which drives no barrier.
    Other(u8),
}

/// The wires of a node at two lines.
struct Plug {
    out: u32,
    input: u32,
    far: Box<dyn Far>,
}

/// A chip with something plugged in.
pub struct GpioChip {
    functions: [Function; LINES as usize],
    /// The latches of all lines, bit `n` for line `n`.
    latches: u64,
    plugs: Vec<Plug>,
    /// Whether edges of its lines interrupt.
    interrupts: bool,
}

impl Default for GpioChip {
    fn default() -> Self {
        Self {
            functions: [Function::Input; LINES as usize],
            latches: 0,
            plugs: Vec::new(),
            interrupts: true,
        }
    }
}

impl GpioChip {
    /// Plugs a node's wires in: the one to the barrier at line `out`, the one from it at line `input`.
    pub fn plug(mut self, out: u32, input: u32, far: impl Far + 'static) -> Self {
        let far = Box::new(far);
        self.plugs.push(Plug { out, input, far });
        self.drive(out);
        self
    }

    /// A chip that does not tell of edges, as port expanders without an interrupt line.
    pub fn without_interrupts(mut self) -> Self {
        self.interrupts = false;
        self
    }

    /// Whether edges of its lines interrupt.
    pub fn has_interrupts(&self) -> bool {
        self.interrupts
    }

    /// As whatever ran before has left it: the lines in `outputs` are outputs, and `latches` are their levels.
    pub fn left(mut self, outputs: u64, latches: u64) -> Self {
        self.latches = latches;
        for line in 0..LINES {
            if outputs >> line & 1 == 1 {
                self.set_function(line, Function::Output);
            }
        }
        self
    }

    /// What this line does; a line that the chip lacks is an input.
    pub fn function(&self, line: u32) -> Function {
        let function = self.functions.get(line as usize);
        function.copied().unwrap_or(Function::Input)
    }

    /// Has this line do something else from now on.
    pub fn set_function(&mut self, line: u32, function: Function) {
        if let Some(place) = self.functions.get_mut(line as usize) {
            *place = function;
            self.drive(line);
        }
    }

    /// Writes a line's latch, which drives the wire if the line is an output.
    pub fn set(&mut self, line: u32, high: bool) {
        if line < LINES {
            self.latches = self.latches & !(1 << line) | u64::from(high) << line;
            self.drive(line);
        }
    }

    /// The level at a line.
    pub fn level(&mut self, line: u32) -> bool {
        if self.function(line) == Function::Output {
            return self.latches >> line & 1 == 1;
        }
        let wire = self.plugs.iter_mut().find(|plug| plug.input == line);
        wire.is_none_or(|plug| plug.far.level())
    }

    fn drive(&mut self, line: u32) {
        let floating = self.function(line) != Function::Output;
        let level = floating || self.latches >> line & 1 == 1;
        for plug in self.plugs.iter_mut().filter(|plug| plug.out == line) {
            plug.far.drive(level);
        }
    }
}

impl fmt::Debug for GpioChip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wires = self.plugs.len();
        write!(
            f,
            "a GPIO chip of {LINES} lines with the wires of {wires} nodes"
        )
    }
}
