//! Benchmark of recording and writing waveforms: `cargo bench -p barrier-simulator --bench waveform`.
//!
//! Sixty nodes pass barriers in virtual time, first without and then with a record.
//! The record is then written as a value change dump.

use barrier_simulator::virtual_time::{Parameters, run};
use std::fs::File;
use std::io::BufWriter;
use std::time::Instant;

/// Number of barriers; with 60 nodes and 301 value changes per barrier, over a million changes.
const BARRIERS: usize = 4_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parameters = Parameters::new(60, BARRIERS);
    for (what, keep) in [("without a record", false), ("with a record", true)] {
        let start = Instant::now();
        let events = run(&parameters, keep)?.record.events.len();
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{BARRIERS} barriers of 60 nodes {what:<18} {seconds:>7.3} s, {:>9.0} barriers/s, {events} events kept",
            BARRIERS as f64 / seconds
        );
    }
    let record = run(&parameters, true)?.record;
    let path = std::env::temp_dir().join(format!("waveform-bench-{}.vcd", std::process::id()));
    let start = Instant::now();
    barrier_waveform::vcd::write(BufWriter::new(File::create(&path)?), &record)?;
    let seconds = start.elapsed().as_secs_f64();
    let bytes = std::fs::metadata(&path)?.len();
    let text = std::fs::read_to_string(&path)?;
    std::fs::remove_file(&path)?;
    let changes = text
        .lines()
        .filter(|line| line.starts_with(['0', '1', 'b', 'x']))
        .count();
    println!(
        "{changes} value changes written to a file      {seconds:>7.3} s, {:>9.0} changes/s, {:.1} MB",
        changes as f64 / seconds,
        bytes as f64 / 1e6
    );
    Ok(())
}
