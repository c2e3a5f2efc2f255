//! An emulated GPIO chip of a Raspberry Pi 4 and its two interfaces; nodes' wires are at its lines.
//!
//! * [`registers`]: the page of registers that `/dev/gpiomem` maps, which crate `rppal` reads and writes.
//! * [`chardev`]: the ioctls of `/dev/gpiochip0`, which crate `gpiocdev` issues, and by which `rppal` reads the chip's name.
//! * [`machine`]: a `/dev` with these two files and a `/proc/cpuinfo` of a Raspberry Pi, or with several chips, for one thread and its children.
//!
//! Both interfaces access one [`GpioChip`], as in the real machine.
//! [`trap`](super::trap) redirects the accesses of this process to the chip,
//! and [`supervised`](super::supervised) those of other processes.
//!
//! # The lines
//!
//! A line is an input until a program makes it an output. Its latch stores the last written level,
//! also while the line is an input.
//! While the line of a wire to the barrier is an input, the wire floats high.
//! An unconnected line reads high.

pub mod chardev;
pub mod machine;
pub mod registers;

use super::cable::CableEnd;
use std::fmt;

/// Number of lines of a BCM2711.
pub const LINES: u32 = 58;

/// The function of a line, with the codes of the function select registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// An input, code 0.
    Input,
    /// An output, code 1.
    Output,
    /// A peripheral function with this code; it does not drive the wire to the barrier.
    Other(u8),
}

/// The two lines of the chip to which a node's wires are connected.
struct Plug {
    out: u32,
    input: u32,
    far: Box<dyn CableEnd>,
}

/// A chip with nodes' wires connected.
pub struct GpioChip {
    functions: [Function; LINES as usize],
    /// The latches of all lines, bit `n` for line `n`.
    latches: u64,
    plugs: Vec<Plug>,
    /// True if edges of the chip's lines cause interrupts.
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
    /// Connects a node's wires: the wire to the barrier at line `out`,
    /// the wire from the barrier at line `input`.
    pub fn plug(mut self, out: u32, input: u32, far: impl CableEnd + 'static) -> Self {
        let far = Box::new(far);
        self.plugs.push(Plug { out, input, far });
        self.drive(out);
        self
    }

    /// Disables edge detection, as on port expanders without an interrupt line.
    pub fn without_interrupts(mut self) -> Self {
        self.interrupts = false;
        self
    }

    /// Returns true if edges of the chip's lines cause interrupts.
    pub fn has_interrupts(&self) -> bool {
        self.interrupts
    }

    /// Sets the state in which an earlier program has left the chip.
    /// Bit `n` of `outputs` makes line `n` an output; bit `n` of `latches` is its latched level.
    pub fn left(mut self, outputs: u64, latches: u64) -> Self {
        self.latches = latches;
        for line in 0..LINES {
            if outputs >> line & 1 == 1 {
                self.set_function(line, Function::Output);
            }
        }
        self
    }

    /// Returns the function of a line; a nonexistent line is an input.
    pub fn function(&self, line: u32) -> Function {
        let function = self.functions.get(line as usize);
        function.copied().unwrap_or(Function::Input)
    }

    /// Sets the function of a line.
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

    /// Returns the level at a line, as a program would read it.
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
