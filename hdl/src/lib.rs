//! The barrier in Verilog-2001, for tool chains and for tests: where the sources are, and what they say.
//!
//! `rtl/` is the design, one module in each file and nothing that an old synthesiser would refuse;
//! `dv/` drives it in a simulator.
//! The cycle-accurate model in the crate `fpga-model` is the reference:
//! the test `model_and_rtl` compares the two edge by edge, flip-flop by flip-flop, on random stimulus.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

/// A source file of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Its path inside the crate.
    pub file: &'static str,
    /// Its text, for programs that run where the sources are not.
    pub text: &'static str,
}

impl Source {
    /// Where the file was when this crate was built.
    pub fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.file)
    }
}

/// Names a file once, for its path and its text.
macro_rules! source {
    ($file:literal) => {
        Source {
            file: $file,
            text: include_str!(concat!("../", $file)),
        }
    };
}

/// The module to synthesise; its parameter `N` is the number of nodes, 60 if not given.
pub const TOP: &str = "toggle_barrier";

/// The design, the top module first.
pub const RTL: [Source; 3] = [
    source!("rtl/toggle_barrier.v"),
    source!("rtl/synchroniser.v"),
    source!("rtl/toggle_machine.v"),
];

/// The bench that plays a stimulus file and writes a trace file; see its head for the format.
pub const TRACE_BENCH: Source = source!("dv/trace_tb.v");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_holds_the_one_module_it_is_named_after() {
        for source in RTL.into_iter().chain([TRACE_BENCH]) {
            let modules: Vec<_> = source
                .text
                .lines()
                .filter_map(|line| line.strip_prefix("module "))
                .map(|rest| rest.trim_end_matches([' ', '#', '(', ';']))
                .collect();
            let stem = Path::new(source.file)
                .file_stem()
                .and_then(|stem| stem.to_str());
            assert_eq!(
                modules,
                stem.into_iter().collect::<Vec<_>>(),
                "{}",
                source.file
            );
            assert!(source.path().is_file());
        }
    }
}
