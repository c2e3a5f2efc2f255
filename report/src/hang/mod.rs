//! Hang reports: for a job without progress, which rank waits for which.
//!
//! This module does no input or output:
//! it converts [`RankSnapshot`]s to a [`Report`], as text or JSON.
//! The report begins with the findings, each of which explains why ranks wait ([`Finding`]).
//! Then it lists the activity of every rank.
//! Snapshots are taken while ranks run, so a finding about a short wait may be outdated.
//!
//! | module | contents |
//! |---|---|
//! | `graph` | the wait-for graph, its cycles, and the ranks that can never proceed |
//! | `find` | the search for findings |
//! | `doing` | text about the activity of one rank |
//! | [`proof`] | the proof that no rank can make progress any more |
//! | [`standstill`] | detection of an apparent deadlock of some ranks while others make progress |

mod doing;
mod find;
mod graph;
pub mod proof;
pub mod standstill;
#[cfg(test)]
mod tests;

use crate::rank_snapshot::{RankSnapshot, Stage, Waiting};
use mpi_base::ranges;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// A rank of the job, with its last snapshot.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    pub rank: u32,
    pub host: String,
    pub alive: bool,
    /// The cause of death, if the job continues without the rank:
    /// "was killed by signal 9 (SIGKILL)".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// The last line of the rank's latest Python traceback, such as "ValueError: bad".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
    pub snapshot: Option<RankSnapshot>,
}

impl Seen {
    fn has_left(&self) -> bool {
        let finalized = |snapshot: &RankSnapshot| {
            snapshot.stage == Stage::Finalized || snapshot.call.as_deref() == Some("MPI_Finalize")
        };
        !self.alive || self.snapshot.as_ref().is_some_and(finalized)
    }
}

/// An explanation why ranks wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// The rank's Python program has raised an exception.
    Exception {
        rank: u32,
        exception: String,
        doing: String,
    },
    /// A cycle: each rank waits for the next, and the last rank waits for the first.
    Circle {
        ranks: Vec<u32>,
        doing: Vec<String>,
        /// True if the cycle is a send and a receive whose tags differ.
        tags_differ: bool,
    },
    /// Ranks outside of a cycle wait for a rank of the cycle.
    Behind {
        waiting: Vec<u32>,
        rank: u32,
        doing: String,
    },
    /// Members of a communicator have called collective operations that do not match.
    Mismatch {
        comm: String,
        number: u64,
        groups: Vec<Group>,
    },
    /// A collective operation waits for members that have not entered it.
    Absent {
        operation: String,
        inside: Vec<u32>,
        missing: Vec<u32>,
        /// The number of missing members whose ranks are not known.
        unknown: u32,
        doing: Vec<String>,
    },
    /// A collective operation does not complete although all members have entered it.
    Unended {
        operation: String,
        inside: Vec<u32>,
        /// The members for which the operation has completed.
        left: Vec<u32>,
        /// The members of `left` that have entered a later operation since, so the report does not know what they called.
        #[serde(skip)]
        later: Vec<u32>,
        /// True if the text may advise the user to let the library compare the members' arguments.
        /// False for other libraries, which have no parameter for this comparison.
        #[serde(skip)]
        is_comparable: bool,
    },
    /// Ranks wait for a rank that does not wait for any rank.
    Culprit {
        waiting: Vec<u32>,
        rank: u32,
        left: bool,
        doing: String,
    },
    /// Ranks receive from any source or wait for one of several requests.
    /// No rank is left that could send or receive.
    NoSender {
        waiting: Vec<u32>,
        /// True if all these ranks receive from any source.
        #[serde(skip)]
        take_any: bool,
    },
    /// Wires of the hardware barrier that have not toggled while others have.
    Wires {
        barrier: u64,
        entered: usize,
        late: Vec<Wire>,
    },
}

/// Ranks that have called the same operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    pub ranks: Vec<u32>,
    pub operation: String,
    /// False if the ranks have called the operation and do not wait in it.
    pub inside: bool,
}

/// A wire of the hardware barrier and the rank that drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wire {
    pub wire: u32,
    pub rank: u32,
    /// The number of barriers that the rank has entered,
    /// that is, the number of toggles of the wire.
    pub entered: u64,
}

/// A hang report: the findings, and the activity of every rank.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The index of the job: 0 is the launched job, others are spawned.
    pub job: usize,
    pub findings: Vec<Finding>,
    pub ranks: Vec<Seen>,
}

impl Report {
    /// Derives the findings from the snapshots of a job's ranks.
    pub fn of(job: usize, mut ranks: Vec<Seen>) -> Report {
        find_outsiders(&mut ranks);
        Report {
            job,
            findings: find::all(&ranks),
            ranks,
        }
    }

    /// Returns true if all living ranks apparently wait for each other.
    /// For ranks on another library this is no proof, because messages in flight are not visible.
    pub fn all_seem_stuck(&self) -> bool {
        let stuck = graph::Graph::of(&self.ranks).stuck();
        let mut living = self.ranks.iter().zip(stuck).filter(|(seen, _)| seen.alive);
        // A rank that polls (as with `MPI_Test`) may leave its loop at any time.
        let waits = |snapshot: &RankSnapshot| {
            let call = snapshot.call.as_deref().unwrap_or_default();
            ![
                "MPI_Test",
                "MPI_Iprobe",
                "MPI_Improbe",
                "MPI_Request_get_status",
            ]
            .iter()
            .any(|poll| call.starts_with(poll))
        };
        let is_seen = (self.ranks.iter()).all(|seen| seen.snapshot.as_ref().is_some_and(waits));
        let any = self.ranks.iter().any(|seen| seen.alive && !seen.has_left());
        is_seen && any && living.all(|(seen, stuck)| stuck || seen.has_left())
    }

    /// Builds a report for ranks on another library,
    /// to which this library's parameters do not apply.
    pub fn of_other_library(ranks: Vec<Seen>) -> Report {
        let mut report = Report::of(0, ranks);
        for finding in &mut report.findings {
            if let Finding::Unended { is_comparable, .. } = finding {
                *is_comparable = false;
            }
        }
        report
    }

    /// Returns the report as JSON: each finding with its kind and its text, then the ranks.
    pub fn json(&self) -> serde_json::Value {
        let mut json = serde_json::json!(self);
        let told = json["findings"].as_array_mut().into_iter().flatten();
        for (finding, told) in self.findings.iter().zip(told) {
            told["text"] = finding.to_string().into();
        }
        let told = json["ranks"].as_array_mut().into_iter().flatten();
        for (seen, told) in self.ranks.iter().zip(told) {
            told["text"] = seen.doing().into();
        }
        json
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.job > 0 {
            write!(f, "spawned job {}: ", self.job)?;
        }
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        if self.findings.is_empty() {
            writeln!(f, "no rank is known to wait for another one")?;
        }
        write!(f, "every rank:")?;
        let mut alike: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for seen in &self.ranks {
            alike.entry(seen.doing()).or_default().push(seen.rank);
        }
        let mut groups: Vec<_> = alike.into_iter().collect();
        groups.sort_by_key(|(_, ranks)| ranks.first().copied());
        for (doing, ranks) in groups {
            let doing = match ranks.len() {
                1 => doing,
                _ => of_several(&doing),
            };
            write!(f, "\n  {} {doing}", named(&ranks))?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Exception {
                rank,
                exception,
                doing,
            } => write!(
                f,
                "rank {rank} has printed the Python exception {}, and {doing}",
                printable::name(exception)
            ),
            Finding::Circle {
                ranks,
                doing,
                tags_differ,
            } => {
                match ranks.as_slice() {
                    [alone] => write!(f, "rank {alone} waits for itself:")?,
                    _ => {
                        let names: Vec<String> = ranks.iter().map(u32::to_string).collect();
                        let names = names.join(", ");
                        write!(f, "ranks {names} wait for each other in a circle:")?;
                    }
                }
                for (rank, doing) in ranks.iter().zip(doing) {
                    write!(f, "\n  rank {rank} {doing}")?;
                }
                match tags_differ {
                    true => write!(f, "\n  their tags differ, so they never meet"),
                    false => Ok(()),
                }
            }
            Finding::Behind {
                waiting,
                rank,
                doing,
            } => {
                let verb = if waiting.len() == 1 { "waits" } else { "wait" };
                write!(
                    f,
                    "{} {verb} for rank {rank}, which {doing}",
                    named(waiting)
                )
            }
            Finding::Mismatch {
                comm,
                number,
                groups,
            } => {
                write!(
                    f,
                    "collective operation #{number} on {comm} is not the same everywhere:"
                )?;
                for group in groups {
                    let (ranks, operation) = (named(&group.ranks), &group.operation);
                    match (group.ranks.as_slice(), group.inside) {
                        ([_], true) => write!(f, "\n  {ranks} is in {operation}")?,
                        (_, true) => write!(f, "\n  {ranks} are in {operation}")?,
                        ([_], false) => write!(f, "\n  {ranks} has left {operation}")?,
                        (_, false) => write!(f, "\n  {ranks} have left {operation}")?,
                    }
                }
                Ok(())
            }
            Finding::Absent {
                operation,
                inside,
                missing,
                unknown,
                doing,
            } => {
                let verb = if inside.len() == 1 { "is" } else { "are" };
                write!(
                    f,
                    "{} {verb} in {operation}, which waits for ",
                    named(inside)
                )?;
                match (missing.as_slice(), unknown) {
                    ([], unknown) => return write!(f, "{unknown} more of its members"),
                    ([_], 0) => {
                        let doing = doing.first().map_or("", String::as_str);
                        return write!(f, "{}, which {doing}", named(missing));
                    }
                    (_, 0) => write!(f, "{}:", named(missing))?,
                    (_, unknown) => {
                        write!(f, "{} and {unknown} more of its members:", named(missing))?
                    }
                }
                /// Maximum number of ranks that the text lists.
                /// Of the ranks that are not listed, the text gives only the number.
                const SHOWN: usize = 4;
                for (rank, doing) in missing.iter().zip(doing).take(SHOWN) {
                    write!(f, "\n  rank {rank} {doing}")?;
                }
                match missing.len().saturating_sub(SHOWN) {
                    0 => Ok(()),
                    more => write!(f, "\n  and {more} more"),
                }
            }
            Finding::Unended {
                operation,
                inside,
                left,
                later,
                is_comparable,
            } => {
                let verb = if inside.len() == 1 { "is" } else { "are" };
                write!(
                    f,
                    "{} {verb} in {operation}, which does not end although all its members have entered it",
                    named(inside)
                )?;
                match left.as_slice() {
                    [] => {}
                    [_] => write!(f, ", and {} has left it", named(left))?,
                    _ => write!(f, ", and {} have left it", named(left))?,
                }
                let compares = match is_comparable {
                    true => ", which --mca coll_base_check true compares",
                    false => "",
                };
                match (has_no_data(operation), later.as_slice()) {
                    (true, []) => write!(f, ": {STOPPED}"),
                    (true, later) => write!(
                        f,
                        ": {} may have called another operation{compares}, or {STOPPED}",
                        named(later)
                    ),
                    (false, []) => write!(
                        f,
                        ": the lengths that they give and expect may differ{compares}"
                    ),
                    (false, later) => write!(
                        f,
                        ": {} may have called another operation, or the lengths that they give and expect may differ{compares}",
                        named(later)
                    ),
                }
            }
            Finding::Culprit {
                waiting,
                rank,
                left,
                doing,
            } => {
                let verb = if waiting.len() == 1 { "waits" } else { "wait" };
                let why = if *left { "has left: it " } else { "" };
                write!(
                    f,
                    "{} {verb} for rank {rank}, which {why}{doing}",
                    named(waiting)
                )
            }
            Finding::NoSender { waiting, take_any } => {
                let verb = if waiting.len() == 1 { "waits" } else { "wait" };
                let what = match take_any {
                    true => "a message of any rank, and no rank is left that could send one",
                    false => {
                        "one of several messages, and no rank is left that could send or take one"
                    }
                };
                write!(
                    f,
                    "{} {verb} for {what}: every other rank has left or waits itself",
                    named(waiting)
                )
            }
            Finding::Wires {
                barrier,
                entered,
                late,
            } => {
                let wires: Vec<String> = late
                    .iter()
                    .map(|Wire { wire, rank, .. }| format!("wire {wire} (rank {rank})"))
                    .collect();
                let verb = if late.len() == 1 { "has" } else { "have" };
                write!(
                    f,
                    "hardware barrier {barrier}: {} {verb} not toggled, {entered} of {} have",
                    wires.join(", "),
                    entered + late.len()
                )
            }
        }
    }
}

/// The possible reason why an operation without user data does not end.
const STOPPED: &str =
    "a rank may be stopped in it, by a debugger or by a signal, or be about to leave it";

/// Returns true if an operation transfers no user data, so that lengths cannot differ.
fn has_no_data(operation: &str) -> bool {
    let name = operation.split(' ').next().unwrap_or_default();
    matches!(name, "MPI_Barrier" | "MPI_Ibarrier" | "MPI_Barrier_init")
}

/// Marks a wait at a window if the needed rank is outside MPI, for example in a computation,
/// and has made no MPI call since the wait began.
fn find_outsiders(ranks: &mut [Seen]) {
    let outside: BTreeMap<u32, u64> = ranks
        .iter()
        .filter(|seen| seen.alive)
        .filter_map(|seen| Some((seen.rank, seen.snapshot.as_ref()?)))
        .filter(|(_, snapshot)| snapshot.call.is_none() && snapshot.stage == Stage::Running)
        .map(|(rank, snapshot)| (rank, snapshot.calls))
        .collect();
    for snapshot in ranks.iter_mut().filter_map(|seen| seen.snapshot.as_mut()) {
        if let Some(Waiting::Window(at)) = &mut snapshot.waiting {
            let now = outside.get(&at.needed()).copied();
            at.is_outside = at.calls.is_some() && at.calls == now;
        }
    }
}

/// Converts the text about one rank's activity to the plural; the first word is the verb.
fn of_several(doing: &str) -> String {
    if let Some(how) = doing.strip_prefix(doing::DEAD) {
        return format!("are dead; each {how}");
    }
    let word = |(place, word)| match (place, word) {
        (0, "waits") => "wait",
        (0, "is") => "are",
        (0, "has") => "have",
        (0, "computes;") => "compute;",
        (0, "computes") => "compute",
        (_, "its") => "their",
        (_, word) => word,
    };
    let words: Vec<&str> = doing.split(' ').enumerate().map(word).collect();
    words.join(" ")
}

fn named(ranks: &[u32]) -> String {
    match ranks {
        [one] => format!("rank {one}"),
        many => {
            let many: Vec<usize> = many.iter().map(|rank| *rank as usize).collect();
            // A space follows each comma, as in other messages.
            format!("ranks {}", ranges::write(&many).replace(',', ", "))
        }
    }
}
