//! Verilator: the RTL as a program, for comparisons of many edges, or as a shared object, for pins.
//!
//! Verilator writes C++ and we compile it ourselves, as one unit with the harness around it.
//! Its run-time library, which takes longer than any of our designs, is compiled once for all of them.
//! Everything is kept in a [`Cache`].

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cache::Cache;
use crate::source::{CHANNEL_RTL, CHANNEL_TOP, RTL, Source, TOP, source};
use crate::tool::{self, Tool, ToolError};

const LIMIT: Duration = Duration::from_secs(300);

/// The programs around what is Verilated; see their heads.
pub const HARNESS: Source = source!("toggle/dv/verilated_main.cpp");
/// As [`HARNESS`], around the channels.
pub const CHANNEL_HARNESS: Source = source!("channels/dv/verilated_channels.cpp");
/// What the programs around the channels share.
pub const CHANNEL_HEADER: Source = source!("channels/dv/verilated_channels.h");

/// Names and texts of source files.
pub type Texts = Vec<(String, String)>;

/// The files of the crate as texts.
pub fn texts<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Texts {
    let of = |source: &Source| (source.name().to_owned(), source.text.to_owned());
    sources.into_iter().map(of).collect()
}

/// What the C++ becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// With a `main` in the harness; it reads a stimulus and writes a trace.
    Program,
    /// With functions of the names `barrier_…` in the harness, for a process that loads it.
    SharedObject,
}

/// RTL, and C++ that includes what Verilator makes of it.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The Verilog module that is translated; it names the entry in the cache too.
    pub top: &'static str,
    /// Names and values of its parameters; the C++ sees them as macros `PARAM_…`.
    pub parameters: Vec<(&'static str, usize)>,
    /// The design's files, in the order in which Verilator reads them.
    pub rtl: Texts,
    /// The C++ around the design; it is compiled as one unit with all that Verilator wrote.
    pub harness: Source,
    /// What the harness includes.
    pub headers: Vec<Source>,
    /// Part of what the result is kept by: one design can be kept in both forms.
    pub form: Form,
}

const COMPILER: &[&str] = &["-O2", "-fPIC", "-w", "-faligned-new"];

/// The parts of Verilator that we use none of.
const WITHOUT: &[&str] = &["-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0"];

/// What a shared object shows: the functions of its harness, and nothing of Verilator's run-time library.
///
/// Inline statics of C++ are "unique" symbols, one for the process however the objects were opened,
/// so two designs would otherwise share contexts, and no object could ever be unloaded.
const SHOWN: &str = "{ global: barrier_*; local: *; };\n";

/// What is compiled of Verilator's own.
const RUNTIME: &[&str] = &["verilated", "verilated_threads"];

impl Recipe {
    /// The finished file.
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

    /// The parameters as flags, for Verilator and for the compiler.
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
        // The harnesses look at flip-flops, hence the flat names.
        // A user's own design may compare a parameter, which is 32 bits wide, with fewer bits.
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

/// The objects of Verilator's run-time library.
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

/// Where Verilator's headers are, as it says itself.
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

/// What Verilator wrote, by name.
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

/// How fast it went: edges, seconds, releases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// Edges of the clock that were evaluated.
    pub edges: u64,
    /// The time they took by the harness's own clock, without the start of the program.
    pub seconds: f64,
    /// Barriers that were released meanwhile, which shows that the work was done.
    pub releases: u64,
}

/// A design as a program.
#[derive(Debug, Clone)]
pub struct Verilated {
    program: PathBuf,
}

impl Verilated {
    /// The toggle barrier with these values of the parameters `N` and `FILTER`.
    pub fn build(
        parameters: &[(&'static str, usize)],
        cache: &Cache,
    ) -> Result<Verilated, ToolError> {
        Self::of(TOP, &RTL, parameters, HARNESS, &[], cache)
    }

    /// Version 2 with these values of the parameters `N`, `C` and `LEASE_BITS`.
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

    /// Plays a stimulus, see the harness, and gives the trace; the folder is for both.
    pub fn trace(&self, stimulus: &str, folder: &Path) -> Result<String, ToolError> {
        tool::write(&folder.join("stimulus"), stimulus)?;
        self.run(&["trace", "stimulus", "trace"], folder)?;
        tool::read(&folder.join("trace"))
    }

    /// Random arrivals for so many edges.
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
