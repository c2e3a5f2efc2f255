//! Mutation scores: how many mutants of a design its contract detects ([`score`]),
//! and how many are detected by stimuli whose outputs are known from a model ([`Played::score`]).
//!
//! | module | contents |
//! |---|---|
//! | `lanes` | simulation of 64 mutants at once |
//! | `gates` | AND gates, without duplicates |
//! | `miter` | equality of a mutant and its design |
//! | `played` | the score of stimuli |
//!
//! yosys' `mutate` changes one bit at one cell of the flattened design: it is inverted, constant, or inverted while another bit is 0 or 1.
//! A mutant is killed if it violates the contract in a run from power-on.
//! Otherwise a temporal induction compares it with the design:
//! if its outputs can never differ, it is equivalent;
//! else it has survived: the contract does not detect it.
//! Mutants of flip-flop outputs are omitted: yosys 0.23 rejects their power-on levels as conflicting.
//! Mutants of clocks are omitted, too: neither the induction nor the circuit of gates has a clock, so they would count as equivalent.

mod gates;
mod lanes;
mod miter;
mod played;

pub use lanes::Wait;
pub use played::{Played, Stimulus};

use std::path::Path;
use std::time::Duration;

use crate::cache::Cache;
use crate::formal::Design;
use crate::source::Source;
use crate::tool::{self, Tool, ToolError};
use crate::yosys::chparam;

/// Time limit for a sample of a thousand; a mutant takes about a second on an idle machine.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

/// Time limit for one induction, in seconds; a mutant without a verdict by then has survived.
const SOLVER_LIMIT: u32 = 120;

/// Begins the line before each mutant's part of yosys' log.
const MARK: &str = "NEXT MUTANT ";

/// A design, and the contract whose mutation score is determined.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The design of which mutants are made.
    pub design: Design,
    /// The module with the assertions.
    pub contract: Source,
    /// The contract's parameters.
    pub parameters: &'static [(&'static str, usize)],
    /// Maximum number of steps of an induction, and so the length of the runs from power-on.
    /// A fault that shows only when a filtered line falls again needs a run in which it rises first.
    pub steps: usize,
    /// Number of mutants that yosys generates, before those of flip-flops are omitted.
    pub sample: usize,
}

/// The mutation score of a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Score {
    /// The mutants that violate the contract, or differ from the model, as yosys describes them.
    pub killed: Vec<String>,
    /// The mutants that are proved equivalent to the design.
    pub equivalent: Vec<String>,
    /// The mutants that are neither.
    pub survivors: Vec<String>,
}

impl Score {
    fn lists(&self) -> [&Vec<String>; 3] {
        [&self.killed, &self.equivalent, &self.survivors]
    }

    /// Writes one line for each mutant: the number of its list, and the mutant.
    fn to_text(&self) -> String {
        let lists = self.lists().into_iter().zip(0..);
        let lines =
            lists.flat_map(|(list, n)| list.iter().map(move |line| format!("{n} {line}\n")));
        lines.collect()
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut lists: [Vec<String>; 3] = Default::default();
        for line in text.lines() {
            let (number, mutant) = line.split_once(' ')?;
            let list = lists.get_mut(number.parse::<usize>().ok()?)?;
            list.push(mutant.to_owned());
        }
        let [killed, equivalent, survivors] = lists;
        Some(Self {
            killed,
            equivalent,
            survivors,
        })
    }
}

/// Determines the mutation score, or returns it from the cache.
pub fn score(subject: &Subject, cache: &Cache) -> Result<Score, ToolError> {
    let parameters = format!(
        "{:?} {} {}",
        subject.parameters, subject.steps, subject.sample
    );
    let identity = Tool::YOSYS.identity();
    let mut ingredients = vec![
        include_str!("mod.rs"),
        subject.design.top,
        &parameters,
        &identity,
        subject.contract.text,
    ];
    let texts = subject.design.verilog.iter();
    ingredients.extend(texts.flat_map(|(name, text)| [*name, text]));
    let entry = cache.entry("mutation", &ingredients, |folder| {
        let score = determine(subject, folder)?;
        tool::write(&folder.join("score"), &score.to_text())
    })?;
    let text = tool::read(&entry.join("score"))?;
    Score::from_text(&text).ok_or_else(|| unreadable("the score"))
}

fn unreadable(what: &str) -> ToolError {
    ToolError::Unreadable {
        tool: Tool::YOSYS,
        what: what.to_owned(),
    }
}

fn determine(subject: &Subject, folder: &Path) -> Result<Score, ToolError> {
    subject.design.write_into(folder)?;
    tool::write(&folder.join(subject.contract.name()), subject.contract.text)?;
    run(&listing(subject), folder)?;
    let list = tool::read(&folder.join("mutants"))?;
    let mutants = usable(&list);
    let kept = undecided(&mutants, subject.steps, folder)?;
    let (others, killed) = parted(&mutants, &kept);
    let different = different(&others, subject.steps, folder)?;
    let (survivors, equivalent) = parted(&others, &different);
    let texts = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
    Ok(Score {
        killed: texts(killed),
        equivalent: texts(equivalent),
        survivors: texts(survivors),
    })
}

/// Returns the mutants with these indices, and the others.
fn parted<'a>(mutants: &[&'a str], chosen: &[usize]) -> (Vec<&'a str>, Vec<&'a str>) {
    let (with, without): (Vec<_>, Vec<_>) =
        (0..mutants.len()).partition(|number| chosen.contains(number));
    let of = |numbers: Vec<usize>| numbers.into_iter().map(|number| mutants[number]).collect();
    (of(with), of(without))
}

/// Returns a yosys script that elaborates contract and design and lists mutants of the design.
/// The contract's module is not mutated, even if its name contains the design's.
/// The script must run only once, because cell names differ at each elaboration.
fn listing(subject: &Subject) -> String {
    let (top, design) = (subject.contract.name(), subject.design.top);
    let top = top.trim_end_matches(".v");
    format!(
        "read_verilog -formal -sv {} {}\nhierarchy -check -top {top}{}\nproc\n\
         setattr -mod -set keep_hierarchy 1 *{design}*\nflatten\nopt -full\nwrite_rtlil all.il\n\
         mutate -list {} -seed 1 -o mutants *{design}* *{top}* %d\n",
        subject.design.verilog_names(),
        subject.contract.name(),
        chparam(subject.parameters),
        subject.sample,
    )
}

/// Returns the mutants of yosys' list without those of flip-flop outputs and of clocks.
fn usable(list: &str) -> Vec<&str> {
    let omitted = ["-port Q ", "-port CLK ", "-port clk_i ", "-wire clk_i "];
    list.lines()
        .filter(|line| line.starts_with("mutate "))
        .filter(|line| !omitted.iter().any(|part| line.contains(part)))
        .collect()
}

/// Returns the indices of the mutants that do not violate the contract within `steps` edges from power-on.
fn undecided(mutants: &[&str], steps: usize, folder: &Path) -> Result<Vec<usize>, ToolError> {
    let script = mutants.iter().enumerate().map(|(number, mutate)| {
        format!(
            "log {MARK}{number}\ndesign -reset\nread_rtlil all.il\n{mutate}\nsetattr -mod -unset keep_hierarchy *\n\
             flatten\nopt_clean\n\
             sat -tempinduct -prove-asserts -set-assumes -set-init-zero -seq 1 -maxsteps {steps} -timeout {SOLVER_LIMIT}\n"
        )
    });
    let log = run(&script.collect::<String>(), folder)?;
    without(&log, mutants.len(), "model found for base case: FAIL!")
}

/// Returns the indices of the mutants that are not proved equivalent to the design.
fn different(mutants: &[&str], steps: usize, folder: &Path) -> Result<Vec<usize>, ToolError> {
    let script = mutants.iter().enumerate().map(|(number, mutate)| {
        let module = mutate.split("-module ").nth(1).unwrap_or_default();
        let module = module.split(' ').next().unwrap_or_default();
        let side = |name: &str, change: &str| {
            format!(
                "read_rtlil all.il\n{change}\nhierarchy -top {module}\nsetattr -mod -unset keep_hierarchy *\nflatten\nrename {module} {name}\ndesign -stash {name}\n"
            )
        };
        format!(
            "log {MARK}{number}\ndesign -reset\n{}{}\
             design -copy-from gold -as gold gold\ndesign -copy-from gate -as gate gate\n\
             setattr -mod -unset keep_hierarchy *\nmiter -equiv -flatten gold gate miter\nhierarchy -top miter\nopt_clean\n\
             sat -tempinduct -prove trigger 0 -set-init-zero -seq 1 -maxsteps {steps} -timeout {SOLVER_LIMIT} miter\n",
            side("gold", ""),
            side("gate", mutate),
        )
    });
    if mutants.is_empty() {
        return Ok(Vec::new());
    }
    let log = run(&script.collect::<String>(), folder)?;
    without(&log, mutants.len(), "Induction step proven: SUCCESS!")
}

/// Returns the indices of the mutants whose part of the log does not contain `sentence`.
fn without(log: &str, mutants: usize, sentence: &str) -> Result<Vec<usize>, ToolError> {
    let parts: Vec<&str> = log.split(&format!("\n{MARK}")).skip(1).collect();
    if parts.len() != mutants {
        return Err(unreadable("a verdict for each mutant"));
    }
    let numbered = parts.iter().enumerate();
    Ok(numbered
        .filter(|(_, part)| !part.contains(sentence))
        .map(|(number, _)| number)
        .collect())
}

fn run(script: &str, folder: &Path) -> Result<String, ToolError> {
    tool::write(&folder.join("mutation.ys"), script)?;
    let arguments = ["-ql", "mutation.log", "mutation.ys"];
    Tool::YOSYS.run("mutants", arguments, folder, LIMIT)?;
    tool::read(&folder.join("mutation.log"))
}
