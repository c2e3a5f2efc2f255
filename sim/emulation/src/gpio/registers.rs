//! The GPIO registers of a Raspberry Pi 4: "BCM2711 ARM Peripherals", chapter 5.
//!
//! | offset | register | emulation |
//! |---|---|---|
//! | 0x00..0x18 | GPFSEL0..5 | three bits for each line's function |
//! | 0x1c, 0x20 | GPSET0, 1 | a one sets the line's latch; reads as 0 |
//! | 0x28, 0x2c | GPCLR0, 1 | a one clears the line's latch; reads as 0 |
//! | 0x34, 0x38 | GPLEV0, 1 | the levels at the lines |
//! | 0xe4..0xf4 | GPIO_PUP_PDN_CNTRL_REG0..3 | pull resistors: stored, without effect |
//!
//! The other registers, for events and edges, read as 0 and ignore writes.

use super::{Function, GpioChip, LINES};

const SELECT: u32 = 0x00;
const SET: u32 = 0x1c;
const CLEAR: u32 = 0x28;
const LEVEL: u32 = 0x34;
const PULL: u32 = 0xe4;

/// Number of lines in one function select register.
const SELECTED: u32 = 10;
/// Number of lines in one set, clear or level register.
const WORD: u32 = 32;

/// The registers of one chip.
#[derive(Debug, Default)]
pub struct Registers {
    pulls: [u32; 4],
}

impl Registers {
    /// Returns the value that a program reads at this offset.
    pub fn read(&self, chip: &mut GpioChip, offset: u32) -> u32 {
        let number = |first| (offset - first) / 4;
        match offset {
            SELECT..SET => lines(number(SELECT), SELECTED).fold(0, |word, (line, place)| {
                word | code(chip.function(line)) << (3 * place)
            }),
            LEVEL..0x3c => lines(number(LEVEL), WORD).fold(0, |word, (line, place)| {
                word | u32::from(chip.level(line)) << place
            }),
            PULL..0xf4 => self.pulls[number(PULL) as usize],
            _ => 0,
        }
    }

    /// Performs a program's write at this offset.
    pub fn write(&mut self, chip: &mut GpioChip, offset: u32, value: u32) {
        let number = |first| (offset - first) / 4;
        let ones = |first| {
            let all = lines(number(first), WORD);
            all.filter_map(|(line, place)| (value >> place & 1 == 1).then_some(line))
        };
        match offset {
            SELECT..SET => {
                for (line, place) in lines(number(SELECT), SELECTED) {
                    chip.set_function(line, function(value >> (3 * place) & 0b111));
                }
            }
            SET..0x24 => ones(SET).for_each(|line| chip.set(line, true)),
            CLEAR..0x30 => ones(CLEAR).for_each(|line| chip.set(line, false)),
            PULL..0xf4 => self.pulls[number(PULL) as usize] = value,
            _ => {}
        }
    }
}

/// Returns the lines of register `register` in a group of registers with `each` lines per register.
/// Each line is returned with its position in the register.
fn lines(register: u32, each: u32) -> impl Iterator<Item = (u32, u32)> {
    let all = (0..each).map(move |place| (register * each + place, place));
    all.take_while(|&(line, _)| line < LINES)
}

fn code(function: Function) -> u32 {
    match function {
        Function::Input => 0b000,
        Function::Output => 0b001,
        Function::Other(code) => u32::from(code),
    }
}

fn function(code: u32) -> Function {
    match code {
        0b000 => Function::Input,
        0b001 => Function::Output,
        other => Function::Other(other as u8),
    }
}
