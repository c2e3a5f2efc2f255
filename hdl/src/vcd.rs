//! Parser of value change dumps: counts the rises and falls of each bit, and collects the values of narrow signals.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::tool::ToolError;

/// Maximum width, in bits, of signals whose values are recorded.
const NARROW: usize = 4;

/// Numbers of changes of one bit of a signal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bit {
    /// The number of changes from 0 to 1.
    pub rises: u64,
    /// The number of changes from 1 to 0.
    pub falls: u64,
}

/// A signal of the design. If it has several names, `path` is the first of them,
/// or that of the flip-flop that drives the signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// The signal's path below the top of the dump, joined by dots.
    pub path: String,
    /// The signal's kind in the dump: `wire`, `reg`, `integer`.
    pub kind: String,
    /// The signal's bits, the lowest first.
    pub bits: Vec<Bit>,
    /// The distinct changes of a narrow signal: the values before and after, as binary digits.
    pub steps: BTreeSet<(String, String)>,
    value: Vec<u8>,
}

impl Signal {
    /// Returns the defined values that a narrow signal had before or after a change.
    pub fn values(&self) -> BTreeSet<&str> {
        let both = self.steps.iter().flat_map(|(from, to)| [from.as_str(), to]);
        both.filter(|value| value.bytes().all(|bit| matches!(bit, b'0' | b'1')))
            .collect()
    }

    /// Records a new value, given as bits with the lowest first.
    fn set(&mut self, value: Vec<u8>) {
        for ((bit, before), after) in self.bits.iter_mut().zip(&self.value).zip(&value) {
            match (before, after) {
                (b'0', b'1') => bit.rises += 1,
                (b'1', b'0') => bit.falls += 1,
                _ => {}
            }
        }
        if value.len() <= NARROW && value != self.value {
            let text = |value: &[u8]| value.iter().rev().map(|bit| char::from(*bit)).collect();
            self.steps.insert((text(&self.value), text(&value)));
        }
        self.value = value;
    }
}

/// Parses a dump written by Icarus or GHDL.
pub fn read(path: &Path) -> Result<Vec<Signal>, ToolError> {
    let named = |e| ToolError::Folder(path.display().to_string(), e);
    let file = File::open(path).map_err(named)?;
    let mut dump = Dump::default();
    for line in BufReader::new(file).lines() {
        dump.line(line.map_err(named)?.trim());
    }
    Ok(dump.signals)
}

#[derive(Default)]
struct Dump {
    scope: Vec<String>,
    signals: Vec<Signal>,
    by_id: HashMap<String, usize>,
}

impl Dump {
    fn line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("$scope") => self.scope.push(words.nth(1).unwrap_or_default().to_owned()),
            Some("$upscope") => drop(self.scope.pop()),
            Some("$var") => self.declare(words),
            Some(word) => self.change(word, words.next()),
            None => {}
        }
    }

    /// Parses a declaration such as `$var reg 4 ! name [3:0] $end`; all names of a signal have the same identifier.
    fn declare<'a>(&mut self, mut words: impl Iterator<Item = &'a str>) {
        let (Some(kind), Some(bits), Some(id), Some(name)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return;
        };
        let bits = bits.parse().unwrap_or(0);
        let name = name.split('[').next().unwrap_or(name);
        let path = self.scope.iter().map(String::as_str).chain([name]);
        if let Some(&at) = self.by_id.get(id) {
            if name.ends_with("_q") && !self.signals[at].path.ends_with("_q") {
                self.signals[at].path = path.collect::<Vec<_>>().join(".");
            }
            return;
        }
        self.by_id.insert(id.to_owned(), self.signals.len());
        self.signals.push(Signal {
            path: path.collect::<Vec<_>>().join("."),
            kind: kind.to_owned(),
            bits: vec![Bit::default(); bits],
            steps: BTreeSet::new(),
            value: vec![b'x'; bits],
        });
    }

    /// Parses a change: `b0101 !` for a vector, `0!` for a bit. A vector's leading zeros may be omitted.
    fn change(&mut self, word: &str, id: Option<&str>) {
        let (digits, id) = match (word.strip_prefix('b'), id) {
            (Some(digits), Some(id)) => (digits, id),
            (None, None) if word.len() > 1 && word.is_char_boundary(1) => word.split_at(1),
            _ => return,
        };
        let Some(signal) = self.by_id.get(id).and_then(|&at| self.signals.get_mut(at)) else {
            return;
        };
        let mut value: Vec<u8> = digits
            .bytes()
            .rev()
            .map(|digit| digit.to_ascii_lowercase())
            .collect();
        let more = match value.last() {
            Some(b'x' | b'u') => b'x',
            Some(b'z') => b'z',
            _ => b'0',
        };
        value.resize(signal.bits.len(), more);
        signal.set(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_and_falls_of_each_bit_are_counted_and_values_are_kept() {
        let mut dump = Dump::default();
        let text = "$scope module dut $end\n$var reg 2 ! state [1:0] $end\n$scope module in $end\n$var wire 2 ! again [1:0] $end\n\
                    $var wire 1 \" bit $end\n$upscope $end\n$upscope $end\n$enddefinitions $end\n#0\n$dumpvars\nb0 !\n0\"\n$end\n\
                    #5\nb10 !\n1\"\n#6\nb1 !\n0\"\n";
        text.lines().for_each(|line| dump.line(line));
        let [state, bit] = &dump.signals[..] else {
            panic!("{:?}", dump.signals);
        };
        assert_eq!(
            (state.path.as_str(), bit.path.as_str()),
            ("dut.state", "dut.in.bit")
        );
        let [low, high] = [(1, 0), (1, 1)].map(|(rises, falls)| Bit { rises, falls });
        assert_eq!(state.bits, [low, high]);
        assert_eq!(bit.bits, [high]);
        assert_eq!(state.values(), BTreeSet::from(["00", "01", "10"]));
    }
}
