//! Collective setup of the wires: all nodes open and test them, with software fences between the steps.
//!
//! After each step the nodes agree on its result (see `setup_group`).
//! A node with a fault still enters every fence of the step, so no node waits indefinitely.

use crate::port::{self, Barrier, Fault, LevelChanges, Pair, Port, Wire};
use crate::settings::Settings;
use crate::setup_group::SetupGroup;
use barrier_driver::SelfTest;
use embedded_hal::digital::PinState;
use mpi_base::yield_now::Backoff;
use mpi_core::plugin::guest::Comm;
use std::cell::Cell;
use std::time::Duration;

/// Time for which the self-test checks that an incomplete barrier is not released.
const HOLD: Duration = Duration::from_micros(100);
/// Time limit for a release in the self-test; far more than a busy machine needs.
const LIMIT: Duration = Duration::from_secs(10);

/// A node whose wires are open and tested, ready for the program's barriers.
pub struct Ready {
    pub wire: Box<dyn Barrier>,
    pub port: Box<dyn Port>,
    /// Number of nodes in the barrier.
    pub nodes: u32,
}

/// Version 1: every rank is a node with one wire pair.
pub fn bring_up(comm: &Comm, settings: &Settings) -> Result<Ready, String> {
    let setup_group = SetupGroup::of_all(comm);
    let attached = port::attach(&settings.port, settings.boards, settings.timeout, comm);
    let mut port: Box<dyn Pair> = setup_group.agree(attached.map_err(Fault::Here))?;
    let fenced = Cell::new(false);
    let mut fence = || {
        fenced.set(true);
        comm.fence()
    };
    let opened = port.open(&mut fence);
    if !fenced.get() {
        comm.fence()?;
    }
    let wire = setup_group.agree(opened.map_err(Fault::Here))?;
    let names = (0..comm.size()).collect::<Vec<_>>();
    let (wire, level_changes) = prove(comm, &setup_group, wire, &names, settings)?;
    port.ready(level_changes);
    Ok(Ready {
        wire,
        port,
        nodes: comm.size(),
    })
}

/// Tests the open wires of the group's members and returns this member's barrier;
/// `names[i]` is the node number of member i.
pub fn prove(
    comm: &Comm,
    setup_group: &SetupGroup,
    mut wire: Box<dyn Wire>,
    names: &[u32],
    settings: &Settings,
) -> Result<(Box<dyn Barrier>, LevelChanges), String> {
    let same = same_level(setup_group, wire.idle_level(), names, settings.reboot)?;
    setup_group.agree(same)?;

    let test = SelfTest {
        me: comm.rank() as usize,
        hold: HOLD,
        limit: settings.timeout.map_or(LIMIT, |timeout| timeout.min(LIMIT)),
    };
    // The late ranks are the highest ones, because the first rank tends to be late anyway.
    let ranks = setup_group.ranks().iter().rev().take(settings.late_nodes);
    let late: Vec<_> = ranks.map(|rank| *rank as usize).collect();
    let mut backoff = Backoff::new();
    let mut rest = || {
        comm.progress();
        // In a simulation nodes usually outnumber cores, so a waiting node yields its core.
        backoff.pause();
    };
    let tested = wire.self_test(test, &late, &mut || setup_group.fence(), &mut rest);
    setup_group.agree(tested)?;
    let Some(level) = settings.reboot else {
        return Ok((wire, LevelChanges::Once));
    };
    let returning = wire.returning(level, &mut rest, test.limit);
    Ok((setup_group.agree(returning)?, LevelChanges::Twice))
}

/// Checks at the first member that all nodes have read the same idle level and have the same
/// `coll_hwbarr_reboot`. The other members receive the result in `agree`.
fn same_level(
    setup_group: &SetupGroup,
    mine: PinState,
    names: &[u32],
    reboot: Option<PinState>,
) -> Result<Result<(), Fault>, String> {
    let code = |level| match level {
        None => 0,
        Some(PinState::Low) => 1,
        Some(PinState::High) => 2,
    };
    let all = setup_group.gather([code(Some(mine)), code(reboot)])?;
    let name = |place: usize| names.get(place).copied().unwrap_or(0);
    if let Some(other) = all.iter().position(|theirs| theirs[1] != code(reboot)) {
        return Ok(Err(Fault::Named(format!(
            "coll_hwbarr_reboot is not the same on node {} and on node {}",
            name(other),
            name(0)
        ))));
    }
    let high = |theirs: &[u8; 2]| PinState::from(theirs[0] == code(Some(PinState::High)));
    let levels: Vec<_> = all.iter().map(high).collect();
    let level = barrier_driver::same_level(&levels).map_err(|mut level_mismatch| {
        for place in &mut level_mismatch.nodes {
            *place = name(*place) as usize;
        }
        Fault::Named(level_mismatch.to_string())
    });
    Ok(level)
}
