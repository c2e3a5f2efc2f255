//! What a job costs in memory once it stands: each rank after `MPI_Init` and a barrier, and the launcher.
//!
//! The figures are proportional set sizes (`Pss` of `/proc/PID/smaps_rollup`): a page that several processes share counts for each as its share,
//! so that all processes together are what the job takes from the machine.
//! This program itself is in them, the same for every library.
//! A job runs for longer than it starts, so every process has [`SETTLING`] to put away what only the start needed.

use super::collective::across;
use crate::mpi::{MpiError, World};
use crate::row::Row;
use std::time::Duration;

/// Between the start and the look.
const SETTLING: Duration = Duration::from_millis(500);

/// Each rank's memory, in KiB.
pub fn of_ranks(world: &World<'_>, ranks: usize) -> Result<Row, MpiError> {
    stand(world)?;
    let kib = pss_kib("self").unwrap_or_default();
    world.barrier()?;
    across(world, ranks, kib)
}

/// The memory of the processes between rank 0 and the process that started the launcher, in KiB.
pub fn of_launcher(world: &World<'_>, ranks: usize) -> Result<Row, MpiError> {
    stand(world)?;
    let kib = match world.rank() {
        0 => launchers().iter().filter_map(|pid| pss_kib(pid)).sum(),
        _ => 0.0,
    };
    world.barrier()?;
    // One number; the other ranks add nothing.
    let row = across(world, ranks, kib)?;
    Ok(Row {
        avg: row.max.unwrap_or_default(),
        min: None,
        max: None,
        ..row
    })
}

/// All ranks are there and have spoken with another before any looks; the caller's next barrier keeps all until each has looked.
fn stand(world: &World<'_>) -> Result<(), MpiError> {
    world.barrier()?;
    std::thread::sleep(SETTLING);
    world.barrier()
}

/// Our ancestors up to the next one that is this program too, or the direct one if there is none.
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

/// The first word behind a name at the start of a line.
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
