//! Clock edges in a second: the model, the Verilated RTL and the RTL under Icarus, side by side, one core each.
//!
//! `cargo run --release -p hdl --example speed`
//!
//! The model and the Verilated RTL get the same random arrivals of 60 nodes and must release equally often.
//! Icarus reads its stimulus from a file, as in the comparison; that is part of its figure.

use fpga_model::ToggleMachine;
use hdl::cache::Cache;
use hdl::icarus;
use hdl::verilator::{Speed, Verilated};
use std::error::Error;
use std::fmt::Write as _;
use std::time::Instant;

const NODES: usize = 60;
const EDGES: u64 = 20_000_000;
const ICARUS_EDGES: u64 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("portcullis-speed-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let result = measure(&folder);
    std::fs::remove_dir_all(&folder)?;
    result
}

fn measure(folder: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let model = by_model(EDGES, |_| ())?;
    let verilated = Verilated::build(NODES, &Cache::at(folder.join("made")))?.bench(EDGES)?;
    let mut text = String::new();
    by_model(ICARUS_EDGES, |inputs| {
        let _ = writeln!(text, "0 {inputs:x}");
    })?;
    let start = Instant::now();
    icarus::trace(NODES, &text, folder)?;
    let icarus = Speed {
        edges: ICARUS_EDGES,
        seconds: start.elapsed().as_secs_f64(),
        releases: 0,
    };
    println!("{NODES} nodes, random arrivals    million edges/s    the model is faster by");
    let rate = |s: Speed| s.edges as f64 / s.seconds / 1e6;
    for (name, speed) in [
        ("model (Rust)", model),
        ("RTL, Verilator", verilated),
        ("RTL, Icarus Verilog", icarus),
    ] {
        let ratio = rate(model) / rate(speed);
        println!("{name:<30} {:>14.3} {ratio:>18.0}x", rate(speed));
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

/// Random arrivals as in the Verilated program.
fn by_model(edges: u64, mut shown: impl FnMut(u64)) -> Result<Speed, Box<dyn Error>> {
    let mut machine = ToggleMachine::new(NODES)?;
    let (mut random, mut inputs) = (0x2545_f491_4f6c_dd1du64, 0);
    let start = Instant::now();
    for _ in 0..edges {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        inputs ^= random & !(inputs ^ machine.outputs()) & machine.wires();
        shown(inputs);
        machine.step(inputs);
    }
    Ok(Speed {
        edges,
        seconds: start.elapsed().as_secs_f64(),
        releases: machine.releases(),
    })
}
