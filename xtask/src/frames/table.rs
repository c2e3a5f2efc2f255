//! The description of the serial frames as a data structure, and its parser.

/// A field of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub request: String,
    pub reply: String,
    pub bits: u32,
}

/// The checksum of a frame: its last field, computed over all fields before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub polynomial: u16,
    pub start: u16,
}

/// An operation of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub code: u32,
    pub name: String,
    pub argument: String,
    pub value: String,
    pub effect: String,
}

/// The status of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub code: u32,
    pub name: String,
    pub condition: String,
    pub value: String,
}

/// The description of the frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Format {
    pub(super) version: u32,
    pub(super) fields: Vec<Field>,
    pub(super) check: Check,
    pub(super) operations: Vec<Operation>,
    pub(super) statuses: Vec<Status>,
}

impl Format {
    /// Parses the text of the description; an error begins with the line number.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut format = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            format
                .line(line)
                .ok_or_else(|| format!("line {number} is none of the forms at the head: {line}"))?;
        }
        format.checked()
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        let cells: Vec<String> = rest.split('|').map(|cell| cell.trim().to_owned()).collect();
        match (kind, cells.as_slice()) {
            ("version", [number]) => self.version = number.parse().ok()?,
            ("field", [request, reply, bits]) => self.fields.push(Field {
                request: request.clone(),
                reply: reply.clone(),
                bits: bits.parse().ok()?,
            }),
            ("check", [name, polynomial, start]) => {
                let number = |text: &str| u16::from_str_radix(text.strip_prefix("0x")?, 16).ok();
                self.check = Check {
                    name: name.clone(),
                    polynomial: number(polynomial)?,
                    start: number(start)?,
                };
            }
            ("operation", [name, argument, value, effect]) => {
                let (code, name) = coded(name)?;
                self.operations.push(Operation {
                    code,
                    name,
                    argument: argument.clone(),
                    value: value.clone(),
                    effect: effect.clone(),
                });
            }
            ("status", [name, condition, value]) => {
                let (code, name) = coded(name)?;
                self.statuses.push(Status {
                    code,
                    name,
                    condition: condition.clone(),
                    value: value.clone(),
                });
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns the description if the generators support it.
    fn checked(self) -> Result<Self, String> {
        let follow =
            |codes: &mut dyn Iterator<Item = u32>| codes.zip(1..).all(|(code, k)| code == k);
        let [code, _, value, check] = self.fields.as_slice() else {
            return Err("a frame has four fields: code, channel, value, check".into());
        };
        if (value.bits, check.bits) != (64, 16) {
            return Err("the value has 64 bits and the check 16".into());
        }
        if !follow(&mut self.operations.iter().map(|o| o.code))
            || !follow(&mut self.statuses.iter().map(|s| s.code))
        {
            return Err("the codes of operations, and those of statuses, count from 1".into());
        }
        let most = self.operations.len().max(self.statuses.len());
        if most >> code.bits != 0 {
            return Err(format!("{most} codes do not fit {} bits", code.bits));
        }
        Ok(self)
    }

    /// Returns the number of bits of a frame before its checksum.
    pub(super) fn body_bits(&self) -> u32 {
        self.frame_bits() - self.check_bits()
    }

    /// Returns the number of bits of a frame.
    pub(super) fn frame_bits(&self) -> u32 {
        self.fields.iter().map(|field| field.bits).sum()
    }

    /// Returns the number of bits of the checksum.
    pub(super) fn check_bits(&self) -> u32 {
        self.fields.last().map_or(0, |field| field.bits)
    }

    /// Returns the number of bits of the code of an operation or a status.
    pub(super) fn code_bits(&self) -> u32 {
        self.fields.first().map_or(0, |field| field.bits)
    }

    /// Returns the number of bits of a counter of the bits of one frame.
    pub(super) fn counter_bits(&self) -> u32 {
        u32::BITS - (self.frame_bits() - 1).leading_zeros()
    }

    /// Returns the fields before the checksum, each with its highest and lowest bit.
    pub(super) fn body(&self) -> Vec<(&Field, u32, u32)> {
        let mut above = self.body_bits();
        let mut placed = Vec::new();
        for field in &self.fields[..self.fields.len().saturating_sub(1)] {
            placed.push((field, above - 1, above - field.bits));
            above -= field.bits;
        }
        placed
    }

    /// Returns the layouts of a request and a reply as text: names and widths of the fields.
    pub(super) fn layouts(&self) -> [String; 2] {
        let cell = |name: &str, bits| format!("{name}:{bits}");
        let widths: Vec<usize> = self
            .fields
            .iter()
            .map(|f| {
                cell(&f.request, f.bits)
                    .len()
                    .max(cell(&f.reply, f.bits).len())
            })
            .collect();
        let layout = |kind: &str, name: fn(&Field) -> &str| {
            let cells = self.fields.iter().zip(&widths);
            let cells: Vec<_> = cells
                .map(|(field, width)| format!("{:width$}", cell(name(field), field.bits)))
                .collect();
            format!("{kind}{}", cells.join("  ")).trim_end().to_owned()
        };
        [
            layout("request   ", |field| &field.request),
            layout("reply     ", |field| &field.reply),
        ]
    }
}

/// Splits a text such as `1 set mask` into code and name.
fn coded(text: &str) -> Option<(u32, String)> {
    let (code, name) = text.split_once(' ')?;
    Some((code.parse().ok()?, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "version 2\nfield operation | status | 4\nfield channel | channel | 4\n\
        field argument | value | 64\nfield check | check | 16\ncheck C | 0x1021 | 0xffff\n\
        operation 1 read mask | | the members | Returns the members.\nstatus 1 done | success |\n";

    #[test]
    fn the_fields_of_the_body_are_contiguous() {
        let format = Format::parse(SMALL).expect("a description");
        let places: Vec<_> = format
            .body()
            .iter()
            .map(|(_, high, low)| (*high, *low))
            .collect();
        assert_eq!(places, [(71, 68), (67, 64), (63, 0)]);
        assert_eq!((format.frame_bits(), format.counter_bits()), (88, 7));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (from, to, error) in [
            (
                "status 1 done",
                "status done",
                "line 8 is none of the forms",
            ),
            ("| 4\nfield ch", "\nfield ch", "line 2 is none of the forms"),
            ("0x1021", "1021", "line 6 is none of the forms"),
            ("operation 1", "operation 2", "the codes of operations"),
            ("| 64", "| 32", "the value has 64 bits"),
        ] {
            let refusal = Format::parse(&SMALL.replace(from, to)).expect_err(to);
            assert!(refusal.starts_with(error), "{refusal}");
        }
    }
}
