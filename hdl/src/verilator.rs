//! Verilator: compiles the RTL to a program, for comparisons over many edges, or to a shared object, for co-simulation.
//!
//! Verilator writes C++, which this crate compiles as one unit with a harness (C++ around the design).
//! Compiling Verilator's run-time library takes longer than any design here, so it is compiled once for all designs.
//! All results are stored in a [`Cache`].

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cache::Cache;
use crate::source::{
    CHANNEL_RTL, CHANNEL_TOP, REGISTER_RTL, REGISTER_TOP, RTL, Source, TOP, source,
};
use crate::tool::{self, Tool, ToolError};

const LIMIT: Duration = Duration::from_secs(300);

/// The harness of the toggle barrier; its header describes the formats.
pub const HARNESS: Source = source!("toggle/dv/verilated_main.cpp");
/// The harness of the channels.
pub const CHANNEL_HARNESS: Source = source!("channels/dv/verilated_channels.cpp");
/// The header that the harnesses of the channels share.
pub const CHANNEL_HEADER: Source = source!("channels/dv/verilated_channels.h");

/// The harness that simulates the register block as a device in a mapped file.
pub const REGISTER_HARNESS: Source = source!("registers/dv/verilated_registers.cpp");
/// The header of the harnesses that give each Verilated model its own context.
const OWN_HEADER: Source = source!("shared/dv/verilated_own.h");

/// Source files as pairs of name and text.
pub type Texts = Vec<(String, String)>;

/// Returns the names and texts of files of this crate.
pub fn texts<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Texts {
    let of = |source: &Source| (source.name().to_owned(), source.text.to_owned());
    sources.into_iter().map(of).collect()
}

/// The kind of file that the compiler produces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A program with the harness's `main`; it reads a stimulus and writes a trace.
    Program,
    /// A shared object that exports the harness's functions named `barrier_…`.
    SharedObject,
}

/// What to compile: RTL, and C++ that includes Verilator's output.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The Verilog module to translate; also part of the cache entry's name.
    pub top: &'static str,
    /// Names and values of the module's parameters; in the C++ they are macros `PARAM_…`.
    pub parameters: Vec<(&'static str, usize)>,
    /// The design's files, in the order in which Verilator reads them.
    pub rtl: Texts,
    /// The C++ around the design; it is compiled as one unit with Verilator's output.
    pub harness: Source,
    /// The headers that the harness includes.
    pub headers: Vec<Source>,
    /// What to produce; part of the cache key, because one design can be compiled to both.
    pub form: Form,
}

const COMPILER: &[&str] = &[OPTIMISATION, "-fPIC", "-w", "-faligned-new"];

/// The C++ compiler's optimisation level. The simulations of tests are short: -O2 would lengthen each compilation by a third.
const OPTIMISATION: &str = if cfg!(debug_assertions) { "-O1" } else { "-O2" };

/// Compiler flags that disable unused features of Verilator.
const WITHOUT: &[&str] = &["-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0"];

/// The linker's version script: exports the harness's functions, and nothing of Verilator's run-time library.
///
/// C++'s inline static variables are "unique" symbols: if exported, they exist once per process.
/// Two designs would then share contexts, and no object could be unloaded.
const SHOWN: &str = "{ global: barrier_*; local: *; };\n";

/// Source files of Verilator's run-time library, without their ending.
const RUNTIME: &[&str] = &["verilated", "verilated_threads"];

impl Recipe {
    /// Returns the path of the compiled file.
    pub fn make(&self, cache: &Cache) -> Result<PathBuf, ToolError> {
        let parameters = self.flags("-G");
        let form = format!("{:?}", self.form);
        let tools = [Tool::VERILATOR.identity(), Tool::CXX.identity()];
        let mut ingredients = vec![self.top, self.harness.text, &form, SHOWN];
        ingredients.extend(self.headers.iter().map(|header| header.text));
        ingredients.extend(COMPILER.iter().chain(WITHOUT));
        ingredients.extend(parameters.iter().chain(&tools).map(String::as_str));
        ingredients.extend(self.rtl.iter().flat_map(|(name, text)| [&**name, &**text]));
        let made = cache.entry(self.top, &ingredients, |folder| {
            self.make_in(folder, &parameters, &runtime(cache)?)
        })?;
        Ok(made.join(self.file()))
    }

    /// Returns the parameters as flags with this prefix, for Verilator or for the compiler.
    fn flags(&self, prefix: &str) -> Vec<String> {
        let of = |(name, value): &(&str, usize)| format!("{prefix}{name}={value}");
        self.parameters.iter().map(of).collect()
    }

    fn file(&self) -> &'static str {
        match self.form {
            Form::Program => "barrier",
            Form::SharedObject => "libbarrier.so",
        }
    }

    fn make_in(
        &self,
        folder: &Path,
        parameters: &[String],
        runtime: &[PathBuf],
    ) -> Result<(), ToolError> {
        for (name, text) in &self.rtl {
            tool::write(&folder.join(name), text)?;
        }
        for source in self.headers.iter().chain([&self.harness]) {
            tool::write(&folder.join(source.name()), source.text)?;
        }
        // `--public-flat-rw`: the harnesses access flip-flops by flat names.
        // `-Wno-WIDTH`: a user's design may compare a parameter, which is 32 bits wide, with a narrower value.
        let arguments = "--cc -O3 -Wno-WIDTH --x-assign fast --x-initial fast --noassert --public-flat-rw -Mdir obj --top-module";
        let arguments = arguments
            .split(' ')
            .chain([self.top])
            .chain(parameters.iter().map(String::as_str))
            .chain(self.rtl.iter().map(|(name, _)| name.as_str()));
        Tool::VERILATOR.run("translation", arguments, folder, LIMIT)?;
        let mut unit = String::new();
        for file in cpp_files(&folder.join("obj"))? {
            unit += &format!("#include \"obj/{file}\"\n");
        }
        unit += &format!("#include \"{}\"\n", self.harness.name());
        tool::write(&folder.join("unit.cpp"), &unit)?;
        tool::write(&folder.join("shown"), SHOWN)?;
        let headers = include_flags(folder)?;
        let parameters = self.flags("-DPARAM_");
        let form: &[&str] = match self.form {
            Form::Program => &[],
            Form::SharedObject => &["-shared", "-Wl,--version-script=shown"],
        };
        let arguments = COMPILER
            .iter()
            .chain(WITHOUT)
            .chain(form)
            .copied()
            .chain(headers.iter().map(String::as_str))
            .chain(parameters.iter().map(String::as_str))
            .chain(["-I.", "-Iobj", "-o", self.file(), "unit.cpp"])
            .map(PathBuf::from)
            .chain(runtime.iter().cloned())
            .chain(["-pthread", "-latomic"].map(PathBuf::from));
        Tool::CXX
            .run(
                "compilation of what Verilator wrote",
                arguments,
                folder,
                LIMIT,
            )
            .map(drop)
    }
}

/// Returns the object files of Verilator's run-time library.
fn runtime(cache: &Cache) -> Result<Vec<PathBuf>, ToolError> {
    let tools = [Tool::VERILATOR.identity(), Tool::CXX.identity()];
    let ingredients: Vec<&str> = COMPILER
        .iter()
        .chain(WITHOUT)
        .copied()
        .chain(tools.iter().map(String::as_str))
        .collect();
    let object = |name: &&str| format!("{name}.o");
    let made = cache.entry("verilator-runtime", &ingredients, |folder| {
        let headers = include_flags(folder)?;
        let root = headers[0].trim_start_matches("-I").to_owned();
        for name in RUNTIME {
            let arguments = COMPILER
                .iter()
                .chain(WITHOUT)
                .map(|flag| (*flag).to_owned())
                .chain(headers.iter().cloned())
                .chain([
                    "-c".to_owned(),
                    format!("{root}/{name}.cpp"),
                    "-o".to_owned(),
                    object(name),
                ]);
            Tool::CXX.run(
                "compilation of Verilator's run-time library",
                arguments,
                folder,
                LIMIT,
            )?;
        }
        Ok(())
    })?;
    Ok(RUNTIME.iter().map(|name| made.join(object(name))).collect())
}

/// Returns the compiler flags for the folders of Verilator's headers, which Verilator reports.
fn include_flags(folder: &Path) -> Result<[String; 2], ToolError> {
    let said = Tool::VERILATOR.run(
        "the question for its folder",
        ["--getenv", "VERILATOR_ROOT"],
        folder,
        LIMIT,
    )?;
    let root = said.trim();
    Ok([
        format!("-I{root}/include"),
        format!("-I{root}/include/vltstd"),
    ])
}

/// Returns the names of the C++ files that Verilator wrote.
fn cpp_files(folder: &Path) -> Result<Vec<String>, ToolError> {
    let named = |e| ToolError::Folder(folder.display().to_string(), e);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(named)? {
        let name = entry
            .map_err(named)?
            .file_name()
            .to_string_lossy()
            .into_owned();
        if name.ends_with(".cpp") {
            files.push(name);
        }
    }
    files.sort();
    Ok(files)
}

/// A measured speed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// Number of clock edges that were evaluated.
    pub edges: u64,
    /// Duration in seconds by the harness's own clock, without the start of the program.
    pub seconds: f64,
    /// Number of releases, as evidence that the design worked.
    pub releases: u64,
}

/// A design compiled to a program.
#[derive(Debug, Clone)]
pub struct Verilated {
    program: PathBuf,
}

impl Verilated {
    /// Compiles the toggle barrier with these values of the parameters `N` and `FILTER`.
    pub fn build(
        parameters: &[(&'static str, usize)],
        cache: &Cache,
    ) -> Result<Verilated, ToolError> {
        Self::of(TOP, &RTL, parameters, HARNESS, &[], cache)
    }

    /// Compiles version 2 with these values of the parameters `N`, `C` and `LEASE_BITS`.
    pub fn channels(
        parameters: &[(&'static str, usize)],
        cache: &Cache,
    ) -> Result<Verilated, ToolError> {
        Self::of(
            CHANNEL_TOP,
            &CHANNEL_RTL,
            parameters,
            CHANNEL_HARNESS,
            &[CHANNEL_HEADER],
            cache,
        )
    }

    /// Compiles the register block to a program `barrier`: `barrier serve FILE` simulates the block as a device
    /// in the mapped file FILE until its standard input ends (`registers/dv/verilated_registers.cpp`).
    ///
    /// `parameters` are values of `N`, `G` and `STRIDE`.
    pub fn registers(
        parameters: &[(&'static str, usize)],
        cache: &Cache,
    ) -> Result<Verilated, ToolError> {
        Self::of(
            REGISTER_TOP,
            // All files except the last, which only the contract needs.
            &REGISTER_RTL[..4],
            parameters,
            REGISTER_HARNESS,
            &[OWN_HEADER],
            cache,
        )
    }

    /// Returns the path of the executable.
    pub fn program(&self) -> &Path {
        &self.program
    }

    fn of(
        top: &'static str,
        rtl: &[Source],
        parameters: &[(&'static str, usize)],
        harness: Source,
        headers: &[Source],
        cache: &Cache,
    ) -> Result<Verilated, ToolError> {
        let recipe = Recipe {
            top,
            parameters: parameters.to_vec(),
            rtl: texts(rtl),
            harness,
            headers: headers.to_vec(),
            form: Form::Program,
        };
        let program = recipe.make(cache)?;
        Ok(Verilated { program })
    }

    /// Simulates a stimulus and returns the trace; both files are written to `folder`.
    /// Their formats are described at the head of `toggle/dv/trace_tb.v` (version 1) or `channels/dv/channel_trace_tb.v` (version 2).
    pub fn trace(&self, stimulus: &str, folder: &Path) -> Result<String, ToolError> {
        tool::write(&folder.join("stimulus"), stimulus)?;
        self.run(&["trace", "stimulus", "trace"], folder)?;
        tool::read(&folder.join("trace"))
    }

    /// Measures the speed with random arrivals for `edges` clock edges.
    pub fn bench(&self, edges: u64) -> Result<Speed, ToolError> {
        let said = self.run(&["bench", &edges.to_string()], Path::new("."))?;
        let words: Vec<_> = said.split_whitespace().collect();
        let speed = match words.as_slice() {
            [edges, seconds, releases] => edges
                .parse()
                .ok()
                .zip(seconds.parse().ok())
                .zip(releases.parse().ok()),
            _ => None,
        };
        let ((edges, seconds), releases) = speed.ok_or_else(|| failed(said))?;
        Ok(Speed {
            edges,
            seconds,
            releases,
        })
    }

    fn run(&self, arguments: &[&str], folder: &Path) -> Result<String, ToolError> {
        let output = Command::new(&self.program)
            .args(arguments)
            .current_dir(folder)
            .output()
            .map_err(|e| ToolError::Start(Tool::VERILATOR, e))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn failed(log: String) -> ToolError {
    ToolError::Failed {
        tool: Tool::VERILATOR,
        what: "the Verilated barrier".to_owned(),
        log,
    }
}
