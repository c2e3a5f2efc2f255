//! Proofs by yosys: what is claimed of a design, how it is decided, and which broken designs must be refuted.
//!
//! A [`Design`] is a set of texts, so a mutant is a design with one expression changed.
//! [`prove`] decides a [`Claim`] about it and never guesses:
//! a proof by temporal induction from the power-on state is [`Verdict::Proved`] for all time,
//! a counter-example from the power-on state is [`Verdict::Refuted`], everything else is [`Verdict::Open`].
//!
//! The claims about assertions are the modules in `formal/`, which say what they assert and why it is inductive.
//! Equality is decided on a miter: both designs get the same inputs, and no output may ever differ.

use std::fmt;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::source::{RTL, Source, TOP, VHDL, source};
use crate::tool::{self, Tool, ToolError};

/// The modules that assert something about [`RTL`].
pub const CONTRACT: Source = source!("formal/toggle_contract.v");
pub const PROTOCOL: Source = source!("formal/toggle_protocol.v");

/// No proof needs a tenth of it; a loaded machine may.
const LIMIT: Duration = Duration::from_secs(300);

/// The longest induction that is tried. The proofs here need one step, a mutant's counter-example up to a dozen.
const STEPS: usize = 20;

/// The sources under proof, as texts.
#[derive(Debug, Clone)]
pub struct Design {
    pub top: &'static str,
    pub verilog: Vec<(&'static str, String)>,
    pub vhdl: Vec<(&'static str, String)>,
}

/// One expression of a design exchanged for a wrong one.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// What it does wrong, as a sentence.
    pub fault: &'static str,
    pub file: &'static str,
    pub from: &'static str,
    pub to: &'static str,
}

/// The expression to change is not there exactly once.
#[derive(Debug)]
pub struct NotOnce {
    pub mutant: Mutant,
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

    fn write_into(&self, folder: &Path) -> Result<(), ToolError> {
        self.verilog
            .iter()
            .chain(&self.vhdl)
            .try_for_each(|(name, text)| tool::write(&folder.join(name), text))
    }

    fn verilog_names(&self) -> String {
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
        module: Source,
        parameters: &'static [(&'static str, usize)],
    },
    /// The VHDL does what the Verilog does.
    VhdlIsVerilog {
        parameters: &'static [(&'static str, usize)],
    },
    /// What is synthesised for iCE40 does what the Verilog does.
    NetlistIsVerilog {
        parameters: &'static [(&'static str, usize)],
    },
}

/// How a proof ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds for all time, by induction over so many edges.
    Proved { induction: usize },
    /// There is a run from power-on that breaks it.
    Refuted,
    /// Neither was found.
    Open,
}

/// Decides a claim about a design, with all files in the given folder.
pub fn prove(design: &Design, claim: &Claim, folder: &Path) -> Result<Verdict, ToolError> {
    design.write_into(folder)?;
    let script = match claim {
        Claim::Asserts { module, parameters } => {
            tool::write(&folder.join(module.name()), module.text)?;
            assertions(design, module, parameters)
        }
        Claim::VhdlIsVerilog { parameters } => {
            let twin = vhdl_as_verilog(design, parameters, folder)?;
            tool::write(&folder.join("other.v"), &twin)?;
            miter(design, parameters, design.top, "")
        }
        Claim::NetlistIsVerilog { parameters } => {
            synthesise(design, parameters, folder)?;
            // The cells' own Verilog; deferred, because the block RAMs among them take a minute to read.
            miter(
                design,
                parameters,
                design.top,
                "read_verilog -icells -defer +/ice40/cells_sim.v",
            )
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

/// `gold` is the Verilog, `gate` the top module in `other.v`.
fn miter(design: &Design, parameters: &[(&str, usize)], other: &str, cells: &str) -> String {
    let top = design.top;
    format!(
        "read_verilog {}\n\
         hierarchy -check -top {top}{}\n\
         proc; flatten; opt_clean\n\
         rename -top gold\n\
         design -stash gold\n\
         read_verilog other.v\n\
         {cells}\n\
         hierarchy -check -top {other}\n\
         proc; flatten; opt_clean\n\
         rename -top gate\n\
         design -stash gate\n\
         design -copy-from gold -as gold gold\n\
         design -copy-from gate -as gate gate\n\
         miter -equiv -flatten -make_outputs gold gate miter\n\
         hierarchy -top miter\n\
         opt -full\n\
         sat -tempinduct -prove trigger 0 -set-init-zero -seq 1 -maxsteps {STEPS} -verify miter\n",
        design.verilog_names(),
        chparam(parameters),
    )
}

fn chparam(parameters: &[(&str, usize)]) -> String {
    parameters
        .iter()
        .fold(String::new(), |mut text, (name, value)| {
            let _ = write!(text, " -chparam {name} {value}");
            text
        })
}

/// The VHDL, synthesised to generic Verilog by GHDL.
fn vhdl_as_verilog(
    design: &Design,
    parameters: &[(&str, usize)],
    folder: &Path,
) -> Result<String, ToolError> {
    let files = design.vhdl.iter().map(|(name, _)| *name);
    let analysis = ["-a", "--std=93"].into_iter().chain(files);
    Tool::GHDL.run("analysis of the VHDL", analysis, folder, LIMIT)?;
    let mut arguments = ["--synth", "--std=93", "--out=verilog"]
        .map(String::from)
        .to_vec();
    arguments.extend(
        parameters
            .iter()
            .map(|(name, value)| format!("-g{name}={value}")),
    );
    arguments.push(design.top.to_owned());
    Tool::GHDL.run("synthesis of the VHDL", arguments, folder, LIMIT)
}

/// Writes the netlist of iCE40 cells to `other.v`, flat, under the name of the top module.
fn synthesise(
    design: &Design,
    parameters: &[(&str, usize)],
    folder: &Path,
) -> Result<(), ToolError> {
    let top = design.top;
    let script = format!(
        "read_verilog {}\nhierarchy -check -top {top}{}\nrename -top {top}\n\
         synth_ice40 -top {top}\nwrite_verilog -noattr other.v\n",
        design.verilog_names(),
        chparam(parameters),
    );
    tool::write(&folder.join("synth.ys"), &script)?;
    Tool::YOSYS
        .run(
            "synthesis for iCE40",
            ["-q", "-s", "synth.ys"],
            folder,
            LIMIT,
        )
        .map(drop)
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

/// Broken versions of [`Design::toggle_barrier`], each with a claim that must refute it.
pub const MUTANTS: &[(Mutant, Claim)] = &[
    (
        Mutant {
            fault: "it rises without the last node",
            file: "toggle_machine.v",
            from: "&level_i;",
            to: "&level_i[N-2:0];",
        },
        CLAIMED_AT_4,
    ),
    (
        Mutant {
            fault: "it falls without the first node",
            file: "toggle_machine.v",
            from: "~|level_i;",
            to: "~|level_i[N-1:1];",
        },
        CLAIMED_AT_4,
    ),
    (
        Mutant {
            fault: "any node that goes low is enough",
            file: "toggle_machine.v",
            from: "~|level_i;",
            to: "~&level_i;",
        },
        CLAIMED_AT_4,
    ),
    (
        Mutant {
            fault: "it toggles once and never again",
            file: "toggle_machine.v",
            from: "level_q <= ~level_q;",
            to: "level_q <= 1'b1;",
        },
        CONTRACT_AT_60,
    ),
    (
        Mutant {
            fault: "one node in sixty is not looked at",
            file: "toggle_machine.v",
            from: "&level_i;",
            to: "&(level_i | ({{N-1{1'b0}}, 1'b1} << 42));",
        },
        CONTRACT_AT_60,
    ),
    (
        Mutant {
            fault: "the second synchroniser stage is missing",
            file: "synchroniser.v",
            from: "stage2_q <= stage1_q;",
            to: "stage2_q <= level_i;",
        },
        CONTRACT_AT_60,
    ),
    (
        Mutant {
            fault: "the wires of two nodes are short-circuited",
            file: "toggle_barrier.v",
            from: ".level_i (node_i)",
            to: ".level_i ({node_i[N-1:2], {2{node_i[1] | node_i[0]}}})",
        },
        CLAIMED_AT_4,
    ),
    (
        Mutant {
            fault: "the last wire to the nodes stays low",
            file: "toggle_barrier.v",
            from: "{N{level}};",
            to: "{1'b0, {N-1{level}}};",
        },
        CONTRACT_AT_60,
    ),
    (
        Mutant {
            fault: "the VHDL falls when one node is low",
            file: "toggle_machine.vhd",
            from: "any_high(level_i)",
            to: "all_high(level_i)",
        },
        VHDL_AT_60,
    ),
    (
        Mutant {
            fault: "the VHDL synchronises over one stage only",
            file: "synchroniser.vhd",
            from: "stage2_q <= stage1_q;",
            to: "stage2_q <= level_i;",
        },
        VHDL_AT_60,
    ),
];

/// The contract of the machine at the size of the prototype.
pub const CONTRACT_AT_60: Claim = Claim::Asserts {
    module: CONTRACT,
    parameters: &[("N", 60)],
};

/// The whole protocol at the smallest size that a hidden node can hide in.
pub const PROTOCOL_AT_4: Claim = Claim::Asserts {
    module: PROTOCOL,
    parameters: &[("N", 4)],
};

/// The same without the lemmas of the induction: breaking one of those would prove nothing.
pub const CLAIMED_AT_4: Claim = Claim::Asserts {
    module: PROTOCOL,
    parameters: &[("N", 4), ("LEMMAS", 0)],
};

/// The twin at the size of the prototype.
pub const VHDL_AT_60: Claim = Claim::VhdlIsVerilog {
    parameters: &[("N", 60)],
};

/// Hazards of the protocol that no hardware can cure; the driver's fence and self-test are there for them.
pub const HAZARDS: &[(&str, Claim)] = &[(
    "a node whose wire falls when it reboots is taken for arrived",
    Claim::Asserts {
        module: PROTOCOL,
        parameters: &[("N", 4), ("LEMMAS", 0), ("REBOOTS", 1)],
    },
)];

/// What is proved of version 1, each with its sentence.
pub const CLAIMS: &[(&str, Claim)] = &[
    (
        "the machine toggles exactly when all 60 synchronised wires differ from it",
        CONTRACT_AT_60,
    ),
    (
        "4 nodes: nobody leaves before all have entered, then everybody leaves",
        PROTOCOL_AT_4,
    ),
    (
        "16 nodes: nobody leaves before all have entered, then everybody leaves",
        Claim::Asserts {
            module: PROTOCOL,
            parameters: &[("N", 16)],
        },
    ),
    (
        "60 nodes: nobody leaves before all have entered, then everybody leaves",
        Claim::Asserts {
            module: PROTOCOL,
            parameters: &[("N", 60)],
        },
    ),
    ("the VHDL is the Verilog, 60 nodes", VHDL_AT_60),
    (
        "the VHDL is the Verilog, one node",
        Claim::VhdlIsVerilog {
            parameters: &[("N", 1)],
        },
    ),
    (
        "the iCE40 netlist is the Verilog, 60 nodes",
        Claim::NetlistIsVerilog {
            parameters: &[("N", 60)],
        },
    ),
];
