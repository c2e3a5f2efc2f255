//! Simulation, under Icarus, of several PicoRV32 cores of one chip that run a C program with barriers over the register block.
//!
//! The cores' source is a file of the Python package `pythondata-cpu-picorv32` (ISC licence) and not a part of this crate.
//! The compiled program is checked in as machine words; only the test that compares them with `cores.c` needs a compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::formal::Design;
use crate::icarus;
use crate::source::{Source, source};
use crate::tool::{self, Tool, ToolError};

/// The testbench; its header describes what it measures.
const BENCH: Source = source!("registers/dv/cores/cores_tb.v");
/// The C program that every core runs.
const PROGRAM: Source = source!("registers/dv/cores/cores.c");
/// The program as machine words, in hexadecimal.
pub const WORDS: Source = source!("registers/dv/cores/cores.hex");
/// The C header with the addresses of the registers, which the program includes.
const HEADER: Source = source!("registers/barrier_regs.h");

const LIMIT: Duration = Duration::from_secs(300);

/// The results that the testbench prints.
/// Pairs are a minimum and a maximum of cycles after the last arrival at the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Number of barriers that every core passed.
    pub barriers: u64,
    /// Number of times that a core left before another one had entered.
    pub early: u64,
    /// Number of bus errors.
    pub errors: u64,
    /// Cycles from the last arrival to the rise of a core's wake line; 0 if the cores do not sleep.
    pub to_wake: (u64, u64),
    /// Cycles from the last arrival to a core's first fetch after its sleep;
    /// 0 if the cores do not sleep.
    pub to_run: (u64, u64),
    /// Cycles from the last arrival to a core's first store after the barrier.
    pub to_leave: (u64, u64),
}

/// Returns the path of PicoRV32's Verilog file in a Python environment.
pub fn core_in(environment: &Path) -> Result<PathBuf, ToolError> {
    let pythons = fs::read_dir(environment.join("lib")).into_iter().flatten();
    let files = pythons.flatten().map(|python| {
        let package = "site-packages/pythondata_cpu_picorv32/verilog";
        python.path().join(package).join(Tool::PICORV32.program)
    });
    let mut files = files.filter(|file| file.is_file());
    files.next().ok_or(ToolError::Missing(Tool::PICORV32))
}

/// Runs the testbench with a design of `barrier_wishbone`, original or mutated; `core` is PicoRV32's Verilog.
pub fn play(
    core: &Path,
    design: &Design,
    cores: usize,
    sleeps: bool,
    folder: &Path,
) -> Result<Seen, ToolError> {
    let core = tool::read(core)?;
    tool::write(&folder.join(WORDS.name()), WORDS.text)?;
    let parameters = [("N", cores), ("SLEEPS", usize::from(sleeps))];
    let said = icarus::simulate_with_cores(&BENCH, design, &core, &parameters, folder)?;
    read(&said).ok_or(ToolError::Failed {
        tool: Tool::VVP,
        what: "the bench of cores".to_owned(),
        log: said,
    })
}

/// Compiles the program and returns its machine words in the format of [`WORDS`].
pub fn compiled(folder: &Path) -> Result<String, ToolError> {
    for source in [PROGRAM, HEADER] {
        tool::write(&folder.join(source.name()), source.text)?;
    }
    let options = "-march=rv32i -mabi=ilp32 -Os -ffreestanding -nostdlib -Wall -Wextra -Werror \
                   -Wl,--section-start=.start=0 -Wl,-Ttext=0x20 -Wl,-e,start -o cores.elf cores.c";
    let options = options.split_whitespace();
    Tool::RISCV_GCC.run("the cores' program", options, folder, LIMIT)?;
    let options = "-O verilog --verilog-data-width=4 cores.elf cores.hex";
    Tool::RISCV_OBJCOPY.run("the cores' program", options.split(' '), folder, LIMIT)?;
    Ok(tool::read(&folder.join("cores.hex"))?.replace('\r', ""))
}

fn read(said: &str) -> Option<Seen> {
    let line = said.lines().find(|line| line.starts_with("sleeps "))?;
    let numbers: Vec<u64> = line
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .collect();
    let (&[_, _, barriers, early, errors], cycles) = numbers.split_first_chunk()?;
    let &[w, most_w, r, most_r, l, most_l] = cycles else {
        return None;
    };
    Some(Seen {
        barriers,
        early,
        errors,
        to_wake: (w, most_w),
        to_run: (r, most_r),
        to_leave: (l, most_l),
    })
}
