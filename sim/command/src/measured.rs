//! Measurement of this machine's own software barrier:
//! `mpi-bench barrier`, run by the `mpirun` in the folder of `hwbarr`.

use crate::Failure;
use barrier_simulator::virtual_time::Time;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// The barrier time of several ranks in shared memory, measured on this machine.
pub struct Measured {
    pub ranks: u64,
    pub cores: usize,
    /// Mean time per barrier in a long series, as reported by `mpi-bench`.
    pub mean: Time,
}

impl Measured {
    /// Returns the label of this measurement in tables.
    pub fn name(&self) -> String {
        let Self { ranks, cores, .. } = self;
        format!("measured here, mean of many: shared memory, {ranks} ranks on {cores} cores")
    }
}

fn tool(name: &str) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let path = own.with_file_name(name);
    match path.is_file() {
        true => Ok(path),
        false => Err(format!(
            "--measured needs mpirun and mpi-bench beside hwbarr, and {} is not there (cargo xtask install puts them together)",
            path.display()
        )
        .into()),
    }
}

/// Runs `mpi-bench barrier` with `ranks` ranks, without the hardware barrier's component.
pub fn barrier(ranks: u64) -> Result<Measured, Failure> {
    let (mpirun, bench) = (tool("mpirun")?, tool("mpi-bench")?);
    let count = ranks.to_string();
    let mut command = Command::new(mpirun);
    command.args(["-n", &count, "--mca", "coll", "^hwbarr"]);
    command.arg(bench).args(["barrier", "--json"]);
    let ended = command.output()?;
    let said = String::from_utf8_lossy(&ended.stdout);
    let report: Value = serde_json::from_str(&said).unwrap_or_default();
    let us = report["rows"][0]["avg"].as_f64().filter(|us| *us > 0.0);
    match us {
        Some(us) if ended.status.success() => Ok(Measured {
            ranks,
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            mean: Time::from_ps((us * 1e6).round() as u64),
        }),
        _ => Err(format!(
            "mpi-bench barrier of {ranks} ranks gave no figure ({}): {}",
            ended.status,
            String::from_utf8_lossy(&ended.stderr).trim()
        )
        .into()),
    }
}
