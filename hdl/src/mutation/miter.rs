//! Equality of a mutant and its design: with the same inputs from power-on, their outputs never differ.
//!
//! The circuit of all mutants is copied twice over the same inputs: with the number of a mutant, and with 0, the design.
//! The output of the two copies is high if an output of one differs from that of the other.
//! ABC decides whether it can ever be high: `scorr` proves by induction which signals of the copies always agree, and `pdr`
//! searches for an invariant or for a difference.

use std::time::Duration;

use super::gates::Gates;
use super::lanes::Circuit;
use crate::cache::Cache;
use crate::tool::{self, Tool, ToolError};

/// Time limit of ABC for one mutant.
const LIMIT: Duration = Duration::from_secs(300);

/// Time limit of `pdr` for one mutant, in seconds.
const SEARCH: u32 = 5;

/// How a comparison ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No inputs make the outputs differ.
    Equal,
    /// Some inputs make the outputs differ.
    Differs,
    /// The search was abandoned.
    Open,
}

/// Compares two copies of the circuit, which differ in the levels of their last inputs.
pub(super) fn compare(
    circuit: &Circuit,
    levels: [&[bool]; 2],
    cache: &Cache,
) -> Result<Verdict, ToolError> {
    let file = miter(circuit, levels);
    let script = format!("read_aiger miter.aig; scorr; pdr -T {SEARCH}; print_status");
    let content = format!("{file:?}");
    let identity = Tool::ABC.identity();
    let entry = cache.entry(
        "mutation-miter",
        &[&content, &script, &identity],
        |folder| {
            let path = folder.join("miter.aig");
            let named = |e| ToolError::Folder(path.display().to_string(), e);
            std::fs::write(&path, &file).map_err(named)?;
            let said = Tool::ABC.run("a comparison", ["-c", &script], folder, LIMIT)?;
            tool::write(&folder.join("said"), &said)
        },
    )?;
    let said = tool::read(&entry.join("said"))?;
    let has = |words| said.contains(words);
    match () {
        () if has("Status = 1 ") => Ok(Verdict::Equal),
        () if has("Status = 0 ") => Ok(Verdict::Differs),
        () if has("Status = -1 ") => Ok(Verdict::Open),
        () => Err(ToolError::Unreadable {
            tool: Tool::ABC,
            what: "how a comparison ended".to_owned(),
        }),
    }
}

/// Returns the two copies and the comparison of their outputs as a binary AIGER file.
fn miter(circuit: &Circuit, levels: [&[bool]; 2]) -> Vec<u8> {
    let (inputs, flip_flops) = (circuit.inputs(), circuit.flip_flops());
    let varying = inputs - levels[0].len();
    let mut gates = Gates::over(varying + 2 * flip_flops);
    let (mut next, mut outputs) = (Vec::new(), Vec::new());
    for (copy, levels) in levels.into_iter().enumerate() {
        let source = |number| 2 * (1 + number);
        let mut inputs: Vec<usize> = (0..varying).map(source).collect();
        inputs.extend(levels.iter().map(|level| usize::from(*level)));
        let first = varying + copy * flip_flops;
        let state: Vec<usize> = (first..first + flip_flops).map(source).collect();
        let [after, output] = circuit.copied(&inputs, &state, &mut gates);
        next.extend(after);
        outputs.push(output);
    }
    let differs = outputs[0].iter().zip(&outputs[1]);
    let differs = differs.fold(0, |any, (left, right)| {
        let one = gates.differ(*left, *right);
        gates.or(any, one)
    });
    gates.to_aiger(&next, differs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two inputs without a flip-flop; the output is the exclusive or.
    const EITHER: &str = "aag 5 2 0 1 3\n2\n4\n11\n6 2 5\n8 3 4\n10 7 9\n";

    #[test]
    fn copies_with_the_same_level_have_a_constant_comparison() {
        let circuit = Circuit::read(EITHER).expect("a circuit");
        let file = |levels: [bool; 2]| {
            let [left, right] = levels.map(|level| [level]);
            String::from_utf8(miter(&circuit, [&left, &right])).expect("no gate, so only text")
        };
        assert_eq!(file([true, true]), "aig 1 1 0 1 0\n0\n");
        assert_eq!(file([false, true]), "aig 1 1 0 1 0\n1\n");
    }
}
