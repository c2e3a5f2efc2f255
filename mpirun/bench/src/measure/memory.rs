//! Memory of a running job: of each rank after `MPI_Init` and a barrier, and of the launcher.
//!
//! The figures are proportional set sizes (`Pss` of `/proc/PID/smaps_rollup`).
//! Each process is charged its share of a shared page, so the sum is the job's memory use.
//! The memory of this program is included and is the same for every library.
//! Before the measurement, every process has the time [`SETTLING`] to release memory that only the
//! start needed, since a job runs much longer than its start takes.

use super::collective::across;
use crate::mpi::{MpiError, World};
use crate::row::Row;
use std::time::Duration;

/// The time between the start and the measurement.
const SETTLING: Duration = Duration::from_millis(500);

/// Measures each rank's memory, in KiB.
pub fn of_ranks(world: &World<'_>, ranks: usize) -> Result<Row, MpiError> {
    stand(world)?;
    let kib = pss_kib("self").unwrap_or_default();
    world.barrier()?;
    across(world, ranks, kib)
}

/// Measures the launcher processes above rank 0, up to the process that started them, in KiB.
pub fn of_launcher(world: &World<'_>, ranks: usize) -> Result<Row, MpiError> {
    stand(world)?;
    let kib = match world.rank() {
        0 => launchers().iter().filter_map(|pid| pss_kib(pid)).sum(),
        _ => 0.0,
    };
    world.barrier()?;
    // Only rank 0 has a figure; the other ranks contribute 0.
    let row = across(world, ranks, kib)?;
    Ok(Row {
        avg: row.max.unwrap_or_default(),
        min: None,
        max: None,
        ..row
    })
}

/// Waits until all ranks have communicated and released memory.
/// The caller's next barrier keeps all ranks alive until each has measured.
fn stand(world: &World<'_>) -> Result<(), MpiError> {
    world.barrier()?;
    std::thread::sleep(SETTLING);
    world.barrier()
}

/// Returns this process's ancestors up to the next ancestor that runs the same program.
/// If there is no such ancestor, returns only the parent.
fn launchers() -> Vec<String> {
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let ours = program("self");
    let mut found = Vec::new();
    let mut pid = parent("self");
    while let Some(here) = pid {
        if program(&here) == ours {
            return found;
        }
        pid = parent(&here);
        found.push(here);
    }
    found.truncate(1);
    found
}

fn parent(pid: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    field(&status, "PPid:")
        .filter(|&parent| parent != "0")
        .map(str::to_owned)
}

fn pss_kib(pid: &str) -> Option<f64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    field(&rollup, "Pss:")?.parse().ok()
}

/// Returns the first word after `name` in the line that begins with `name`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "Pss_Dirty:  3 kB\nPss:     1234 kB\n";
        assert_eq!(field(text, "Pss:"), Some("1234"));
        assert_eq!(field(text, "Rss:"), None);
    }

    #[test]
    fn this_process_has_memory_and_a_parent() {
        assert!(pss_kib("self").is_some_and(|kib| kib > 100.0));
        assert!(!launchers().is_empty());
    }
}
