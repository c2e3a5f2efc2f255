//! Proofs by yosys and ABC: the claims about a design, their decision procedures, and mutants that must be refuted.
//!
//! A [`Design`] is a set of source texts, so a mutant is a design with one expression replaced.
//! [`decide`] decides a [`Claim`] about a design:
//! a proof by temporal induction from the power-on state is [`Verdict::Proved`] for all time,
//! a counter-example from the power-on state is [`Verdict::Refuted`], everything else is [`Verdict::Open`].
//!
//! The assertions are in the modules of the folders `formal/`, whose headers describe them and why they are inductive.
//! Equivalence is decided with a miter, see `equality`.
//!
//! A verdict is cached by the content of all inputs, so unchanged claims are not proved again.

mod equality;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::cache::Cache;
use crate::fpga::Family;
use crate::source::{RTL, Source, TOP, VHDL};
use crate::tool::{self, Tool, ToolError};
use crate::yosys::chparam;

/// Time limit of a proof; on an idle machine every proof needs less than a tenth of it.
const LIMIT: Duration = Duration::from_secs(300);

/// Maximum number of steps of an induction.
/// The proofs need one step; a mutant's counter-example has up to twelve.
const STEPS: usize = 20;

/// A design as source texts, in Verilog and in VHDL.
#[derive(Debug, Clone)]
pub struct Design {
    /// The top module of the design.
    pub top: &'static str,
    /// Names and texts of the Verilog files, in the order in which yosys reads them.
    pub verilog: Vec<(&'static str, String)>,
    /// Names and texts of the equivalent VHDL files in analysis order; only [`Claim::VhdlIsVerilog`] uses them.
    pub vhdl: Vec<(&'static str, String)>,
}

/// A replacement of one expression of a design by a wrong one.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// The mutant's fault, as a sentence.
    pub fault: &'static str,
    /// The name of the changed file, Verilog or VHDL, as in [`Design`].
    pub file: &'static str,
    /// The original expression, literally; it must occur exactly once in the file.
    pub from: &'static str,
    /// The wrong expression that replaces it.
    pub to: &'static str,
}

/// Error: the expression that a mutant replaces does not occur exactly once.
#[derive(Debug)]
pub struct NotOnce {
    /// The mutant that could not be built.
    pub mutant: Mutant,
    /// Number of occurrences; 0 if the design has been reworded.
    pub times: usize,
}

impl fmt::Display for NotOnce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mutant {
            fault, file, from, ..
        } = self.mutant;
        write!(
            f,
            "the mutant '{fault}' changes `{from}`, which is {} times in {file}",
            self.times
        )
    }
}

impl std::error::Error for NotOnce {}

impl Design {
    /// Returns the design of version 1 without mutations.
    pub fn toggle_barrier() -> Self {
        Self {
            top: TOP,
            verilog: texts(&RTL),
            vhdl: texts(&VHDL),
        }
    }

    /// Returns the design with the mutant's expression replaced.
    pub fn mutated(mut self, mutant: Mutant) -> Result<Self, NotOnce> {
        let files = self.verilog.iter_mut().chain(&mut self.vhdl);
        let mut times = 0;
        for (_, text) in files.filter(|(name, _)| *name == mutant.file) {
            times = text.matches(mutant.from).count();
            *text = text.replacen(mutant.from, mutant.to, 1);
        }
        if times == 1 {
            Ok(self)
        } else {
            Err(NotOnce { mutant, times })
        }
    }

    pub(crate) fn write_into(&self, folder: &Path) -> Result<(), ToolError> {
        self.verilog
            .iter()
            .chain(&self.vhdl)
            .try_for_each(|(name, text)| tool::write(&folder.join(name), text))
    }

    pub(crate) fn verilog_names(&self) -> String {
        self.verilog
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Returns the names and the texts of source files.
pub fn texts(sources: &[Source]) -> Vec<(&'static str, String)> {
    sources
        .iter()
        .map(|source| (source.name(), source.text.to_owned()))
        .collect()
}

/// A claim about a design.
#[derive(Debug, Clone, Copy)]
pub enum Claim {
    /// Every assertion of a module that instantiates the design holds at every edge.
    Asserts {
        /// A module in a folder `formal/`; it instantiates the design and is the top of the proof.
        module: Source,
        /// Names and values of the module's Verilog parameters; other parameters keep their defaults.
        parameters: &'static [(&'static str, usize)],
    },
    /// The VHDL is equivalent to the Verilog.
    VhdlIsVerilog {
        /// Names and values of parameters, used for both languages; in VHDL they are generics.
        parameters: &'static [(&'static str, usize)],
    },
    /// The netlist synthesised for a device is equivalent to the Verilog.
    NetlistIsVerilog {
        /// The device family.
        family: Family,
        /// Names and values of parameters, used for both designs and set before synthesis.
        parameters: &'static [(&'static str, usize)],
    },
}

/// The result of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The claim holds for all time, by induction.
    Proved {
        /// The number of steps at which the induction succeeded.
        induction: usize,
    },
    /// A run from power-on violates the claim.
    Refuted,
    /// Neither a proof nor a counter-example was found.
    Open,
}

impl Verdict {
    fn to_text(self) -> String {
        match self {
            Self::Proved { induction } => format!("proved {induction}"),
            Self::Refuted => "refuted".to_owned(),
            Self::Open => "open".to_owned(),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        match text.split_once(' ') {
            Some(("proved", induction)) => Some(Self::Proved {
                induction: induction.parse().ok()?,
            }),
            None if text == "refuted" => Some(Self::Refuted),
            None if text == "open" => Some(Self::Open),
            _ => None,
        }
    }
}

/// Decides a claim about a design, or returns its verdict from the cache.
pub fn decide(design: &Design, claim: &Claim, cache: &Cache) -> Result<Verdict, ToolError> {
    let tools = [Tool::YOSYS, Tool::ABC, Tool::GHDL].map(Tool::identity);
    let claim_text = format!("{claim:?}");
    let mut ingredients = vec![
        // The proof procedure is part of the cache key, too.
        include_str!("mod.rs"),
        include_str!("equality.rs"),
        design.top,
        &claim_text,
    ];
    ingredients.extend(tools.iter().map(String::as_str));
    let texts = design.verilog.iter().chain(&design.vhdl);
    ingredients.extend(texts.flat_map(|(name, text)| [*name, text]));
    let entry = cache.entry("proof", &ingredients, |folder| {
        let verdict = prove(design, claim, folder)?;
        tool::write(&folder.join("verdict"), &verdict.to_text())
    })?;
    let text = tool::read(&entry.join("verdict"))?;
    Verdict::from_text(&text).ok_or(ToolError::Unreadable {
        tool: Tool::YOSYS,
        what: "the verdict".to_owned(),
    })
}

/// Decides a claim about a design, without the cache; all files are in `folder`.
fn prove(design: &Design, claim: &Claim, folder: &Path) -> Result<Verdict, ToolError> {
    design.write_into(folder)?;
    let script = match claim {
        Claim::VhdlIsVerilog { parameters } => {
            return equality::vhdl(design, parameters, folder);
        }
        Claim::NetlistIsVerilog { family, parameters } => {
            return equality::netlist(design, *family, parameters, folder);
        }
        Claim::Asserts { module, parameters } => {
            tool::write(&folder.join(module.name()), module.text)?;
            assertions(design, module, parameters)
        }
    };
    let name = "prove.ys";
    tool::write(&folder.join(name), &script)?;
    // yosys loses the end of its standard output if it fails, so the log goes to a file.
    let tool::Outcome { success, .. } =
        Tool::YOSYS.outcome("a proof", ["-ql", "prove.log", name], folder, LIMIT)?;
    verdict(success, &tool::read(&folder.join("prove.log"))?)
}

fn assertions(design: &Design, module: &Source, parameters: &[(&str, usize)]) -> String {
    let top = module.name().trim_end_matches(".v");
    format!(
        "read_verilog -formal -sv {} {}\n\
         hierarchy -check -top {top}{}\n\
         proc; flatten; opt -full\n\
         sat -tempinduct -prove-asserts -set-assumes -set-init-zero -seq 1 -maxsteps {STEPS} -verify\n",
        design.verilog_names(),
        module.name(),
        chparam(parameters),
    )
}

/// Parses yosys' log; its exit status does not distinguish a counter-example from an abandoned search.
fn verdict(success: bool, log: &str) -> Result<Verdict, ToolError> {
    let has = |words| log.contains(words);
    match () {
        () if success && has("Induction step proven: SUCCESS!") => Ok(Verdict::Proved {
            induction: log.matches("Trying induction with length").count(),
        }),
        () if !success && has("model found for base case: FAIL!") => Ok(Verdict::Refuted),
        () if !success && has("Reached maximum number of time steps") => Ok(Verdict::Open),
        () => {
            let lines: Vec<&str> = log.lines().collect();
            Err(ToolError::Failed {
                tool: Tool::YOSYS,
                what: "a proof".to_owned(),
                log: lines[lines.len().saturating_sub(12)..].join("\n"),
            })
        }
    }
}
