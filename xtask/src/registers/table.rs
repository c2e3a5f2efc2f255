//! The description of the registers as a data structure, and its parser.

/// How software may access a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Software may only read.
    ReadOnly,
    /// Software may read and write.
    ReadWrite,
    /// Software may only write; a read returns 0.
    WriteOnly,
    /// Software may read; writing 1 to a bit clears the bit.
    WriteOneToClear,
}

impl Access {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "ro" => Self::ReadOnly,
            "rw" => Self::ReadWrite,
            "wo" => Self::WriteOnly,
            "rw1c" => Self::WriteOneToClear,
            _ => return None,
        })
    }

    /// Returns the name of the access in the description, such as `rw`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "ro",
            Self::ReadWrite => "rw",
            Self::WriteOnly => "wo",
            Self::WriteOneToClear => "rw1c",
        }
    }
}

/// A named range of bits in a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub(super) high: u32,
    pub(super) low: u32,
    pub(super) name: String,
    pub(super) meaning: String,
}

/// A 32-bit register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    pub(super) offset: u32,
    pub(super) name: String,
    pub(super) access: Access,
    /// The reset value: a number, or the names of the parameters that determine it.
    pub(super) reset: String,
    pub(super) meaning: String,
    pub(super) fields: Vec<Field>,
}

impl Register {
    /// Returns the value after reset; `None` if it depends on parameters.
    pub(super) fn reset_value(&self) -> Option<u32> {
        match self.reset.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => self.reset.parse().ok(),
        }
    }
}

/// Registers at a base address: a single block, or one per group or node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub(super) name: String,
    pub(super) base: u32,
    /// The distance of consecutive blocks in bytes, as a number or an expression of the parameters;
    /// `None` for a single block.
    pub(super) stride: Option<String>,
    /// The number of blocks: a parameter, or 1.
    pub(super) count: String,
    pub(super) meaning: String,
    pub(super) registers: Vec<Register>,
}

impl Block {
    /// Returns the number of address bits that select a 32-bit word in the block.
    pub(super) fn word_bits(&self) -> u32 {
        let last = self.registers.iter().map(|register| register.offset).max();
        u32::BITS - (last.unwrap_or(0) >> 2).leading_zeros()
    }
}

/// The description of all registers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Map {
    pub(super) version: [u32; 3],
    pub(super) identity: u32,
    pub(super) blocks: Vec<Block>,
}

impl Map {
    /// Parses the description; an error begins with the line number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut map = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            map.line(line)
                .ok_or_else(|| format!("line {number} is none of the forms at the head: {line}"))?;
        }
        map.checked()
    }

    /// Returns the value of the register VERSION.
    pub(super) fn version_word(&self) -> u32 {
        let [major, minor, patch] = self.version;
        major << 16 | minor << 8 | patch
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        let cells: Vec<String> = rest.split('|').map(|cell| cell.trim().to_owned()).collect();
        match (kind, cells.as_slice()) {
            ("version", [numbers]) => {
                let numbers: Option<Vec<u32>> =
                    numbers.split('.').map(|part| part.parse().ok()).collect();
                self.version = numbers?.try_into().ok()?;
            }
            ("identity", [number]) => self.identity = hexadecimal(number)?,
            ("block", [name, base, stride, count, meaning]) => self.blocks.push(Block {
                name: name.clone(),
                base: hexadecimal(base)?,
                stride: (stride != "none").then(|| stride.clone()),
                count: count.clone(),
                meaning: meaning.clone(),
                registers: Vec::new(),
            }),
            ("register", [name, access, reset, meaning]) => {
                let (offset, name) = name.split_once(' ')?;
                self.blocks.last_mut()?.registers.push(Register {
                    offset: hexadecimal(offset)?,
                    name: name.to_owned(),
                    access: Access::named(access)?,
                    reset: reset.clone(),
                    meaning: meaning.clone(),
                    fields: Vec::new(),
                });
            }
            ("field", [name, meaning]) => {
                let (bits, name) = name.split_once(' ')?;
                let (high, low) = bits.split_once(':')?;
                let register = self.blocks.last_mut()?.registers.last_mut()?;
                register.fields.push(Field {
                    high: high.parse().ok()?,
                    low: low.parse().ok()?,
                    name: name.to_owned(),
                    meaning: meaning.clone(),
                });
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns the description if the generators support it.
    fn checked(self) -> Result<Self, String> {
        for block in &self.blocks {
            let mut end = 0;
            for register in &block.registers {
                let name = format!("{} of {}", register.name, block.name);
                if register.offset < end || register.offset % 4 != 0 {
                    return Err(format!(
                        "{name} is not at a word after that of the register before it"
                    ));
                }
                end = register.offset + 4;
                let mut free = 32;
                for field in &register.fields {
                    if field.high < field.low || field.high >= free {
                        return Err(format!(
                            "{} of {name} is not below the field before it",
                            field.name
                        ));
                    }
                    free = field.low;
                }
            }
        }
        Ok(self)
    }
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "version 1.2.3\nidentity 0x54\nblock all | 0x0 | none | 1 | Everything.\n\
        register 0x00 ID | ro | 0x54 | The name.\nregister 0x08 CTRL | rw | 0 | Operation.\n\
        field 7:4 HIGH | Above.\nfield 0:0 LOW | Below.\n";

    #[test]
    fn a_description_is_parsed() {
        let map = Map::parse(SMALL).expect("a description");
        assert_eq!(map.version_word(), 0x0001_0203);
        let block = &map.blocks[0];
        assert_eq!(block.word_bits(), 2);
        assert_eq!(block.registers[0].reset_value(), Some(0x54));
        assert_eq!(block.registers[1].fields.len(), 2);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (from, to, error) in [
            ("1.2.3", "1.2", "line 1 is none of the forms"),
            ("| ro |", "| r |", "line 4 is none of the forms"),
            ("0x08 CTRL", "0x00 CTRL", "CTRL of all is not at a word"),
            ("0x08 CTRL", "0x06 CTRL", "CTRL of all is not at a word"),
            ("0:0 LOW", "4:0 LOW", "LOW of CTRL of all is not below"),
            ("7:4 HIGH", "32:4 HIGH", "HIGH of CTRL of all is not below"),
        ] {
            let refusal = Map::parse(&SMALL.replace(from, to)).expect_err(to);
            assert!(refusal.starts_with(error), "{refusal}");
        }
    }
}
