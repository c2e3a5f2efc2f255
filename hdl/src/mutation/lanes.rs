//! Simulation of 64 mutants at once: a circuit of AND gates, in which each bit of a word belongs to another mutant.
//!
//! The circuit is a file of the format AIGER in its form as text: "aag M I L O A", then one line for each input, flip-flop, output and gate.
//! A signal is a number, and its inverse is that number plus 1; signal 0 is always low. All flip-flops start low.
//! Inputs and outputs are in the order of yosys' `write_aiger`: one after another in the order of the ports' names, the lowest bit first.

/// Number of mutants that are simulated at once.
pub const LANES: usize = u64::BITS as usize;

/// A signal: the index of its word, and a word of ones if it is inverted.
#[derive(Debug, Clone, Copy)]
struct Signal {
    index: usize,
    inverted: u64,
}

impl Signal {
    fn new(number: usize) -> Self {
        Self {
            index: number / 2,
            inverted: if number % 2 == 1 { u64::MAX } else { 0 },
        }
    }

    fn of(self, words: &[u64]) -> u64 {
        words[self.index] ^ self.inverted
    }
}

/// A gate: its output's index and its two inputs.
#[derive(Debug, Clone, Copy)]
struct Gate {
    to: usize,
    from: [Signal; 2],
}

/// A circuit.
#[derive(Debug, Clone)]
pub struct Circuit {
    words: usize,
    inputs: Vec<usize>,
    flip_flops: Vec<(usize, Signal)>,
    outputs: Vec<Signal>,
    gates: Vec<Gate>,
}

impl Circuit {
    /// Reads a circuit; `None` if the text has another form or a signal above its maximum, or a gate comes before one that drives it.
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut numbers = || -> Option<Vec<usize>> {
            let words = lines.next()?.split_whitespace();
            words
                .filter(|word| *word != "aag")
                .map(|word| word.parse().ok())
                .collect()
        };
        let [highest, inputs, flip_flops, outputs, gates] = numbers()?.try_into().ok()?;
        let mut list = |count: usize| -> Option<Vec<Vec<usize>>> {
            let lines = (0..count).map(|_| {
                numbers().filter(|line| {
                    !line.is_empty() && line.iter().all(|number| number / 2 <= highest)
                })
            });
            lines.collect()
        };
        let inputs = list(inputs)?;
        let flip_flops = list(flip_flops)?;
        let outputs = list(outputs)?;
        let gates = list(gates)?;
        let circuit = Self {
            words: highest + 1,
            inputs: inputs.iter().map(|line| line[0] / 2).collect(),
            // A third number would be a level after power-on other than low.
            flip_flops: flip_flops
                .iter()
                .map(|line| match line[..] {
                    [to, from] => Some((to / 2, Signal::new(from))),
                    _ => None,
                })
                .collect::<Option<_>>()?,
            outputs: outputs.iter().map(|line| Signal::new(line[0])).collect(),
            gates: gates
                .iter()
                .map(|line| match line[..] {
                    [to, left, right] => Some(Gate {
                        to: to / 2,
                        from: [left, right].map(Signal::new),
                    }),
                    _ => None,
                })
                .collect::<Option<_>>()?,
        };
        circuit.is_ordered().then_some(circuit)
    }

    fn is_ordered(&self) -> bool {
        let mut known = vec![false; self.words];
        known[0] = true;
        let sources = self.flip_flops.iter().map(|(to, _)| to);
        for &index in self.inputs.iter().chain(sources) {
            known[index] = true;
        }
        self.gates.iter().all(|gate| {
            let is_known = gate.from.iter().all(|signal| known[signal.index]);
            known[gate.to] = true;
            is_known
        })
    }

    /// Applies `stimulus` from power-on to a group of at most [`LANES`] mutants, and compares the outputs after each edge with `expected`;
    /// bit 0 of each number is the first input or output.
    ///
    /// `constant` gives the level of each input above those of the stimulus, as one word with a bit for each mutant.
    /// Returns for each mutant the first edge after which it differs, counted from 1.
    pub fn differences(
        &self,
        constant: &[u64],
        mutants: usize,
        stimulus: &[u64],
        expected: &[u64],
    ) -> Vec<Option<usize>> {
        let varying = self.inputs.len() - constant.len();
        let mut words = vec![0; self.words];
        for (index, word) in self.inputs[varying..].iter().zip(constant) {
            words[*index] = *word;
        }
        let moving = self.moving(varying);
        // The other gates depend on constant inputs only.
        evaluate(&self.gates, &mut words);
        let all = u64::MAX >> (LANES - mutants);
        let mut first = vec![None; mutants];
        let mut alive = all;
        let mut next = vec![0; self.flip_flops.len()];
        for (edge, (inputs, outputs)) in stimulus.iter().zip(expected).enumerate() {
            for (at, index) in self.inputs[..varying].iter().enumerate() {
                words[*index] = spread(*inputs, at);
            }
            evaluate(&moving, &mut words);
            for (word, (_, from)) in next.iter_mut().zip(&self.flip_flops) {
                *word = from.of(&words);
            }
            for (word, (to, _)) in next.iter().zip(&self.flip_flops) {
                words[*to] = *word;
            }
            evaluate(&moving, &mut words);
            let wrong = self.outputs.iter().enumerate();
            let wrong = wrong.map(|(at, signal)| signal.of(&words) ^ spread(*outputs, at));
            let wrong = wrong.fold(0, |all, one| all | one) & alive;
            if wrong != 0 {
                let differs = |lane: &usize| wrong >> lane & 1 == 1;
                for lane in (0..mutants).filter(differs) {
                    first[lane] = Some(edge + 1);
                }
                alive &= !wrong;
                if alive == 0 {
                    break;
                }
            }
        }
        first
    }

    /// Returns the gates that depend on a flip-flop or on one of the first `varying` inputs.
    fn moving(&self, varying: usize) -> Vec<Gate> {
        let mut moves = vec![false; self.words];
        let sources = self.flip_flops.iter().map(|(to, _)| to);
        for &index in self.inputs[..varying].iter().chain(sources) {
            moves[index] = true;
        }
        let gates = self.gates.iter().filter(|gate| {
            moves[gate.to] = gate.from.iter().any(|signal| moves[signal.index]);
            moves[gate.to]
        });
        gates.copied().collect()
    }
}

fn evaluate(gates: &[Gate], words: &mut [u64]) {
    for gate in gates {
        let [left, right] = gate.from;
        words[gate.to] = left.of(words) & right.of(words);
    }
}

/// Returns a bit of a number as a word of that level in every lane.
fn spread(number: u64, bit: usize) -> u64 {
    0u64.wrapping_sub(number >> bit & 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One flip-flop that follows input 0; the output is the flip-flop, inverted if input 1 is high.
    const FOLLOWER: &str = "aag 6 2 1 1 3\n2\n4\n6 2\n13\n8 6 5\n10 7 4\n12 9 11\n";

    #[test]
    fn a_gate_before_its_driver_is_refused() {
        assert!(Circuit::read(FOLLOWER).is_some());
        let turned = FOLLOWER.replace("10 7 4\n12 9 11\n", "12 9 11\n10 7 4\n");
        assert!(Circuit::read(&turned).is_none());
    }

    #[test]
    fn a_signal_that_does_not_exist_is_refused() {
        let beyond = FOLLOWER.replace("12 9 11\n", "14 9 11\n");
        assert!(Circuit::read(&beyond).is_none());
        assert!(Circuit::read(&FOLLOWER.replace("\n2\n", "\n\n")).is_none());
    }

    /// Lane 1 has the output inverted from its first edge; lane 0 has the original, and `expected` is wrong at its third edge.
    #[test]
    fn each_lane_has_the_edge_of_its_first_difference() {
        let circuit = Circuit::read(FOLLOWER).expect("a circuit");
        let seen = circuit.differences(&[0b10], 2, &[1, 0, 1], &[1, 0, 0]);
        assert_eq!(seen, [Some(3), Some(1)]);
        let seen = circuit.differences(&[0], 1, &[1, 0, 1], &[1, 0, 1]);
        assert_eq!(seen, [None]);
    }
}
