//! Benchmark of simulation speed: clock edges per second of the model, Verilator and Icarus, one core each.
//!
//! `cargo bench -p hdl --bench speed`
//!
//! The model and the Verilated RTL get the same random arrivals of 60 nodes and must count equally many releases.
//! Each of their figures is the fastest of 40 runs, because other programs can only slow a run.
//! Icarus runs once: it reads its stimulus from a file and writes all flip-flops to a trace file.
//! Icarus' figure includes the time for these files.

use fpga_model::channels::{ChannelMachine, LEASE_BITS, Pins};
use fpga_model::{MAX_NODES, ToggleMachine};
use hdl::cache::Cache;
use hdl::icarus;
use hdl::random::Random;
use hdl::verilator::{Speed, Verilated};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

const NODES: usize = 60;
const CHANNELS: usize = 5;
const EDGES: u64 = 1_000_000;
const ICARUS_EDGES: u64 = 20_000;
/// Number of runs per figure: many short runs, so that some are not slowed by other programs.
const RUNS: usize = 40;
const WIRES: u64 = u64::MAX >> (MAX_NODES - NODES);

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("portcullis-speed-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let result = toggle_barrier(&folder).and_then(|()| channels(&folder));
    std::fs::remove_dir_all(&folder)?;
    result
}

fn toggle_barrier(folder: &Path) -> Result<(), Box<dyn Error>> {
    let machine = ToggleMachine::new(NODES)?;
    let model = fastest(|| {
        let mut machine = machine;
        Ok(arrivals(EDGES, |inputs| machine.step(inputs)))
    })?;
    let program = Verilated::build(&[("N", NODES)], &Cache::at(folder.join("made")))?;
    let verilated = fastest(|| Ok(program.bench(EDGES)?))?;
    let mut text = String::new();
    let mut machine = ToggleMachine::new(NODES)?;
    arrivals(ICARUS_EDGES, |inputs| {
        let _ = writeln!(text, "0 {inputs:x}");
        machine.step(inputs)
    });
    let start = Instant::now();
    icarus::trace(&[("N", NODES)], &text, folder)?;
    let what = format!("version 1, {NODES} nodes");
    table(&what, model, verilated, start.elapsed().as_secs_f64())
}

fn channels(folder: &Path) -> Result<(), Box<dyn Error>> {
    let parameters = [
        ("N", NODES),
        ("C", CHANNELS),
        ("LEASE_BITS", LEASE_BITS as usize),
    ];
    let machine = ChannelMachine::new(NODES, CHANNELS)?;
    let model = fastest(|| {
        let mut machine = machine;
        Ok(arrivals(EDGES, |inputs| step(&mut machine, inputs)))
    })?;
    let cache = Cache::at(folder.join("made"));
    let program = Verilated::channels(&parameters, &cache)?;
    let verilated = fastest(|| Ok(program.bench(EDGES)?))?;
    let mut text = String::new();
    let mut machine = ChannelMachine::new(NODES, CHANNELS)?;
    arrivals(ICARUS_EDGES, |inputs| {
        let _ = writeln!(text, "0 {inputs:x} 0 0 0");
        step(&mut machine, inputs)
    });
    let start = Instant::now();
    icarus::channel_trace(&parameters, &text, folder)?;
    let what = format!("version 2, {NODES} nodes, {CHANNELS} channels");
    table(&what, model, verilated, start.elapsed().as_secs_f64())
}

/// Calls `run` [`RUNS`] times and returns the fastest result.
fn fastest(
    mut run: impl FnMut() -> Result<Speed, Box<dyn Error>>,
) -> Result<Speed, Box<dyn Error>> {
    let mut best = run()?;
    for _ in 1..RUNS {
        let next = run()?;
        if next.seconds < best.seconds {
            best = next;
        }
    }
    Ok(best)
}

/// Runs one edge with arrivals in channel 0, of which all nodes are members; returns the release wires.
fn step(machine: &mut ChannelMachine, inputs: u64) -> u64 {
    let mut pins = Pins::default();
    pins.arrive[0] = inputs;
    machine.step(&pins);
    if machine.releases() & 1 == 0 {
        0
    } else {
        WIRES
    }
}

/// Applies the same random arrivals as the Verilated programs.
/// `machine` runs one edge and returns its outputs.
fn arrivals(edges: u64, mut machine: impl FnMut(u64) -> u64) -> Speed {
    let (mut random, mut inputs, mut outputs, mut releases) = (Random::default(), 0, 0, 0);
    let start = Instant::now();
    for _ in 0..edges {
        inputs ^= random.next_u64() & !(inputs ^ outputs) & WIRES;
        let before = outputs;
        outputs = machine(inputs);
        releases += u64::from(outputs != before);
    }
    Speed {
        edges,
        seconds: start.elapsed().as_secs_f64(),
        releases,
    }
}

fn table(what: &str, model: Speed, verilated: Speed, icarus: f64) -> Result<(), Box<dyn Error>> {
    let rate = |edges: u64, seconds: f64| edges as f64 / seconds / 1e6;
    let model_rate = rate(model.edges, model.seconds);
    println!("{what:<36} million edges/s    the model is faster by");
    for (name, rate) in [
        ("model (Rust)", model_rate),
        ("RTL, Verilator", rate(verilated.edges, verilated.seconds)),
        ("RTL, Icarus Verilog", rate(ICARUS_EDGES, icarus)),
    ] {
        let ratio = model_rate / rate;
        println!("{name:<36} {rate:>15.3} {ratio:>18.0}x");
    }
    println!(
        "releases in {EDGES} edges: model {}, Verilated RTL {}",
        model.releases, verilated.releases
    );
    if model.releases != verilated.releases {
        return Err("the model and the RTL do not release equally often".into());
    }
    Ok(())
}
