//! The mutation score of stimuli: how many mutants of a design differ from a model at the outputs.
//!
//! yosys elaborates the design without flattening it, adds all mutants to it, each selected by a number at an additional input,
//! and writes it as one circuit of gates, which is simulated for 64 mutants at once.
//! A mutant is killed if an output differs from the expected one after any edge of any stimulus.
//! Otherwise the mutant is compared with the design from the design's inputs to its outputs.

use std::path::PathBuf;

use super::lanes::{Circuit, LANES, Wait};
use super::miter::{self, Verdict};
use super::{Score, run, unreadable, usable};
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
    /// A long time in which a counter counts, or none.
    pub wait: Option<Wait>,
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
    /// Number of mutants that yosys generates, before those of flip-flops are omitted.
    pub sample: usize,
}

impl Played {
    /// Determines the mutation score, or returns it from the cache.
    ///
    /// The design without a mutation must have the expected outputs;
    /// otherwise the error names the first edge after which they differ.
    pub fn score(&self, cache: &Cache) -> Result<Score, ToolError> {
        let mutated = self.mutated(cache)?;
        let [list, circuit] =
            ["mutants", "mutants.aag"].map(|name| tool::read(&mutated.join(name)));
        let (list, circuit) = (list?, circuit?);
        let abc = Tool::ABC.identity();
        let mut ingredients = vec![
            include_str!("played.rs"),
            include_str!("mod.rs"),
            include_str!("lanes.rs"),
            include_str!("gates.rs"),
            include_str!("miter.rs"),
            &abc,
            &list,
            &circuit,
        ];
        let stimuli = self.stimuli.iter();
        let waits = stimuli.clone().map(|part| format!("{:?}", part.wait));
        let waits: Vec<String> = waits.collect();
        ingredients.extend(waits.iter().map(String::as_str));
        ingredients.extend(stimuli.flat_map(|part| [part.inputs.as_str(), &part.expected]));
        let entry = cache.entry("mutation-played", &ingredients, |folder| {
            let score = self.determine(&list, &circuit, cache)?;
            tool::write(&folder.join("score"), &score.to_text())
        })?;
        let text = tool::read(&entry.join("score"))?;
        Score::from_text(&text).ok_or_else(|| unreadable("the score"))
    }

    /// Returns the folder in the cache with the list of mutants and with the circuit that contains them all.
    fn mutated(&self, cache: &Cache) -> Result<PathBuf, ToolError> {
        let yosys = Tool::YOSYS.identity();
        let (listing, wrapper) = (self.listing(), self.wrapper());
        let mut ingredients = vec![&*listing, &wrapper, &yosys];
        let script = circuit("");
        ingredients.push(&script);
        let texts = self.design.verilog.iter();
        ingredients.extend(texts.flat_map(|(name, text)| [*name, text]));
        cache.entry("mutants", &ingredients, |folder| {
            self.design.write_into(folder)?;
            run(&listing, folder)?;
            let list = tool::read(&folder.join("mutants"))?;
            let numbered = usable(&list).into_iter().zip(1..);
            let numbered = numbered.map(|(mutate, number)| {
                format!("{mutate} -ctrl {NUMBER} {NUMBER_BITS} {number}\n")
            });
            tool::write(&folder.join("play.v"), &wrapper)?;
            run(&circuit(&numbered.collect::<String>()), folder).map(drop)
        })
    }

    fn determine(&self, list: &str, text: &str, cache: &Cache) -> Result<Score, ToolError> {
        let mutants = usable(list);
        let circuit = Circuit::read(text).ok_or_else(|| unreadable("a circuit of gates"))?;
        let mut fates = simulated(&circuit, text, &self.stimuli, mutants.len(), cache)?;
        for (number, fate) in fates.iter_mut().enumerate().skip(1) {
            if *fate == Fate::Open {
                let [original, mutated] = [0, number].map(levels);
                *fate = match miter::compare(&circuit, [&original, &mutated], cache)? {
                    Verdict::Equal => Fate::Equal,
                    Verdict::Differs => Fate::Differs,
                    Verdict::Open => Fate::Open,
                };
            }
        }
        let list = |wanted: fn(&Fate) -> bool| {
            let fates = mutants.iter().zip(&fates[1..]);
            let chosen = fates.filter(|(_, fate)| wanted(fate));
            chosen
                .map(|(mutant, fate)| format!("{mutant} ({fate:?})"))
                .collect()
        };
        Ok(Score {
            killed: list(|fate| matches!(fate, Fate::Killed { .. })),
            equivalent: list(|fate| *fate == Fate::Equal),
            survivors: list(|fate| matches!(fate, Fate::Open | Fate::Differs)),
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
}

/// As [`simulate`]; the kills come from the cache.
fn simulated(
    circuit: &Circuit,
    text: &str,
    stimuli: &[Stimulus],
    mutants: usize,
    cache: &Cache,
) -> Result<Vec<Fate>, ToolError> {
    let mut ingredients = vec![include_str!("lanes.rs"), include_str!("gates.rs"), text];
    let waits = stimuli.iter().map(|part| format!("{:?}", part.wait));
    let waits: Vec<String> = waits.collect();
    ingredients.extend(waits.iter().map(String::as_str));
    let texts = stimuli.iter();
    ingredients.extend(texts.flat_map(|part| [part.inputs.as_str(), &part.expected]));
    let entry = cache.entry("mutation-kills", &ingredients, |folder| {
        let mut fates = vec![Fate::Open; mutants + 1];
        simulate(circuit, stimuli, &mut fates)?;
        let line = |(number, fate): (usize, &Fate)| match fate {
            Fate::Killed { stimulus, edge } => format!("{number} {stimulus} {edge}\n"),
            _ => String::new(),
        };
        let lines = fates.iter().enumerate().map(line);
        tool::write(&folder.join("kills"), &lines.collect::<String>())
    })?;
    let text = tool::read(&entry.join("kills"))?;
    let mut fates = vec![Fate::Open; mutants + 1];
    for line in text.lines() {
        let numbers = line.split(' ').map_while(|word| word.parse().ok());
        let numbers: Vec<usize> = numbers.collect();
        match numbers[..] {
            [number, stimulus, edge] if number < fates.len() => {
                fates[number] = Fate::Killed { stimulus, edge };
            }
            _ => return Err(unreadable("the kills")),
        }
    }
    Ok(fates)
}

/// Applies the stimuli to the original and to each mutant that is not killed, 64 at once.
fn simulate(circuit: &Circuit, stimuli: &[Stimulus], fates: &mut [Fate]) -> Result<(), ToolError> {
    for (at, stimulus) in stimuli.iter().enumerate() {
        let mut inputs = lines(&stimulus.inputs);
        // The circuit's first input is the clock.
        inputs.iter_mut().for_each(|line| *line <<= 1);
        let expected = lines(&stimulus.expected);
        let rest = (0..fates.len()).filter(|&number| fates[number] == Fate::Open);
        let rest: Vec<usize> = rest.collect();
        for group in rest.chunks(LANES) {
            let bits = (0..NUMBER_BITS).map(|bit| {
                let lanes = group.iter().enumerate();
                lanes.fold(0, |word, (lane, number)| {
                    word | ((number >> bit & 1) as u64) << lane
                })
            });
            let constant: Vec<u64> = bits.collect();
            let differences =
                circuit.differences(&constant, group.len(), &inputs, &expected, stimulus.wait);
            for (&number, edge) in group.iter().zip(differences) {
                if let Some(edge) = edge {
                    fates[number] = Fate::Killed { stimulus: at, edge };
                }
            }
        }
        if let Fate::Killed { stimulus, edge } = fates[0] {
            return Err(unreadable(&format!(
                "the model's outputs for the design without a mutation: another one after edge {edge} of stimulus {stimulus}"
            )));
        }
    }
    Ok(())
}

/// Returns the levels of the inputs that select a mutant.
fn levels(number: usize) -> [bool; NUMBER_BITS] {
    std::array::from_fn(|bit| number >> bit & 1 == 1)
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

/// What is known of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing yet.
    Open,
    /// An output differs after edge `edge` of a stimulus. Edges are counted from 1, without those of a skipped wait; stimuli from 0.
    Killed { stimulus: usize, edge: usize },
    /// No stimulus can make the outputs differ.
    Equal,
    /// Some inputs make the outputs differ, but no stimulus so far.
    Differs,
}

/// Returns each line's bits as a number.
fn lines(text: &str) -> Vec<u64> {
    let number = |line: &str| {
        line.bytes()
            .fold(0, |all, bit| all << 1 | u64::from(bit & 1))
    };
    text.lines().map(number).collect()
}
