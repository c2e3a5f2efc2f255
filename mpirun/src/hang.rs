//! Who waits for whom: what a set of [`Glimpse`]s says about a job that does not move.
//!
//! Pure: glimpses go in, sentences come out. A rank waits for another when it is in a call that names a peer of `MPI_COMM_WORLD`;
//! following these edges leads to a circle, to a rank that has left, or to one that does something else, and that one is the culprit.
//! Ranks in different collective operations, or some in one and others elsewhere, are named as such.

use crate::glimpse::{Glimpse, Stage};
use crate::launch::binding::ranges;
use std::collections::BTreeMap;

/// The number of `MPI_COMM_WORLD` on a state page; peers of other communicators are not job ranks.
const WORLD: u32 = 0;

/// A rank of the job.
#[derive(Clone, Debug)]
pub struct Seen {
    pub rank: u32,
    pub alive: bool,
    pub glimpse: Option<Glimpse>,
}

impl Seen {
    fn call(&self) -> Option<&str> {
        self.glimpse.as_ref()?.call.as_deref()
    }

    /// Whom it waits for.
    fn peer(&self) -> Option<u32> {
        let glimpse = self.glimpse.as_ref()?;
        glimpse.call.as_ref()?;
        glimpse.peer.filter(|_| glimpse.comm == WORLD)
    }

    fn has_left(&self) -> bool {
        let finalized = |glimpse: &Glimpse| {
            glimpse.stage == Stage::Finalized || glimpse.call.as_deref() == Some("MPI_Finalize")
        };
        !self.alive || self.glimpse.as_ref().is_some_and(finalized)
    }

    /// What it does, without its number.
    fn doing(&self) -> String {
        let Some(glimpse) = &self.glimpse else {
            return "cannot be seen".into();
        };
        if !self.alive {
            return "has ended".into();
        }
        match (&glimpse.call, glimpse.stage) {
            (Some(call), _) => {
                let mut text = format!("is in {call}");
                if let Some(peer) = glimpse.peer {
                    text += &format!(" with rank {peer}");
                    if glimpse.comm != WORLD {
                        text += &format!(" of communicator {}", glimpse.comm);
                    }
                    if let Some(tag) = glimpse.tag {
                        text += &format!(", tag {tag}");
                    }
                }
                if let Some(waited) = glimpse.waited {
                    text += &format!(", for {} s", waited.as_secs());
                }
                text
            }
            (None, Stage::Before) => "has not called MPI_Init".into(),
            (None, Stage::Finalized) => "has called MPI_Finalize".into(),
            (None, _) => match &glimpse.last_call {
                Some(last) => format!("computes; its last MPI call was {last}"),
                None => "computes".into(),
            },
        }
    }
}

/// The report: what is found first, then what every rank does, equal ones together.
pub fn report(ranks: &[Seen]) -> String {
    let mut lines = circles(ranks);
    lines.extend(ends_of_waiting(ranks));
    lines.extend(collectives(ranks));
    if lines.is_empty() {
        lines.push("nobody is seen to wait for a rank that does not come".into());
    }
    lines.push("every rank:".into());
    let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for seen in ranks {
        alike
            .entry(seen.doing())
            .or_default()
            .push(seen.rank as usize);
    }
    let mut groups: Vec<_> = alike.into_iter().collect();
    groups.sort_by_key(|(_, ranks)| ranks.first().copied());
    for (doing, ranks) in groups {
        lines.push(format!("  {} {doing}", named(&ranks)));
    }
    lines.join("\n")
}

fn named(ranks: &[usize]) -> String {
    match ranks {
        [one] => format!("rank {one}"),
        many => format!("ranks {}", ranges(many)),
    }
}

fn find(ranks: &[Seen], rank: u32) -> Option<&Seen> {
    ranks.iter().find(|seen| seen.rank == rank)
}

/// Ranks that wait for each other in a ring.
fn circles(ranks: &[Seen]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut told: Vec<u32> = Vec::new();
    for start in ranks {
        let mut way = vec![start.rank];
        while let Some(next) = way
            .last()
            .and_then(|&rank| find(ranks, rank)?.peer())
            .filter(|next| !way.contains(next))
        {
            way.push(next);
        }
        let closes = way.last().and_then(|&rank| find(ranks, rank)?.peer()) == Some(start.rank);
        if way.len() < 2 || !closes || told.contains(&start.rank) {
            continue;
        }
        told.extend(&way);
        let sorted: Vec<String> = way.iter().map(u32::to_string).collect();
        lines.push(format!(
            "ranks {} wait for each other in a circle:",
            sorted.join(", ")
        ));
        let members: Vec<&Seen> = way.iter().filter_map(|&rank| find(ranks, rank)).collect();
        for member in &members {
            lines.push(format!("  rank {} {}", member.rank, member.doing()));
        }
        let tags: Vec<Option<i32>> = members
            .iter()
            .map(|member| member.glimpse.as_ref().and_then(|glimpse| glimpse.tag))
            .collect();
        if way.len() == 2 && tags[0] != tags[1] && tags.iter().all(Option::is_some) {
            lines.push("  their tags differ, so they never meet".into());
        }
    }
    lines
}

/// Ranks that wait for one that does not come, by that one.
fn ends_of_waiting(ranks: &[Seen]) -> Vec<String> {
    let mut waiting: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for seen in ranks {
        if let Some(peer) = seen.peer() {
            waiting.entry(peer).or_default().push(seen.rank as usize);
        }
    }
    waiting
        .into_iter()
        .filter_map(|(culprit, waiting)| {
            let culprit = find(ranks, culprit)?;
            // A rank that waits itself is no culprit; where it leads is told at the end of its own way.
            let why = match (culprit.has_left(), culprit.peer(), culprit.call()) {
                (true, _, _) => format!("which has left: it {}", culprit.doing()),
                (false, Some(_), _) => return None,
                (false, None, _) => format!("which {}", culprit.doing()),
            };
            let verb = if waiting.len() == 1 { "waits" } else { "wait" };
            Some(format!(
                "{} {verb} for rank {}, {why}",
                named(&waiting),
                culprit.rank
            ))
        })
        .collect()
}

/// Ranks in collective operations that do not fit together.
fn collectives(ranks: &[Seen]) -> Vec<String> {
    let mut by_call: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let inside = |seen: &&Seen| seen.peer().is_none() && !seen.has_left();
    for seen in ranks.iter().filter(inside) {
        if let Some(call) = seen.call().filter(|call| is_collective(call)) {
            by_call.entry(call).or_default().push(seen.rank as usize);
        }
    }
    let members: usize = by_call.values().map(Vec::len).sum();
    if members == 0 {
        return Vec::new();
    }
    if by_call.len() > 1 {
        let who: Vec<String> = by_call
            .iter()
            .map(|(call, ranks)| format!("{} in {call}", named(ranks)))
            .collect();
        return vec![format!(
            "different collective operations are under way: {}",
            who.join(", ")
        )];
    }
    let missing: Vec<usize> = ranks
        .iter()
        .map(|seen| seen.rank as usize)
        .filter(|rank| !by_call.values().any(|inside| inside.contains(rank)))
        .collect();
    match (by_call.keys().next(), missing.is_empty()) {
        (Some(call), false) => vec![format!("{call} has begun without {}", named(&missing))],
        _ => Vec::new(),
    }
}

fn is_collective(call: &str) -> bool {
    const NAMES: [&str; 9] = [
        "Barrier",
        "Bcast",
        "Gather",
        "Scatter",
        "Allgather",
        "Alltoall",
        "Reduce",
        "Allreduce",
        "scan",
    ];
    NAMES
        .iter()
        .any(|name| call.to_lowercase().contains(&name.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn seen(rank: u32, call: Option<&str>, peer: Option<(u32, i32)>) -> Seen {
        let glimpse = Glimpse {
            stage: Stage::Running,
            call: call.map(str::to_string),
            last_call: Some("MPI_Send".into()),
            calls: 3,
            comm: WORLD,
            peer: peer.map(|(peer, _)| peer),
            tag: peer.map(|(_, tag)| tag),
            bytes: 8,
            waited: call.map(|_| Duration::from_secs(31)),
            round: None,
            progress: 0,
        };
        Seen {
            rank,
            alive: true,
            glimpse: Some(glimpse),
        }
    }

    #[test]
    fn crossed_sends_are_a_circle() {
        insta::assert_snapshot!(report(&[
            seen(0, Some("MPI_Ssend"), Some((1, 7))),
            seen(1, Some("MPI_Ssend"), Some((0, 7))),
        ]), @r"
        ranks 0, 1 wait for each other in a circle:
          rank 0 is in MPI_Ssend with rank 1, tag 7, for 31 s
          rank 1 is in MPI_Ssend with rank 0, tag 7, for 31 s
        every rank:
          rank 0 is in MPI_Ssend with rank 1, tag 7, for 31 s
          rank 1 is in MPI_Ssend with rank 0, tag 7, for 31 s
        ");
    }

    #[test]
    fn a_wrong_tag_is_named() {
        let report = report(&[
            seen(0, Some("MPI_Ssend"), Some((1, 7))),
            seen(1, Some("MPI_Recv"), Some((0, 8))),
        ]);
        assert!(
            report.contains("their tags differ, so they never meet"),
            "{report}"
        );
    }

    #[test]
    fn a_rank_that_computes_or_has_left_is_the_culprit() {
        let mut left = seen(3, None, None);
        left.alive = false;
        insta::assert_snapshot!(report(&[
            seen(0, Some("MPI_Recv"), Some((1, 5))),
            seen(1, Some("MPI_Recv"), Some((2, 5))),
            seen(2, None, None),
            left,
            seen(4, Some("MPI_Recv"), Some((3, 9))),
        ]), @r"
        rank 1 waits for rank 2, which computes; its last MPI call was MPI_Send
        rank 4 waits for rank 3, which has left: it has ended
        every rank:
          rank 0 is in MPI_Recv with rank 1, tag 5, for 31 s
          rank 1 is in MPI_Recv with rank 2, tag 5, for 31 s
          rank 2 computes; its last MPI call was MPI_Send
          rank 3 has ended
          rank 4 is in MPI_Recv with rank 3, tag 9, for 31 s
        ");
    }

    #[test]
    fn collectives_that_do_not_fit_or_lack_somebody_are_named() {
        let mixed = [
            seen(0, Some("MPI_Bcast"), None),
            seen(1, Some("MPI_Barrier"), None),
            seen(2, Some("MPI_Barrier"), None),
        ];
        let first = report(&mixed);
        let begin = "different collective operations are under way: ranks 1-2 in MPI_Barrier, rank 0 in MPI_Bcast";
        assert!(first.starts_with(begin), "{first}");
        let late = [seen(0, Some("MPI_Barrier"), None), seen(1, None, None)];
        assert!(report(&late).starts_with("MPI_Barrier has begun without rank 1"));
    }
}
