//! Proofs by yosys and ABC: what is claimed of a design, how it is decided, and which broken designs must be refuted.
//!
//! A [`Design`] is a set of texts, so a mutant is a design with one expression changed.
//! [`decide`] decides a [`Claim`] about it and never guesses:
//! a proof by temporal induction from the power-on state is [`Verdict::Proved`] for all time,
//! a counter-example from the power-on state is [`Verdict::Refuted`], everything else is [`Verdict::Open`].
//!
//! The claims about assertions are the modules in the folders `formal/`, which say what they assert and why it is inductive.
//! Equality is decided on a miter, see `equality`.
//!
//! A verdict is kept by the content of everything that led to it, so what has not changed is not proved again.

mod equality;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::cache::Cache;
use crate::fpga::Family;
use crate::source::{RTL, Source, TOP, VHDL};
use crate::tool::{self, Tool, ToolError};
use crate::yosys::chparam;

/// No proof needs a tenth of it; a loaded machine may.
const LIMIT: Duration = Duration::from_secs(300);

/// The longest induction that is tried. The proofs here need one step, a mutant's counter-example up to a dozen.
const STEPS: usize = 20;

/// The sources under proof, as texts.
#[derive(Debug, Clone)]
pub struct Design {
    /// The module that is claimed about, by its name in the sources.
    pub top: &'static str,
    /// File names and texts, in the order in which yosys reads them.
    pub verilog: Vec<(&'static str, String)>,
    /// The same design's twin in VHDL, files in the order of their dependencies; only [`Claim::VhdlIsVerilog`] looks at it.
    pub vhdl: Vec<(&'static str, String)>,
}

/// One expression of a design exchanged for a wrong one.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// What it does wrong, as a sentence.
    pub fault: &'static str,
    /// The name of the file it is in, Verilog or VHDL, as [`Design`] has it.
    pub file: &'static str,
    /// The right expression, letter by letter; it has to be there once and no more.
    pub from: &'static str,
    /// The wrong one in its place.
    pub to: &'static str,
}

/// The expression to change is not there exactly once.
#[derive(Debug)]
pub struct NotOnce {
    /// The mutant that could not be made.
    pub mutant: Mutant,
    /// How often the expression was found; 0 after the design was reworded.
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
    /// Version 1 as it is.
    pub fn toggle_barrier() -> Self {
        Self {
            top: TOP,
            verilog: texts(&RTL),
            vhdl: texts(&VHDL),
        }
    }

    /// The same with one expression exchanged.
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

pub(crate) fn texts(sources: &[Source]) -> Vec<(&'static str, String)> {
    sources
        .iter()
        .map(|source| (source.name(), source.text.to_owned()))
        .collect()
}

/// What is claimed of a design.
#[derive(Debug, Clone, Copy)]
pub enum Claim {
    /// Every assertion of a module that instantiates the design holds at every edge.
    Asserts {
        /// One of those in a folder `formal/`; it instantiates the design and is the top of the proof.
        module: Source,
        /// Names and values of the module's Verilog parameters; what is not named keeps its default.
        parameters: &'static [(&'static str, usize)],
    },
    /// The VHDL does what the Verilog does.
    VhdlIsVerilog {
        /// Names and values for both sides, generics being parameters too.
        parameters: &'static [(&'static str, usize)],
    },
    /// What is synthesised for a device does what the Verilog does.
    NetlistIsVerilog {
        /// The kind of device.
        family: Family,
        /// Names and values for both sides, set before synthesis.
        parameters: &'static [(&'static str, usize)],
    },
}

/// How a proof ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds for all time, by induction over so many edges.
    Proved {
        /// The length at which the induction step held, in edges.
        induction: usize,
    },
    /// There is a run from power-on that breaks it.
    Refuted,
    /// Neither was found.
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

/// Decides a claim about a design, unless the cache knows.
pub fn decide(design: &Design, claim: &Claim, cache: &Cache) -> Result<Verdict, ToolError> {
    let tools = [Tool::YOSYS, Tool::ABC, Tool::GHDL].map(Tool::identity);
    let claim_text = format!("{claim:?}");
    let mut ingredients = vec![
        // How it is proved is an ingredient too.
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

/// Decides a claim about a design, with all files in the given folder.
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
    // yosys loses the end of its standard output when it fails, so it writes the log itself.
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

/// Reads yosys' own words; its exit status does not tell a counter-example from a search that was given up.
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
