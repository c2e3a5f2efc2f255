//! Exit skew of barriers on `MPI_COMM_WORLD`: each rank records the times at which it leaves them.

use super::gather::Wire;
use mpi_report::exit_skew::ExitSkew;
use mpi_report::trace::clock::Clock;
use std::collections::BTreeMap;
use std::ffi::c_int;

/// Maximum number of recorded exits per rank (8 MB).
const KEPT: usize = 1 << 20;

/// Number of exit times per message.
const PIECE: usize = 1 << 14;

/// This rank's barrier exit times on its monotonic clock, in nanoseconds.
#[derive(Debug, Default)]
pub struct Exits(Vec<u64>);

impl Exits {
    /// Adds an exit time; every rank ignores the exits after the first `KEPT`.
    pub fn add(&mut self, at: u64) {
        if self.0.len() < KEPT {
            self.0.push(at);
        }
    }

    /// Removes and returns the exit times.
    pub fn take(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.0)
    }
}

/// Sends this rank's exit times to rank 0, which prints the skew.
/// Every rank calls this function; `hosts[i]` is the host of rank i.
pub fn report(
    wire: &Wire<'_>,
    own: Vec<u64>,
    hosts: &[String],
    clocks: &BTreeMap<String, Clock>,
) -> Result<(), String> {
    if wire.rank != 0 {
        wire.send(0, &[own.len() as u64])?;
        return own.chunks(PIECE).try_for_each(|piece| wire.send(0, piece));
    }
    let mut all = vec![own];
    for rank in 1..wire.size {
        all.push(receive(wire, rank)?);
    }
    for (exits, host) in all.iter_mut().zip(hosts) {
        if let Some(clock) = clocks.get(host) {
            exits.iter_mut().for_each(|at| *at = clock.ours(*at));
        }
    }
    let errors: Vec<u64> = clocks.values().filter_map(Clock::precision).collect();
    let (fewest, most) = (
        all.iter().map(Vec::len).min(),
        all.iter().map(Vec::len).max(),
    );
    match ExitSkew::of(&all, &errors) {
        Some(skew) => {
            printable::eprintln!("portcullis: MPI_Barrier on {} ranks: {skew}", wire.size)
        }
        None => printable::eprintln!(
            "portcullis: no exit skew: no barrier on MPI_COMM_WORLD was passed by all ranks"
        ),
    }
    if fewest != most {
        printable::eprintln!(
            "portcullis: the ranks have passed different numbers of barriers, {} to {}; the first ones are compared",
            fewest.unwrap_or(0),
            most.unwrap_or(0)
        );
    }
    Ok(())
}

fn receive(wire: &Wire<'_>, rank: c_int) -> Result<Vec<u64>, String> {
    let mut count = [0];
    wire.recv(rank, &mut count)?;
    let count = usize::try_from(count[0]).unwrap_or(0).min(KEPT);
    let mut exits = vec![0; count];
    exits
        .chunks_mut(PIECE)
        .try_for_each(|piece| wire.recv(rank, piece))?;
    Ok(exits)
}
