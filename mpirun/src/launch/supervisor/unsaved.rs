//! The processes of the job on this host that images must contain, with names for messages.

use super::jobs::Jobs;
use crate::launch::outside;
use crate::launch::wire::Connection;
use crate::process_tree::descendants_of;
use mpi_core::crs::criu::CriuError;
use std::collections::BTreeSet;

/// Fails if a process of the job on this host is or has something that its images cannot contain.
/// Returns the TCP connections with processes that are not on this host.
pub(super) fn check(jobs: &Jobs<'_>) -> Result<Vec<Connection>, CriuError> {
    let ranks = jobs.alive().filter(|(_, rank)| rank.here);
    let ranks = ranks.flat_map(|(proc, rank)| {
        let name = jobs.name_of(proc);
        let below = descendants_of(rank.pid).into_iter();
        let below = below.map({
            let name = name.clone();
            move |pid| (pid, format!("process {pid} of {name}"))
        });
        std::iter::once((rank.pid, name)).chain(below)
    });
    let mut ranks: Vec<(i32, String)> = ranks.collect();
    // A process whose parent has ended is a child of this supervisor, and CRIU dumps it, too.
    let known: BTreeSet<i32> = ranks.iter().map(|(pid, _)| *pid).collect();
    let me = rustix::process::getpid().as_raw_pid();
    let all = descendants_of(me).into_iter();
    let orphans = all.filter(|pid| !known.contains(pid));
    ranks.extend(orphans.map(|pid| (pid, format!("process {pid} of the job"))));
    outside::check(&ranks, me)
}
