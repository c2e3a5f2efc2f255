//! AND gates without duplicates, in the order of a binary AIGER file: the inputs of a gate have lower numbers than the gate.
//!
//! A signal is an even number, and its inverse is that number plus 1; 0 is always low and 1 always high.
//! Signals 2, 4, ... are the sources: inputs and flip-flops. A gate with a constant or a known result is never added.

use std::collections::HashMap;

/// A set of gates over a number of sources.
#[derive(Debug, Default)]
pub(super) struct Gates {
    sources: usize,
    inputs: Vec<[usize; 2]>,
    signals: HashMap<[usize; 2], usize>,
}

impl Gates {
    pub(super) fn over(sources: usize) -> Self {
        Self {
            sources,
            ..Self::default()
        }
    }

    /// Returns a signal that is high if both are high.
    pub(super) fn and(&mut self, left: usize, right: usize) -> usize {
        let inputs = [left.max(right), left.min(right)];
        match inputs {
            [_, 0] => 0,
            [high, 1] => high,
            [high, low] if high == low => high,
            [high, low] if high ^ 1 == low => 0,
            _ => *self.signals.entry(inputs).or_insert_with(|| {
                self.inputs.push(inputs);
                2 * (self.sources + self.inputs.len())
            }),
        }
    }

    pub(super) fn or(&mut self, left: usize, right: usize) -> usize {
        self.and(left ^ 1, right ^ 1) ^ 1
    }

    /// Returns a signal that is high if the two differ.
    pub(super) fn differ(&mut self, left: usize, right: usize) -> usize {
        let only_left = self.and(left, right ^ 1);
        let only_right = self.and(left ^ 1, right);
        self.or(only_left, only_right)
    }

    /// Returns the gates as a binary AIGER file of which the last `flip_flops` sources are flip-flops.
    ///
    /// `next` has the input of each flip-flop, and `output` is the only output.
    pub(super) fn to_aiger(&self, next: &[usize], output: usize) -> Vec<u8> {
        let count = self.inputs.len();
        let mut text = format!(
            "aig {} {} {} 1 {count}\n",
            self.sources + count,
            self.sources - next.len(),
            next.len(),
        );
        for signal in next.iter().chain([&output]) {
            text += &format!("{signal}\n");
        }
        let mut bytes = text.into_bytes();
        for ([high, low], number) in self.inputs.iter().zip(self.sources + 1..) {
            append(&mut bytes, 2 * number - high);
            append(&mut bytes, high - low);
        }
        bytes
    }
}

/// Appends a number in groups of seven bits, the lowest first; bit 7 of a byte is set if another group follows.
fn append(bytes: &mut Vec<u8>, mut number: usize) {
    while number > 127 {
        bytes.push(number as u8 & 127 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_and_duplicates_add_no_gate() {
        let mut gates = Gates::over(2);
        let both = gates.and(2, 4);
        assert_eq!((both, gates.and(4, 2)), (6, 6));
        assert_eq!(gates.and(2, 0), 0);
        assert_eq!(gates.and(2, 1), 2);
        assert_eq!(gates.and(2, 2), 2);
        assert_eq!(gates.and(2, 3), 0);
        assert_eq!(gates.inputs.len(), 1);
    }

    /// 129 inputs, and a flip-flop whose next level is the AND of its level and the first input; the output is the inverse of the first input.
    #[test]
    fn a_file_has_the_differences_of_the_signals() {
        let mut gates = Gates::over(130);
        let both = gates.and(2, 260);
        let file = gates.to_aiger(&[both], 3);
        let text = b"aig 131 129 1 1 1\n262\n3\n";
        // 262 - 260 = 2, and 260 - 2 = 258 = 2 * 128 + 2.
        assert_eq!(file, [&text[..], &[2, 0x82, 2]].concat());
    }
}
