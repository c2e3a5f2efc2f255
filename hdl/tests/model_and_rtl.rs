//! The model and the RTL are the same machine, edge by edge and flip-flop by flip-flop.
//!
//! Needs Icarus Verilog (`iverilog`, `vvp`); without it the test says that it has compared nothing.

use fpga_model::{Registers, ToggleMachine};
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// Edges for each number of nodes.
const EDGES: usize = 20_000;

/// What is applied before one edge.
struct Edge {
    reset: bool,
    inputs: u64,
}

/// Random arrivals, a withdrawal now and then (which no driver does in the middle of a barrier, but a cable does),
/// and a rare reset.
fn stimulus(nodes: usize, mut outputs_of: impl FnMut(&Edge) -> u64) -> Vec<Edge> {
    let mut random = 0x2545_f491_4f6c_dd1du64 ^ nodes as u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let wires = u64::MAX >> (64 - nodes);
    let (mut inputs, mut outputs) = (0, 0);
    (0..EDGES)
        .map(|_| {
            inputs ^= next() & !(inputs ^ outputs) & wires;
            if next() % 16 == 0 {
                inputs ^= next() & next() & next() & wires;
            }
            let edge = Edge {
                reset: next() % 500 == 0,
                inputs,
            };
            outputs = outputs_of(&edge);
            edge
        })
        .collect()
}

/// The model's answer to one edge.
fn apply(machine: &mut ToggleMachine, edge: &Edge) -> u64 {
    if edge.reset {
        machine.reset();
        machine.outputs()
    } else {
        machine.step(edge.inputs)
    }
}

/// Runs a tool, or returns false if it is not installed.
fn run(tool: &str, arguments: &[&str], folder: &Path) -> bool {
    match Command::new(tool)
        .args(arguments)
        .current_dir(folder)
        .output()
    {
        Ok(output) => {
            let text =
                String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && text.trim().is_empty(),
                "{tool} {arguments:?}: {text}"
            );
            true
        }
        Err(e) if e.kind() == ErrorKind::NotFound => false,
        Err(e) => panic!("{tool} cannot be started: {e}"),
    }
}

#[test]
fn the_rtl_does_what_the_model_does_at_every_edge() {
    for nodes in [1, 2, 7, 60, 64] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let blank = ToggleMachine::new(nodes).expect("a legal node count");

        let mut driver = blank;
        let edges = stimulus(nodes, |edge| apply(&mut driver, edge));
        let lines = edges.iter().fold(String::new(), |mut text, edge| {
            let _ = writeln!(text, "{} {:x}", u8::from(edge.reset), edge.inputs);
            text
        });
        std::fs::write(folder.join("stimulus"), lines).expect("a file");

        let parameter = format!("-Ptrace_tb.N={nodes}");
        let sources: Vec<_> = hdl::RTL
            .into_iter()
            .chain([hdl::TRACE_BENCH])
            .map(|source| source.path().to_string_lossy().into_owned())
            .collect();
        let mut arguments = vec![
            "-g2001",
            "-Wall",
            "-Wno-timescale",
            "-s",
            "trace_tb",
            &parameter,
            "-o",
            "tb.vvp",
        ];
        arguments.extend(sources.iter().map(String::as_str));
        if !run("iverilog", &arguments, folder)
            || !run(
                "vvp",
                &["-n", "tb.vvp", "+stimulus=stimulus", "+trace=trace"],
                folder,
            )
        {
            eprintln!(
                "SKIPPED: Icarus Verilog (iverilog, vvp) is not installed, so the RTL was not compared with the model"
            );
            return;
        }

        let trace = std::fs::read_to_string(folder.join("trace")).expect("a trace");
        let mut machine = blank;
        let mut compared = 0;
        for (number, (edge, line)) in edges.iter().zip(trace.lines()).enumerate() {
            apply(&mut machine, edge);
            let Registers {
                stage1,
                stage2,
                output,
                ..
            } = machine.registers();
            let seen: Vec<_> = line
                .split(' ')
                .map(|word| u64::from_str_radix(word, 16))
                .collect();
            let expected = [output, stage1, stage2].map(Ok);
            assert_eq!(
                seen,
                expected,
                "{nodes} nodes, edge {}: outputs, stage1, stage2",
                number + 1
            );
            compared += 1;
        }
        assert_eq!(compared, EDGES, "the trace of {nodes} nodes is cut short");
        assert!(
            machine.releases() > 500,
            "{} releases: the stimulus exercises nothing",
            machine.releases()
        );
        println!(
            "{nodes} nodes: {compared} edges and {} releases agree",
            machine.releases()
        );
    }
}
