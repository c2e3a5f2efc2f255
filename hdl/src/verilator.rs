//! Verilator: the RTL as a program, for comparisons of many edges.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::source::{RTL, Source, TOP, source};
use crate::tool::{self, Tool, ToolError};

const LIMIT: Duration = Duration::from_secs(300);

/// The program around the Verilated top; see its head.
pub const HARNESS: Source = source!("dv/verilated_main.cpp");

/// The toggle barrier of so many nodes as a program.
#[derive(Debug, Clone)]
pub struct Verilated {
    program: PathBuf,
    folder: PathBuf,
    nodes: usize,
}

/// The toggle barrier of so many nodes as a shared object with the C interface in `pins`.
pub fn shared_object(nodes: usize, pins: &Source, folder: &Path) -> Result<PathBuf, ToolError> {
    for source in RTL.iter().chain([pins]) {
        tool::write(&folder.join(source.name()), source.text)?;
    }
    let parameter = format!("-GN={nodes}");
    let name = "libbarrier.so";
    // A program whose linker is told to make a shared object of it: Verilator of Debian 12 has no word for that.
    let arguments = [
        "--cc",
        "--exe",
        "--build",
        "-O3",
        "--noassert",
        "-CFLAGS",
        "-O2 -fPIC",
        "-LDFLAGS",
        "-shared",
        "--top-module",
        TOP,
        &parameter,
        "-Mdir",
        "obj",
        "-o",
        name,
        pins.name(),
    ];
    let arguments = arguments
        .into_iter()
        .chain(RTL.iter().map(|source| -> &str { source.name() }));
    Tool::VERILATOR.run("translation and compilation", arguments, folder, LIMIT)?;
    Ok(folder.join("obj").join(name))
}

/// How fast it went: edges, seconds, releases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    pub edges: u64,
    pub seconds: f64,
    pub releases: u64,
}

impl Verilated {
    /// Translates and compiles in a folder.
    pub fn build(nodes: usize, folder: &Path) -> Result<Verilated, ToolError> {
        for source in RTL.iter().chain([&HARNESS]) {
            tool::write(&folder.join(source.name()), source.text)?;
        }
        let parameter = format!("-GN={nodes}");
        let arguments = [
            "--cc",
            "--exe",
            "--build",
            "-O3",
            "--x-assign",
            "fast",
            "--x-initial",
            "fast",
            "--noassert",
            "--public-flat-rw",
            "-CFLAGS",
            "-O3",
            "--top-module",
            TOP,
            &parameter,
            "-Mdir",
            "obj",
            "-o",
            "barrier",
            HARNESS.name(),
        ];
        let arguments = arguments
            .into_iter()
            .chain(RTL.iter().map(|source| -> &str { source.name() }));
        Tool::VERILATOR.run("translation and compilation", arguments, folder, LIMIT)?;
        Ok(Verilated {
            program: folder.join("obj/barrier"),
            folder: folder.into(),
            nodes,
        })
    }

    /// Plays a stimulus, see the harness, and gives the trace.
    pub fn trace(&self, stimulus: &str) -> Result<String, ToolError> {
        tool::write(&self.folder.join("stimulus"), stimulus)?;
        self.run(&["trace", "stimulus", "trace"])?;
        tool::read(&self.folder.join("trace"))
    }

    /// Random arrivals for so many edges.
    pub fn bench(&self, edges: u64) -> Result<Speed, ToolError> {
        let said = self.run(&["bench", &edges.to_string(), &self.nodes.to_string()])?;
        let words: Vec<_> = said.split_whitespace().collect();
        let speed = match words.as_slice() {
            [edges, seconds, releases] => edges
                .parse()
                .ok()
                .zip(seconds.parse().ok())
                .zip(releases.parse().ok()),
            _ => None,
        };
        let ((edges, seconds), releases) = speed.ok_or_else(|| self.failed(said))?;
        Ok(Speed {
            edges,
            seconds,
            releases,
        })
    }

    fn run(&self, arguments: &[&str]) -> Result<String, ToolError> {
        let output = Command::new(&self.program)
            .args(arguments)
            .current_dir(&self.folder)
            .output()
            .map_err(|e| ToolError::Start(Tool::VERILATOR, e))?;
        if !output.status.success() {
            return Err(self.failed(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn failed(&self, log: String) -> ToolError {
        ToolError::Failed {
            tool: Tool::VERILATOR,
            what: "the Verilated barrier".to_owned(),
            log,
        }
    }
}
