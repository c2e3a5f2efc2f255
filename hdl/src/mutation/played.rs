//! The mutation score of stimuli: how many mutants of a design differ from a model at the outputs.
//!
//! yosys elaborates the design without flattening it and writes each mutant as Verilog; Icarus simulates it.
//! A mutant is killed if an output differs from the expected one after any edge of any stimulus.
//! Otherwise a temporal induction compares the mutated module, with all modules below it, with the original module.

use std::fmt::Write as _;
use std::path::Path;

use super::{Score, different, run, unreadable, usable};
use crate::cache::Cache;
use crate::formal::Design;
use crate::icarus;
use crate::play::Play;
use crate::tool::{self, Tool, ToolError};
use crate::yosys::chparam;

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
    /// The design's parameters and ports.
    pub play: Play,
    /// The stimuli; the shortest should be first, since a mutant that one of them kills is not simulated again.
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
        let identities = [Tool::YOSYS.identity(), Tool::IVERILOG.identity()];
        let mut ingredients = vec![
            include_str!("played.rs"),
            include_str!("mod.rs"),
            &settings,
        ];
        let stimuli = self.stimuli.iter();
        ingredients.extend(stimuli.flat_map(|part| [part.inputs.as_str(), &part.expected]));
        ingredients.extend(identities.iter().map(String::as_str));
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
        let script = mutants.iter().enumerate().map(|(number, mutate)| {
            format!(
                "design -reset\nread_rtlil all.il\n{mutate}\nwrite_verilog -noattr mutant{number}.v\n"
            )
        });
        run(&script.collect::<String>(), folder)?;
        if let Some(difference) = self.difference("original.v", folder)? {
            return Err(ToolError::Unreadable {
                tool: Tool::VVP,
                what: format!("the model's outputs for the design without a mutation: {difference}"),
            });
        }
        let mut same = Vec::new();
        for (number, mutate) in mutants.iter().enumerate() {
            if !self.is_killed(&format!("mutant{number}.v"), folder)? {
                same.push(*mutate);
            }
        }
        let different = different(&same, self.steps, folder)?;
        Ok(Score {
            killed: mutants.len() - same.len(),
            equivalent: same.len() - different.len(),
            survivors: different.iter().map(|&n| same[n].to_owned()).collect(),
        })
    }

    /// Returns a yosys script that elaborates the design, lists mutants and writes the original as Verilog.
    fn listing(&self) -> String {
        format!(
            "read_verilog -sv {}\nhierarchy -check -top {}{}\nproc\nopt -full\nwrite_rtlil all.il\n\
             mutate -list {} -seed 1 -o mutants\nwrite_verilog -noattr original.v\n",
            self.design.verilog_names(),
            self.design.top,
            chparam(&self.play.parameters),
            self.sample,
        )
    }

    /// A mutant with a combinational loop that oscillates never ends an edge: it is killed, too.
    fn is_killed(&self, netlist: &str, folder: &Path) -> Result<bool, ToolError> {
        match self.difference(netlist, folder) {
            Ok(difference) => Ok(difference.is_some()),
            Err(ToolError::TimedOut {
                tool: Tool::VVP, ..
            }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Returns the first difference between the outputs and the expected ones.
    fn difference(&self, netlist: &str, folder: &Path) -> Result<Option<String>, ToolError> {
        for stimulus in &self.stimuli {
            let seen = icarus::played_netlist(&self.play, netlist, &stimulus.inputs, folder)?;
            if seen != stimulus.expected {
                return Ok(Some(first_difference(&seen, &stimulus.expected)));
            }
        }
        Ok(None)
    }
}

fn first_difference(seen: &str, expected: &str) -> String {
    let mut text = format!("{} edges", seen.lines().count());
    let mut lines = seen.lines().zip(expected.lines()).enumerate();
    if let Some((edge, (seen, expected))) = lines.find(|(_, (seen, expected))| seen != expected) {
        let _ = write!(
            text,
            ", {seen} instead of {expected} after edge {}",
            edge + 1
        );
    }
    text
}
