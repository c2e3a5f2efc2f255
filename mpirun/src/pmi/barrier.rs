//! PMI barriers: of a whole job and, since PMI-1.2, of groups of its ranks.
//!
//! `barrier_in` without a group means all ranks; `group=0,1:7` means ranks 0 and 1 with tag 7;
//! `group=WORLD:5` means all ranks, and `group=NODE:3` all ranks on the caller's host.
//! A barrier is identified by its group text and its members, so several may be open together.
//!
//! In a fault-tolerant job, a dead rank counts as arrived in every barrier ([`Barriers::leave`]).

use mpi_core::rte::wire::WireError;
use std::collections::{BTreeMap, BTreeSet};

/// The open barriers of a job, which some but not all members have entered.
#[derive(Debug, Default)]
pub struct Barriers {
    open: BTreeMap<(String, BTreeSet<u32>), OpenBarrier>,
    /// Dead ranks, which count as arrived in every barrier.
    gone: BTreeSet<u32>,
}

#[derive(Debug)]
struct OpenBarrier {
    members: BTreeSet<u32>,
    arrived: BTreeSet<u32>,
    tag: Option<String>,
}

impl OpenBarrier {
    fn is_full(&self, gone: &BTreeSet<u32>) -> bool {
        let come = |rank: &u32| self.arrived.contains(rank) || gone.contains(rank);
        self.members.iter().all(come)
    }

    fn release(self, gone: &BTreeSet<u32>) -> Release {
        Release {
            ranks: self.arrived.difference(gone).copied().collect(),
            tag: self.tag,
        }
    }
}

/// A completed barrier, which all members have entered.
#[derive(Debug, PartialEq, Eq)]
pub struct Release {
    /// The ranks that wait in the barrier.
    pub ranks: Vec<u32>,
    pub tag: Option<String>,
}

impl Barriers {
    /// Records that a rank enters a barrier; rank `r` is on host `hosts[r]`.
    /// The last member that enters completes the barrier.
    pub fn enter(
        &mut self,
        rank: u32,
        hosts: &[u32],
        group: Option<&str>,
    ) -> Result<Option<Release>, WireError> {
        let name = group.unwrap_or_default().to_string();
        let (members, tag) = parse(group, rank, hosts)?;
        if !members.contains(&rank) {
            return Err(WireError::Unexpected {
                wanted: format!("barrier_in with a group that has rank {rank}"),
                line: name,
            });
        }
        let key = (name, members.clone());
        let open = self.open.entry(key.clone()).or_insert_with(|| OpenBarrier {
            members,
            arrived: BTreeSet::new(),
            tag,
        });
        open.arrived.insert(rank);
        if !open.is_full(&self.gone) {
            return Ok(None);
        }
        let open = self.open.remove(&key);
        Ok(open.map(|open| open.release(&self.gone)))
    }

    /// Records the death of a rank. Returns the barriers that the death completes.
    pub fn leave(&mut self, rank: u32) -> Vec<Release> {
        self.gone.insert(rank);
        let (full, open): (BTreeMap<_, _>, _) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|(_, open)| open.is_full(&self.gone));
        self.open = open;
        let full = full.into_values();
        full.map(|open| open.release(&self.gone)).collect()
    }

    /// Returns the ranks that wait in a barrier that this rank has not entered.
    pub fn waiting_for(&self, rank: u32) -> Vec<u32> {
        if self.gone.contains(&rank) {
            return Vec::new();
        }
        self.open
            .values()
            .filter(|open| open.members.contains(&rank) && !open.arrived.contains(&rank))
            .flat_map(|open| open.arrived.iter().copied())
            .collect()
    }
}

fn parse(
    group: Option<&str>,
    rank: u32,
    hosts: &[u32],
) -> Result<(BTreeSet<u32>, Option<String>), WireError> {
    let size = hosts.len() as u32;
    let Some(group) = group else {
        return Ok(((0..size).collect(), None));
    };
    let (names, tag) = match group.split_once(':') {
        Some((names, tag)) => (names, Some(tag.to_string()).filter(|tag| !tag.is_empty())),
        None => (group, None),
    };
    let members = match names {
        "WORLD" | "" => (0..size).collect(),
        "NODE" => {
            let here = hosts.get(rank as usize);
            let on = |other: &u32| hosts.get(*other as usize) == here;
            (0..size).filter(on).collect()
        }
        ranks => ranks
            .split(',')
            .map(|text| match text.parse::<u32>() {
                Ok(rank) if rank < size => Ok(rank),
                _ => Err(WireError::Unexpected {
                    wanted: format!("barrier_in with ranks from 0 to {}", size.saturating_sub(1)),
                    line: group.to_string(),
                }),
            })
            .collect::<Result<_, _>>()?,
    };
    Ok((members, tag))
}
