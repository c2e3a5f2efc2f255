//! The mutation score of stimuli: how many mutants of a design differ from a model at the outputs.
//!
//! yosys elaborates the design without flattening it and adds all mutants to it, each selected by a number at an additional input.
//! So one compilation by Verilator serves for all mutants.
//! A mutant is killed if an output differs from the expected one after any edge of any stimulus.
//! Otherwise a temporal induction compares the mutated module, with all modules below it, with the original module.

use std::path::Path;

use super::{LIMIT, Score, different, parted, run, unreadable, usable};
use crate::cache::Cache;
use crate::formal::Design;
use crate::play::{Play, bits};
use crate::source::{Source, source};
use crate::tool::{self, Tool, ToolError};
use crate::yosys::chparam;

/// The program that applies the stimuli to each mutant; its head describes what it prints.
const MAIN: Source = source!("shared/dv/mutants_main.cpp");

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
        let identities = [Tool::YOSYS.identity(), Tool::VERILATOR.identity()];
        let mut ingredients = vec![
            include_str!("played.rs"),
            include_str!("mod.rs"),
            MAIN.text,
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
        let numbered = mutants
            .iter()
            .zip(1..)
            .map(|(mutate, number)| format!("{mutate} -ctrl {NUMBER} {NUMBER_BITS} {number}\n"));
        let all = numbered.collect::<String>();
        run(
            &format!("read_rtlil all.il\n{all}opt_clean\nwrite_verilog -noattr mutants.v\n"),
            folder,
        )?;
        let verdicts = self.simulate(mutants.len(), folder)?;
        if verdicts[0] != "same" {
            return Err(ToolError::Unreadable {
                tool: Tool::VERILATOR,
                what: format!("the design without a mutation: {}", verdicts[0]),
            });
        }
        let same: Vec<usize> = (0..mutants.len())
            .filter(|number| verdicts[number + 1] == "same")
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

    /// Applies the stimuli to the original and to each mutant; returns for each "same" or the first difference.
    fn simulate(&self, mutants: usize, folder: &Path) -> Result<Vec<String>, ToolError> {
        let mut play = self.play.clone();
        let width = play.bench_parameters()[0].1;
        play.inputs.insert(0, bits(NUMBER, NUMBER_BITS));
        tool::write(&folder.join("play.v"), &play.verilog(true))?;
        tool::write(&folder.join(MAIN.name()), MAIN.text)?;
        // Circular logic is a warning only: the bits of a vector depend on each other in yosys' Verilog, but on none in a circle.
        let options = "--cc --exe --build -O3 --x-assign fast --x-initial fast -Wno-lint -Wno-UNOPTFLAT -Mdir obj -o bench --top-module play";
        let files = ["-CFLAGS", "-O1", "mutants.v", "play.v", MAIN.name()];
        let arguments = options.split(' ').chain(files);
        Tool::VERILATOR.run("the bench with all mutants", arguments, folder, LIMIT)?;
        let mut command = format!("./obj/bench {width} {mutants}");
        for (number, stimulus) in self.stimuli.iter().enumerate() {
            for (name, text) in [
                ("stimulus", &stimulus.inputs),
                ("expected", &stimulus.expected),
            ] {
                let name = format!("{name}{number}");
                tool::write(&folder.join(&name), text)?;
                command += &format!(" {name}");
            }
        }
        // Started through a shell, because the program is in this folder and not on the `PATH`.
        let shell = Tool {
            program: "sh",
            ..Tool::VERILATOR
        };
        let said = shell.run("the mutants", ["-c", &command], folder, LIMIT)?;
        tool::write(&folder.join("verdicts"), &said)?;
        let lines = said.lines().zip(0..=mutants);
        let verdict = |(line, number): (&str, usize)| {
            let rest = line.strip_prefix(&format!("{number} "))?;
            Some(rest.to_owned())
        };
        let verdicts: Option<Vec<String>> = lines.map(verdict).collect();
        verdicts
            .filter(|all| all.len() == mutants + 1)
            .ok_or_else(|| unreadable("a verdict for each mutant"))
    }
}
