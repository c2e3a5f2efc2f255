//! Simulation of 64 mutants at once: a circuit of AND gates, in which each bit of a word belongs to another mutant.
//!
//! The circuit is a file of the format AIGER in its form as text: "aag M I L O A", then one line for each input, flip-flop, output and gate.
//! A signal is a number, and its inverse is that number plus 1; signal 0 is always low. All flip-flops start low.
//! Inputs and outputs are in the order of yosys' `write_aiger`: one after another in the order of the ports' names, the lowest bit first.
//!
//! A [`Wait`] skips the edges at which a mutant only counts. This is proved for each mutant: constants are propagated through
//! the circuit, once for each position of the counter's lowest 0, while all higher bits are variables.

use super::gates::Gates;

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

/// A time in which the inputs do not change: after `edge` edges of a stimulus, 2^`bits` - 1 edges with the last inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The number of edges before.
    pub edge: usize,
    /// The number of bits of the counter that these edges fill.
    pub bits: u32,
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

    /// Returns the number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Returns the number of flip-flops.
    pub fn flip_flops(&self) -> usize {
        self.flip_flops.len()
    }

    /// Applies `stimulus` from power-on to a group of at most [`LANES`] mutants, and compares the outputs after each edge with `expected`;
    /// bit 0 of each number is the first input or output.
    ///
    /// `constant` gives the level of each input above those of the stimulus, as one word with a bit for each mutant.
    /// Returns for each mutant the first edge after which it differs, counted from 1 without the edges of the wait.
    /// A mutant that does more than count in the wait is not compared after it.
    pub fn differences(
        &self,
        constant: &[u64],
        mutants: usize,
        stimulus: &[u64],
        expected: &[u64],
        wait: Option<Wait>,
    ) -> Vec<Option<usize>> {
        let varying = self.inputs.len() - constant.len();
        let mut words = vec![0; self.words];
        for (index, word) in self.inputs[varying..].iter().zip(constant) {
            words[*index] = *word;
        }
        let all = u64::MAX >> (LANES - mutants);
        let moving = self.reduced(varying, all, &mut words);
        let visible = moving.visible();
        let mut first = vec![None; mutants];
        let mut alive = all;
        let mut next = vec![0; self.flip_flops.len()];
        for (edge, (inputs, outputs)) in stimulus.iter().zip(expected).enumerate() {
            if let Some(wait) = wait.filter(|wait| wait.edge == edge) {
                let compared = alive;
                for lane in (0..mutants).filter(|lane| compared >> lane & 1 == 1) {
                    match self.counter(&words, lane, wait.bits as usize) {
                        Some(counter) => {
                            let flip_flops = counter.iter().map(|at| self.flip_flops[*at].0);
                            flip_flops.for_each(|index| words[index] |= 1 << lane);
                        }
                        None => alive &= !(1 << lane),
                    }
                }
            }
            for (at, index) in self.inputs[..varying].iter().enumerate() {
                words[*index] = spread(*inputs, at);
            }
            evaluate(&moving.gates, &mut words);
            for (word, (_, from)) in next.iter_mut().zip(&moving.flip_flops) {
                *word = from.of(&words);
            }
            for (word, (to, _)) in next.iter().zip(&self.flip_flops) {
                words[*to] = *word;
            }
            evaluate(&visible, &mut words);
            let wrong = moving.outputs.iter().enumerate();
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

    /// Returns the circuit without the gates whose level no edge changes, and without those that repeat an input.
    ///
    /// `words` has the levels of the constant inputs; the levels of the omitted gates are added.
    /// `varying` inputs are not constant, and `all` has a bit for each mutant.
    fn reduced(&self, varying: usize, all: u64, words: &mut [u64]) -> Circuit {
        let mut moves = vec![false; self.words];
        let sources = self.flip_flops.iter().map(|(to, _)| to);
        for &index in self.inputs[..varying].iter().chain(sources) {
            moves[index] = true;
        }
        let mut same: Vec<Signal> = (0..self.words).map(|at| Signal::new(2 * at)).collect();
        let through = |same: &[Signal], signal: Signal| Signal {
            index: same[signal.index].index,
            inverted: same[signal.index].inverted ^ signal.inverted,
        };
        let mut gates = Vec::new();
        for gate in &self.gates {
            let from = gate.from.map(|signal| through(&same, signal));
            let fixed = from.map(|signal| (!moves[signal.index]).then(|| signal.of(words) & all));
            match fixed {
                [Some(left), Some(right)] => words[gate.to] = left & right,
                [Some(0), _] | [_, Some(0)] => words[gate.to] = 0,
                [Some(high), _] if high == all => same[gate.to] = from[1],
                [_, Some(high)] if high == all => same[gate.to] = from[0],
                _ => {
                    moves[gate.to] = true;
                    gates.push(Gate { from, ..*gate });
                }
            }
        }
        let flip_flops = self.flip_flops.iter();
        let outputs = self.outputs.iter();
        Circuit {
            flip_flops: flip_flops
                .map(|(to, from)| (*to, through(&same, *from)))
                .collect(),
            outputs: outputs.map(|signal| through(&same, *signal)).collect(),
            inputs: self.inputs.clone(),
            words: self.words,
            gates,
        }
    }

    /// Returns the gates on which an output depends without a flip-flop between.
    fn visible(&self) -> Vec<Gate> {
        let mut seen = vec![false; self.words];
        for signal in &self.outputs {
            seen[signal.index] = true;
        }
        let mut visible = Vec::new();
        for gate in self.gates.iter().rev() {
            if !seen[gate.to] {
                continue;
            }
            gate.from
                .iter()
                .for_each(|signal| seen[signal.index] = true);
            visible.push(*gate);
        }
        visible.reverse();
        visible
    }

    /// Copies the circuit into `gates`, with these signals as its inputs and flip-flops;
    /// returns the next signals of the flip-flops, and the outputs.
    pub(super) fn copied(
        &self,
        inputs: &[usize],
        state: &[usize],
        gates: &mut Gates,
    ) -> [Vec<usize>; 2] {
        let mut signals = vec![0; self.words];
        for (index, signal) in self.inputs.iter().zip(inputs) {
            signals[*index] = *signal;
        }
        for ((index, _), signal) in self.flip_flops.iter().zip(state) {
            signals[*index] = *signal;
        }
        let of = |signal: Signal, signals: &[usize]| {
            signals[signal.index] ^ usize::from(signal.inverted != 0)
        };
        for gate in &self.gates {
            let [left, right] = gate.from.map(|signal| of(signal, &signals));
            signals[gate.to] = gates.and(left, right);
        }
        let next = self.flip_flops.iter().map(|(_, from)| of(*from, &signals));
        let next = next.collect();
        let outputs = self.outputs.iter().map(|signal| of(*signal, &signals));
        [next, outputs.collect()]
    }

    /// Returns the flip-flops of a counter, the lowest bit first, if for 2^`bits` - 1 edges from this lane's state
    /// with this lane's inputs nothing changes but this counter, which counts these edges from 0.
    fn counter(&self, words: &[u64], lane: usize, bits: usize) -> Option<Vec<usize>> {
        let level = |index: &usize| (words[*index] >> lane & 1) as usize;
        let inputs: Vec<usize> = self.inputs.iter().map(level).collect();
        let flip_flops = self.flip_flops.iter();
        let start: Vec<usize> = flip_flops.map(|(index, _)| level(index)).collect();
        let mut counter = Vec::new();
        for _ in 0..bits {
            // All bits found so far are high; at the next edge they fall, and the next bit rises.
            let mut state = start.clone();
            counter.iter().for_each(|at: &usize| state[*at] = 1);
            let [next, _] = self.copied(&inputs, &state, &mut Gates::default());
            let changed = (0..start.len()).filter(|at| next[*at] != start[*at]);
            let [rises] = changed.collect::<Vec<_>>()[..] else {
                return None;
            };
            if start[rises] == 1 {
                return None;
            }
            counter.push(rises);
        }
        let counts = |lowest: usize| {
            let (mut state, mut expected) = (start.clone(), start.clone());
            for (at, flip_flop) in counter.iter().enumerate() {
                let variable = 2 * (1 + at);
                [state[*flip_flop], expected[*flip_flop]] = match at {
                    _ if at < lowest => [1, 0],
                    _ if at == lowest => [0, 1],
                    _ => [variable, variable],
                };
            }
            let [next, _] = self.copied(&inputs, &state, &mut Gates::over(bits));
            next == expected
        };
        (0..bits).all(counts).then_some(counter)
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
        let seen = circuit.differences(&[0b10], 2, &[1, 0, 1], &[1, 0, 0], None);
        assert_eq!(seen, [Some(3), Some(1)]);
        let seen = circuit.differences(&[0], 1, &[1, 0, 1], &[1, 0, 1], None);
        assert_eq!(seen, [None]);
    }

    /// A counter of two bits that stays at 3; input 1 keeps the higher bit low. The outputs are the bits.
    const COUNTER: &str =
        "aag 8 2 2 2 4\n2\n4\n6 13\n8 16\n6\n8\n10 6 8\n12 6 11\n14 7 9\n16 15 5\n";

    /// After a wait of 3 edges the counter stays; the mutant of lane 1, whose higher bit stays low, is not compared after the wait.
    #[test]
    fn a_wait_is_skipped_if_the_circuit_only_counts() {
        let circuit = Circuit::read(COUNTER).expect("a circuit");
        let wait = Some(Wait { edge: 0, bits: 2 });
        let seen = circuit.differences(&[0b10], 2, &[0, 0], &[3, 3], wait);
        assert_eq!(seen, [None, None]);
        let seen = circuit.differences(&[0], 1, &[0, 0], &[3, 0], wait);
        assert_eq!(seen, [Some(2)]);
        // After one edge the counter is not 0.
        let wait = Some(Wait { edge: 1, bits: 2 });
        let seen = circuit.differences(&[0], 1, &[0, 0], &[1, 3], wait);
        assert_eq!(seen, [None]);
    }
}
