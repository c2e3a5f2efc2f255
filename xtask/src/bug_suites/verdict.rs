//! The verdict of a run, from its output and exit status.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use super::ranks::{Ranks, named};
use crate::process::Outcome;

/// What mpirun or the library reported about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// A call failed with an error message.
    Error,
    /// mpirun detected a deadlock and ended the job.
    DeadJob,
    /// The job succeeded, but messages report leaks or mistakes.
    Warning,
    /// A signal killed a rank.
    Crash,
    /// mpirun's time limit ended the job.
    TimeLimit,
    /// No message was printed.
    Nothing,
}

/// The observations of a run: its verdict and the contents of its messages.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub verdict: Verdict,
    pub took: Duration,
    /// The first message of the library or of mpirun.
    pub sentence: String,
    /// The MPI functions that the messages name.
    pub functions: BTreeSet<String>,
    /// The ranks that the messages name, without the report's final list of all ranks.
    pub ranks: Ranks,
}

impl Seen {
    pub fn of(verdict: Verdict) -> Seen {
        Seen {
            verdict,
            took: Duration::ZERO,
            sentence: String::new(),
            functions: BTreeSet::new(),
            ranks: Ranks::new(),
        }
    }
}

impl Verdict {
    /// Returns true if the mistake was reported by a message.
    pub fn is_found(self) -> bool {
        matches!(self, Verdict::Error | Verdict::DeadJob | Verdict::Warning)
    }
}

/// Returns the observations of a run under mpirun.
pub(super) fn of(outcome: &Outcome) -> Seen {
    let ours = |line: &&str| line.starts_with("rank ") || line.starts_with("mpirun: ");
    let mut lines = outcome.stderr.lines().filter(ours);
    let sentence = lines
        .clone()
        .find(|line| !line.starts_with("mpirun: the job cannot go on"));
    let sentence = sentence.or_else(|| lines.next()).unwrap_or("").to_owned();
    let signal = |code: i32| code > 128 + 1 && code <= 128 + 64;
    let is_error = outcome.stderr.lines().any(|line| line.contains("MPI_ERR_"));
    let verdict = match outcome.status.code() {
        _ if outcome.status.signal().is_some() => Verdict::Crash,
        Some(125) if outcome.stderr.contains("the job cannot go on") => Verdict::DeadJob,
        Some(124) => Verdict::TimeLimit,
        Some(0) if sentence.is_empty() => Verdict::Nothing,
        Some(0) => Verdict::Warning,
        Some(code) if signal(code) && !is_error => Verdict::Crash,
        _ => Verdict::Error,
    };
    Seen {
        verdict,
        took: outcome.took,
        sentence,
        functions: outcome.stderr.lines().flat_map(functions).collect(),
        ranks: findings(&outcome.stderr).flat_map(named).collect(),
    }
}

/// Returns the messages in a report, without its last section, which lists all ranks.
fn findings(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .take_while(|line| *line != "every rank:")
        .filter(|line| !line.contains("the job cannot go on"))
        .filter(|line| line.starts_with("rank") || line.starts_with("mpirun: "))
}

/// Returns the MPI functions that a text names; constants, all in capitals, are excluded.
pub(super) fn functions(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_function = |word: &&str| {
        let rest = word.strip_prefix("MPI_").map(str::as_bytes);
        matches!(rest, Some([first, second, ..]) if first.is_ascii_uppercase() && second.is_ascii_lowercase())
    };
    words.filter(is_function).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::functions;

    #[test]
    fn functions_are_found_in_sentences_and_constants_are_not() {
        let text =
            "rank 1 is in MPI_Bcast, which waits for MPI_COMM_WORLD (MPI_ERR_OTHER); MPI_Recv.";
        let found: Vec<String> = functions(text).into_iter().collect();
        assert_eq!(found, ["MPI_Bcast", "MPI_Recv"]);
    }
}
