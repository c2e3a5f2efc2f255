//! The mutation score of stimuli: how many mutants of a design differ from a model at the outputs.
//!
//! yosys elaborates the design without flattening it, adds all mutants to it, each selected by a number at an additional input,
//! and writes it as one circuit of gates, which is simulated for 64 mutants at once.
//! A mutant is killed if an output differs from the expected one after any edge of any stimulus.
//! Otherwise a temporal induction compares the mutated module, with all modules below it, with the original module.

use std::path::Path;

use super::lanes::{Circuit, LANES};
use super::{Score, different, parted, run, unreadable, usable};
use crate::cache::Cache;
use crate::formal::Design;
use crate::play::{Play, bits};
use crate::tool::{self, Tool, ToolError};
use crate::yosys::chparam;

/// The additional input of each mutated module: the number of the mutant, 0 for the original.
const NUMBER: &str = "mutant";
const NUMBER_BITS: usize = 16;

/// Inputs from power-on, and the outputs that they must cause.
#[derive(Debug, Clone)]
pub struct Stimulus {
    /// The inputs before each edge, as a text of [`Play`].
    pub inputs: String,
    /// The outputs after each edge, from a model, as a text of [`Play`].
    pub expected: String,
}

/// A design with stimuli.
#[derive(Debug, Clone)]
pub struct Played {
    /// The design of which mutants are made.
    pub design: Design,
    /// The design's parameters and ports; inputs and outputs have at most 48 bits each.
    pub play: Play,
    /// The stimuli; the shortest should be first, since no other is applied to a mutant that it kills.
    pub stimuli: Vec<Stimulus>,
    /// Maximum number of steps of an induction.
    pub steps: usize,
    /// Number of mutants that yosys generates, before those of flip-flops are omitted.
    pub sample: usize,
}

impl Played {
    /// Determines the mutation score, or returns it from the cache.
    ///
    /// The design without a mutation must have the expected outputs;
    /// otherwise the error names the first edge after which they differ.
    pub fn score(&self, cache: &Cache) -> Result<Score, ToolError> {
        let settings = format!("{:?} {} {}", self.play, self.steps, self.sample);
        let identity = Tool::YOSYS.identity();
        let mut ingredients = vec![
            include_str!("played.rs"),
            include_str!("mod.rs"),
            include_str!("lanes.rs"),
            &settings,
            &identity,
        ];
        let stimuli = self.stimuli.iter();
        ingredients.extend(stimuli.flat_map(|part| [part.inputs.as_str(), &part.expected]));
        let texts = self.design.verilog.iter();
        ingredients.extend(texts.flat_map(|(name, text)| [*name, text]));
        let entry = cache.entry("mutation-played", &ingredients, |folder| {
            let score = self.determine(folder)?;
            tool::write(&folder.join("score"), &score.to_text())
        })?;
        let text = tool::read(&entry.join("score"))?;
        Score::from_text(&text).ok_or_else(|| unreadable("the score"))
    }

    fn determine(&self, folder: &Path) -> Result<Score, ToolError> {
        self.design.write_into(folder)?;
        run(&self.listing(), folder)?;
        let list = tool::read(&folder.join("mutants"))?;
        let mutants = usable(&list);
        let numbered = mutants
            .iter()
            .zip(1..)
            .map(|(mutate, number)| format!("{mutate} -ctrl {NUMBER} {NUMBER_BITS} {number}\n"));
        let all = numbered.collect::<String>();
        tool::write(&folder.join("play.v"), &self.wrapper())?;
        run(&circuit(&all), folder)?;
        let seen = self.simulate(mutants.len(), folder)?;
        if let Some((stimulus, edge)) = seen[0] {
            return Err(unreadable(&format!(
                "the model's outputs for the design without a mutation: another one after edge {edge} of stimulus {stimulus}"
            )));
        }
        let kills = seen.iter().enumerate();
        let kills = kills.map(|(number, difference)| format!("{number} {difference:?}\n"));
        tool::write(&folder.join("kills"), &kills.collect::<String>())?;
        let same: Vec<usize> = (0..mutants.len())
            .filter(|number| seen[number + 1].is_none())
            .collect();
        let (same, killed) = parted(&mutants, &same);
        let different = different(&same, self.steps, folder)?;
        let (survivors, equivalent) = parted(&same, &different);
        let texts = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
        Ok(Score {
            killed: texts(killed),
            equivalent: texts(equivalent),
            survivors: texts(survivors),
        })
    }

    /// Returns a yosys script that elaborates the design and lists mutants.
    fn listing(&self) -> String {
        format!(
            "read_verilog -sv {}\nhierarchy -check -top {}{}\nproc\nopt -full\nwrite_rtlil all.il\n\
             mutate -list {} -seed 1 -o mutants\n",
            self.design.verilog_names(),
            self.design.top,
            chparam(&self.play.parameters),
            self.sample,
        )
    }

    /// Returns the module `play`, whose inputs above those of the stimulus are the number of the mutant.
    fn wrapper(&self) -> String {
        let mut play = self.play.clone();
        play.inputs.insert(0, bits(NUMBER, NUMBER_BITS));
        play.verilog(true)
    }

    /// Applies the stimuli to the original and to each mutant, 64 at once;
    /// returns for each the number of the stimulus and the edge that first show a difference.
    fn simulate(&self, mutants: usize, folder: &Path) -> Result<Vec<Difference>, ToolError> {
        let text = tool::read(&folder.join("mutants.aag"))?;
        let circuit = Circuit::read(&text).ok_or_else(|| unreadable("a circuit of gates"))?;
        let mut seen = vec![None; mutants + 1];
        for (at, stimulus) in self.stimuli.iter().enumerate() {
            let mut inputs = lines(&stimulus.inputs);
            // The circuit's first input is the clock.
            inputs.iter_mut().for_each(|line| *line <<= 1);
            let expected = lines(&stimulus.expected);
            let rest = (0..=mutants).filter(|&number| seen[number].is_none());
            let rest: Vec<usize> = rest.collect();
            for group in rest.chunks(LANES) {
                let bits = (0..NUMBER_BITS).map(|bit| {
                    let lanes = group.iter().enumerate();
                    lanes.fold(0, |word, (lane, number)| {
                        word | ((number >> bit & 1) as u64) << lane
                    })
                });
                let constant: Vec<u64> = bits.collect();
                let differences = circuit.differences(&constant, group.len(), &inputs, &expected);
                for (&number, edge) in group.iter().zip(differences) {
                    seen[number] = edge.map(|edge| (at, edge));
                }
            }
        }
        Ok(seen)
    }
}

/// Returns a yosys script that adds the mutants to the design and writes it as a circuit of gates.
/// Its first input is the clock, which no gate reads.
fn circuit(mutants: &str) -> String {
    format!(
        "read_rtlil all.il\n{mutants}read_verilog play.v\nhierarchy -top play\nflatten\ndffunmap\nsimplemap\ntechmap\n\
         opt_expr -mux_undef\nopt_merge\nopt_clean\naigmap\nopt_clean -purge\n\
         write_aiger -ascii -zinit mutants.aag\n"
    )
}

/// The number of a stimulus, and the edge, counted from 1, after which the outputs first differ from the expected ones.
type Difference = Option<(usize, usize)>;

/// Returns each line's bits as a number.
fn lines(text: &str) -> Vec<u64> {
    let number = |line: &str| {
        line.bytes()
            .fold(0, |all, bit| all << 1 | u64::from(bit & 1))
    };
    text.lines().map(number).collect()
}
